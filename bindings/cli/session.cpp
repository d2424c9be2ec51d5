#include "session.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace kiln::cli {

class Progress {
 public:
  Progress() {
    if (isatty(STDERR_FILENO)) ticker_ = std::jthread([this](const std::stop_token &stop) { tick(stop); });
  }

  static int32_t event(void *user, uint32_t kind, const char *text, uint64_t size) {
    static_cast<Progress *>(user)->receive(kind, std::string_view(text, size));
    return 0;
  }

  // The compile is over: the line is cleared.
  void finish() { receive(KILN_EVENT_PROGRESS, ""); }

  std::function<void(std::string_view)> on_step = {};

 private:
  void receive(uint32_t kind, std::string_view text) {
    if (kind == KILN_EVENT_STEP) {
      if (on_step) on_step(text);
      return;
    }
    const std::lock_guard lock(mutex_);
    if (kind == KILN_EVENT_WARNING) {
      clear();
      std::fprintf(stderr, "kiln: warning: %s\n", printable(text).c_str());
      return;
    }
    if (phase_.empty()) begin_ = std::chrono::steady_clock::now();
    phase_ = text;
    if (text.empty()) clear();
  }

  void tick(const std::stop_token &stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, stop, std::chrono::milliseconds(200), [] { return false; });
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
      if (phase_.empty() || seconds < 1) continue;
      std::fprintf(stderr, "\r\033[Kkiln: %s, %.0f s", phase_.c_str(), seconds);
      shown_ = true;
    }
    clear();
  }

  void clear() {
    if (std::exchange(shown_, false)) std::fputs("\r\033[K", stderr);
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string phase_;
  std::chrono::steady_clock::time_point begin_;
  bool shown_ = false;
  std::jthread ticker_;  // last: it uses all the others
};

void set_fact(kiln_context *context, const std::string &name, const std::string &text) {
  kiln_attr fact = {};
  fact.name = name.data();
  fact.name_size = name.size();
  fact.count = 1;
  const auto set = [&](uint32_t kind, const void *data) {
    fact.kind = kind;
    fact.data = data;
  };
  int64_t integer = 0;
  double real = 0;
  const auto reads_as = [&](auto &number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  };
  const uint8_t truth = text == "true";
  const kiln_text as_text = {text.data(), text.size()};
  if (truth || text == "false") {
    set(KILN_ATTR_BOOL, &truth);
  } else if (reads_as(integer)) {
    set(KILN_ATTR_I64, &integer);
  } else if (reads_as(real)) {
    set(KILN_ATTR_F64, &real);
  } else {
    set(KILN_ATTR_TEXT, &as_text);
  }
  check(kiln_fact_set(context, &fact));
}

void set_facts(kiln_context *context, const Args &args) {
  for (const auto &[name, text] : args.pairs(fact_flag.name)) {
    if (!name.starts_with("host.") || name == "host.") throw Usage("--fact: '" + name + "' is not host.NAME");
    set_fact(context, name, text);
  }
}

Session::Session(const Args &args, bool keeps_prepared) : progress_(std::make_unique<Progress>()) {
  Options options;
  options.set("prepared", keeps_prepared);
  if (const auto cache = args.get(cache_flag.name)) options.set("cache", *cache);
  if (const auto threads = args.integer(threads_flag.name, 1, UINT32_MAX)) options.set("threads", *threads);
  kiln_event_sink sink = {};
  sink.struct_size = sizeof sink;
  sink.kinds = 1U << KILN_EVENT_PROGRESS | 1U << KILN_EVENT_WARNING | 1U << KILN_EVENT_STEP;
  sink.user = progress_.get();
  sink.event = Progress::event;
  context_ = make<Context>(kiln_context_create, options.get(), &sink);
  set_facts(context_.get(), args);
  const auto plugins = args.all(plugin_flag.name);
  plugins_.assign(plugins.begin(), plugins.end());
  const auto plugin_options = args.all(plugin_option_flag.name);
  plugin_options_.assign(plugin_options.begin(), plugin_options.end());
  if (plugins_.empty() && !plugin_options_.empty()) throw Usage("--plugin-option is for what --plugin loads");
}

namespace {

// The passes of a plugin's file, and for each option that is written PASS.OPTION=V, of those, its value.
class PluginFile {
 public:
  explicit PluginFile(const std::string &path) : report_(report_of(kiln_plugin_inspect, path.data(), path.size())) {}

  // Whether it has the pass; then `options` gets the value, of the kind of the default.
  bool take(const std::string &text, Options &options) const {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    for (size_t i = 0; i < report_.count("passes"); ++i) {
      const std::string pass = report_.text(path_of("passes", i, "name"));
      if (!name.starts_with(pass + ".")) continue;
      const std::string option = name.substr(pass.size() + 1);
      const std::string list = path_of("passes", i, "option_kinds");
      for (size_t k = 0; k < report_.count(list); ++k)
        if (report_.text(path_of(list, k, "name")) == option)
          set_option(options, name, report_.text(path_of(list, k, "kind")), false, text.substr(equals + 1),
                     "--plugin-option " + name);
      if (!known(list, option)) options.set(name, text.substr(equals + 1));  // the library names what there is
      return true;
    }
    return false;
  }

 private:
  bool known(const std::string &list, const std::string &option) const {
    for (size_t k = 0; k < report_.count(list); ++k)
      if (report_.text(path_of(list, k, "name")) == option) return true;
    return false;
  }
  const Report report_;
};

}  // namespace

