#include <algorithm>
#include <cstdio>

#include "../../session.h"
#include "tests.h"

namespace kiln::cli::plugin_check {
namespace {

// FNV-1a.
uint64_t digest_of(const std::vector<Array> &arrays) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const Array &array : arrays) {
    const auto *at = static_cast<const unsigned char *>(array.tensor()->data);
    for (uint64_t i = 0; i < cli::bytes_of(*array.tensor()); ++i) hash = (hash ^ at[i]) * 0x100000001b3;
  }
  return hash;
}

constexpr std::string_view heading = "== ";

// What `make` answers for an item, or how it fails, which is compared, too.
template <class Make>
std::string entry(const Item &item, Make make) {
  std::string text(heading);
  text += item.name + "\n";
  try {
    return text + make() + "\n";
  } catch (const Failure &failure) {
    return text + failure.what() + "\n";
  }
}

std::string outputs_as_text(const Context &context, const Item &item, const Options &options) {
  const Graph graph = parse(context, item.json);
  char text[32];
  std::snprintf(text, sizeof text, "outputs %016llx",
                static_cast<unsigned long long>(
                    digest_of(run(compile(context, graph, options).executable, draw(context, graph, 1, item.range)))));
  return text;
}

}  // namespace

std::string bytes_of(const Checked &subject) { return read_file(subject.path); }

std::vector<Item> some_graphs(const Checked &subject, uint64_t randoms) {
  std::vector<Item> items;
  const std::string bytes = bytes_of(subject);
  if (subject.alone) return {random_graph(subject.seed, bytes)};
  for (const std::string &file : subject.files) items.push_back({file, read_file(file)});
  for (uint64_t i = 0; i < randoms; ++i) items.push_back(random_graph(subject.seed + i, bytes));
  return items;
}

void fail(const Item &item, const std::string &what) { throw Failure("graph '" + item.name + "': " + what); }

std::string after(const Context &context, const Registered &registered, const Item &item) {
  try {
    const Graph graph = parse(context, item.json);
    return text_of(context, compile(context, graph, passed(registered)).executable);
  } catch (const Failure &failure) {
    fail(item, failure.what());
  }
}

std::string all_texts(const Context &context, const Registered &registered, const std::vector<Item> &items) {
  std::string text;
  for (const Item &item : items) text += entry(item, [&] { return after(context, registered, item); });
  if (registered.ops.empty()) return text;
  for (const Item &item : samples(context, true))
    text += entry(item, [&] { return outputs_as_text(context, item, interpreted(registered)); });
  return text;
}

std::string texts_for_comparing(const Checked &subject) {
  const Registered registered(subject.path);
  const Context context = context_with(subject.path);
  return std::string(heading) + "what it registers\n" + registered.report.json() + "\n" +
         all_texts(context, registered, some_graphs(subject, 40));
}

std::string parting(std::string_view first, std::string_view second) {
  std::string_view item;
  while (first != second) {
    const std::string_view a = first.substr(0, first.find('\n')), b = second.substr(0, second.find('\n'));
    if (a.starts_with(heading)) item = a.substr(heading.size());
    if (a != b) return "'" + std::string(item) + "': '" + std::string(a) + "' or '" + std::string(b) + "'";
    first.remove_prefix(std::min(a.size() + 1, first.size()));
    second.remove_prefix(std::min(b.size() + 1, second.size()));
  }
  return "";
}

}  // namespace kiln::cli::plugin_check
