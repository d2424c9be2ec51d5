#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "../../session.h"
#include "../../temporary_folder.h"
#include "effects.h"
#include "models.h"
#include "tests.h"

namespace kiln::cli::plugin_check {
namespace {

std::string outputs_as_text(const Context &context, const Item &item, const Options &options) {
  const Graph graph = parse(context, item.json);
  return digest_of(run(compile(context, graph, options).executable, draw(context, graph, 1, item.range)));
}

}  // namespace

std::string digest_of(const std::vector<Array> &arrays) {
  std::string bytes;
  for (const Array &array : arrays)
    bytes.append(static_cast<const char *>(array.tensor()->data), cli::bytes_of(*array.tensor()));
  return digest_of("outputs", bytes);
}

std::string entry(const Item &item, const std::function<std::string()> &make) {
  std::string text(heading);
  text += item.name + "\n";
  try {
    return text + make() + "\n";
  } catch (const Failure &failure) {
    return text + failure.what() + "\n";
  }
}

std::vector<Item> models() {
  std::vector<Item> items;
  for (const ModelFile &file : model_files())
    items.push_back({"model " + std::string(file.name), std::string(file.json)});
  return items;
}

Options without_passes(const Registered &registered) {
  Options options = passed(registered);
  options.set("passes", std::vector<std::string>());
  return options;
}

std::string bytes_of(const Checked &subject) { return read_file(subject.path); }

void prepare(const Context &context, const Checked &subject) {
  add_note_op(context);
  set_facts(context.get(), *subject.args);
}

Context context_of(const Checked &subject, std::string_view cache) {
  Context context = context_with(subject.path, cache);
  prepare(context, subject);
  return context;
}

std::vector<std::string> words_for_same(const Checked &subject, std::span<const std::string> but) {
  const auto is_said_anew = [&](std::string_view fact) {
    const std::string_view assigned = fact.substr(0, fact.find('=') + 1);
    return std::ranges::any_of(but, [&](const std::string &word) { return word.starts_with(assigned); });
  };
  std::vector<std::string> words = {subject.alone ? "--reproduce" : "--seed", std::to_string(subject.seed)};
  for (const std::string_view flag : {tolerance_flag.name, fact_flag.name})
    for (const std::string &value : subject.args->all(flag))
      if (flag != fact_flag.name || !is_said_anew(value)) words.insert(words.end(), {std::string(flag), value});
  words.insert(words.end(), subject.files.begin(), subject.files.end());
  return words;
}

std::vector<Item> some_graphs(const Checked &subject, uint64_t randoms) {
  std::vector<Item> items;
  const std::string bytes = bytes_of(subject);
  if (subject.alone) return {random_graph(subject.seed, bytes)};
  for (const std::string &file : subject.files) items.push_back({file, read_file(file)});
  for (uint64_t i = 0; i < randoms; ++i) items.push_back(random_graph(subject.seed + i, bytes));
  return items;
}

void fail(const Item &item, const std::string &what) { throw Failure("graph '" + item.name + "': " + what); }

Uncompiled::Uncompiled(const Item &item, const Failure &why) : Failure("graph '" + item.name + "': " + why.what()) {}

std::string after(const Context &context, const Registered &registered, const Item &item) {
  try {
    const Graph graph = parse(context, item.json);
    return text_with_constants(graph_of(context, compile(context, graph, passed(registered)).executable));
  } catch (const Failure &failure) {
    throw Uncompiled(item, failure);
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
  const Context context = context_of(subject);
  return std::string(heading) + "what it registers\n" + registered.report.json() + "\n" +
         all_texts(context, registered, some_graphs(subject, 40));
}

bool takes_some(const Context &context, const Item &item, const std::string &backend) {
  Options options;
  options.set("backend", backend);
  options.set("code", false);
  const Executable executable = compile(context, parse(context, item.json), options).executable;
  const Report report = report_of(kiln_executable_describe, executable.get());
  const std::string regions = "compile.partition.regions";
  for (size_t i = 0; i < report.count(regions); ++i)
    if (report.has(path_of(regions, i, "backend")) && report.text(path_of(regions, i, "backend")) == backend)
      return true;
  return false;
}

std::string texts_of_process(const Checked &subject, Spawn spawn, const std::vector<std::string> &more) {
  const TemporaryFolder folder;
  const std::string file = folder.file("texts");
  spawn.words = {"plugin", "check", subject.path, "--texts", file};
  for (const std::vector<std::string> &words : {words_for_same(subject, more), more})
    spawn.words.insert(spawn.words.end(), words.begin(), words.end());
  spawn.seconds = 600;
  const Ended ended = run_process(spawn);
  if (ended.code != 0) throw Failure("another process fails: " + (ended.how.empty() ? ended.output : ended.how));
  if (!std::filesystem::exists(file)) throw Failure("another process ended before it had told what it makes");
  return read_file(file);
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