void Session::load_plugins() const {
  std::set<std::string> left(plugin_options_.begin(), plugin_options_.end());
  if (left.size() < plugin_options_.size()) throw Usage("--plugin-option: one is given twice");
  for (const std::string &text : left)
    if (text.find('=') == std::string::npos || text.find('.') > text.find('='))
      throw Usage("--plugin-option: '" + text + "' is not PASS.OPTION=VALUE");
  for (const std::string &path : plugins_) {
    Options options;
    if (!left.empty()) {
      const PluginFile file(path);
      std::erase_if(left, [&](const std::string &text) { return file.take(text, options); });
    }
    check(kiln_plugin_load(context_.get(), path.data(), path.size(), options.get()));
  }
  if (!left.empty()) throw Usage("--plugin-option: no plugin that is loaded has a pass for '" + *left.begin() + "'");
}

Session::~Session() = default;

void Session::listen(std::function<void(std::string_view)> on_step) const { progress_->on_step = std::move(on_step); }
void Session::finish_progress() const { progress_->finish(); }

namespace {

constexpr uint64_t longest_graph = uint64_t{1} << 30;  // bytes of JSON; what is larger is no graph that somebody meant

using File = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

File open_file(const std::string &path) {
  File file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) throw Failure(path + ": " + std::strerror(errno));
  return file;
}

// Reads on until there are `most` bytes, or no more come.
void read_on(const File &file, const std::string &path, uint64_t most, std::string &bytes) {
  char buffer[1 << 16];
  while (bytes.size() < most) {
    const size_t count = std::fread(buffer, 1, std::min<uint64_t>(sizeof buffer, most - bytes.size()), file.get());
    bytes.append(buffer, count);
    if (count == 0) break;
  }
  if (std::ferror(file.get())) throw Failure(path + ": " + std::strerror(errno));
}

bool is_folder(const std::string &path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

void read_rest(const File &file, const std::string &path, std::string &bytes) {
  struct stat info = {};
  const bool is_regular = fstat(fileno(file.get()), &info) == 0 && S_ISREG(info.st_mode);
  const uint64_t size = is_regular ? static_cast<uint64_t>(info.st_size) : 0;
  if (size <= longest_graph) read_on(file, path, longest_graph + 1, bytes);
  if (std::max<uint64_t>(size, bytes.size()) > longest_graph)
    throw Failure(path + ": is larger than a graph's JSON may be, which is " + std::to_string(longest_graph) +
                  " bytes");
}

}  // namespace

Subject load(const Session &session, const std::string &path) {
  // The first bytes tell what it is: an artifact is the library's to read, and what is neither is not read at all. So
  // is a folder, an unpacked artifact.
  if (is_folder(path)) {
    session.load_plugins();
    return {Graph(), make<Executable>(kiln_executable_open, session.context(), path.data(), path.size(), nullptr)};
  }
  const File file = open_file(path);
  std::string bytes;
  read_on(file, path, 4096, bytes);
  size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || bytes[first] == '{') {
    read_rest(file, path, bytes);
    first = bytes.find_first_not_of(" \t\r\n");
  }
  Subject subject;
  session.load_plugins();
  if (first != std::string::npos && bytes[first] == '{') {
    try {
      subject.graph = make<Graph>(kiln_graph_parse, session.context(), bytes.data(), bytes.size());
    } catch (const Failure &failure) {
      throw Failure(path + ": " + failure.what(), failure.code);
    }
  } else {
    if (!bytes.starts_with("KILNREC"))
      throw Failure(path + ": neither a graph, which is JSON and begins with '{', nor an artifact of Kiln's");
    subject.executable = make<Executable>(kiln_executable_open, session.context(), path.data(), path.size(), nullptr);
  }
  return subject;
}

bool is_of_usage(const Failure &failure) {
  const bool is_value = failure.code == KILN_INVALID_ARGUMENT || failure.code == KILN_TYPE_MISMATCH;
  return failure.code == KILN_UNKNOWN_NAME || (is_value && std::string_view(failure.what()).starts_with("option '"));
}

Compiled compile(const Session &session, const Graph &graph, const Options &options) {
  kiln_executable *executable = nullptr;
  kiln_report *report = nullptr;
  try {
    check(kiln_compile(session.context(), graph.get(), options.get(), &executable, &report));
  } catch (const Failure &failure) {
    if (is_of_usage(failure)) throw Usage(failure.what());
    throw;
  }
  session.finish_progress();
  return {Executable(executable), Report(report)};
}

std::string padded(std::string text, size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

std::string read_file(const std::string &path) {
  const File file = open_file(path);
  std::string bytes;
  read_rest(file, path, bytes);
  return bytes;
}

void write_file(const std::string &path, std::string_view text) {
  if (path == "-") return print(text);
  std::FILE *file = std::fopen(path.c_str(), "wb");
  if (!file) throw Failure(path + ": " + std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) throw Failure(path + ": " + std::strerror(errno));
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Failure(std::string("standard output: ") + std::strerror(errno));
  }
}

namespace {

// How many bytes the UTF-8 character at the front has, if it is one that may be shown; else 0.
size_t shown_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i)
    if (byte(i) >> 6 != 2) return 0;
  return first == 0xc2 && byte(1) < 0xa0 ? 0 : size;  // U+0080 to U+009F are control characters, too
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const size_t shown = shown_bytes(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (shown > 0)
      out += text.substr(0, shown);
    else
      out.append("\\x").append({digits[byte >> 4], digits[byte & 15]});
    text.remove_prefix(std::max<size_t>(shown, 1));
  }
  return out;
}

}  // namespace kiln::cli
