// Tests of what lies around a compile: other processes and their surroundings, threads, memory.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "../../child_process.h"
#include "../../session.h"
#include "../../temporary_folder.h"
#include "tests.h"

namespace kiln::cli::plugin_check {
namespace {

bool begins_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view beginning) { return text.starts_with(beginning); });
}

// With nothing but what Kiln, the loader and sanitizers read.
std::vector<std::string> bare_environment() {
  std::vector<std::string> kept;
  for (const std::string &variable : Spawn::inherited())
    if (begins_with_any(variable, {"KILN_", "LD_", "PATH=", "ASAN_", "UBSAN_", "TSAN_", "LSAN_"}))
      kept.push_back(variable);
  return kept;
}

// Each word of the file that may be the name of a variable, set to the value.
std::vector<std::string> full_environment(std::string_view bytes, const std::string &value) {
  const auto is_of_name = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::set<std::string> names;
  for (size_t begin = 0; begin < bytes.size(); ++begin) {
    size_t end = begin;
    while (end < bytes.size() && is_of_name(bytes[end])) ++end;
    const std::string name(bytes.substr(begin, end - begin));
    if (name.size() > 1 && name.size() < 64 && end < bytes.size() && bytes[end] == '\0' && names.size() < 4096 &&
        !begins_with_any(name,
                         {"KILN_", "LD_", "MALLOC_", "GLIBC_", "ASAN_", "UBSAN_", "TSAN_", "LSAN_", "PATH", "_Z"}))
      names.insert(name);
    begin = end;
  }
  std::vector<std::string> environment = bare_environment();
  for (const std::string &name : names) environment.push_back(name + "=" + value);
  return environment;
}

void await_next_second() {
  const auto now = std::chrono::system_clock::now();
  std::this_thread::sleep_until(std::chrono::ceil<std::chrono::seconds>(now) + std::chrono::milliseconds(5));
}

// Runs `work` on four threads at once; what one of them throws is thrown.
template <class Work>
void on_threads(Work work) {
  constexpr size_t count = 4;
  std::exception_ptr thrown[count];
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        work();
      } catch (...) {
        thrown[i] = std::current_exception();
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  for (const std::exception_ptr &exception : thrown)
    if (exception) std::rethrow_exception(exception);
}

size_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// How many bytes more are in use after each of many rounds; 0: not after each. What is kept for later is there at last.
size_t growth_of(const auto &round) {
  constexpr int first = 4, most = 96;
  size_t least = SIZE_MAX, before = 0;
  for (int i = 0; i < most && least > 0; ++i) {
    round();
    const size_t now = bytes_in_use();
    if (i >= first) least = std::min(least, now > before ? now - before : 0);
    before = now;
  }
  return least;
}

}  // namespace

void test_identity(const Checked &subject) {
  const std::string first = texts_of_process(subject, {});
  await_next_second();
  const std::string second = texts_of_process(subject, {});
  const auto head = [](const std::string &text) { return text.substr(0, text.find("\n== ")); };
  if (const std::string at = parting(head(first), head(second)); !at.empty())
    throw Failure("another process finds another identity in " + at);
}

void test_surroundings(const Checked &subject) {
  const TemporaryFolder elsewhere;
  const std::string bytes = bytes_of(subject);
  const auto expect = [&](const std::string &expected, const Spawn &spawn, const std::string &which) {
    if (const std::string at = parting(expected, texts_of_process(subject, spawn)); !at.empty())
      throw Failure(which + " makes something else of " + at);
  };
  Spawn there;
  there.folder = std::filesystem::path(subject.path).parent_path().string();  // where files of its own may lie
  const std::string base = texts_of_process(subject, there);
  Spawn bare = there, ones = there, numbers = there, away = there;
  bare.environment = bare_environment();
  ones.environment = full_environment(bytes, "1");
  numbers.environment = full_environment(bytes, "37");  // as sizes and counts are
  away.folder = elsewhere.path();
  for (const char *name : {"HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"})
    away.environment.insert(away.environment.begin(), std::string(name) + "=" + elsewhere.path());  // the first counts
  await_next_second();
  expect(base, there, "another process, a second later,");
  expect(base, bare, "a process with an empty environment");
  for (const Spawn &full : {ones, numbers})
    expect(base, full, "a process with each variable set that the plugin's file has the name of");
  expect(base, away, "a process in an empty folder");
}

void test_threads(const Checked &subject) {
  const Registered registered(subject.path);
  const std::vector<Item> items = some_graphs(subject, 24);
  const Context shared = context_of(subject);
  const std::string expected = all_texts(shared, registered, items);
  const auto expect = [&](const Context &context, const char *where) {
    if (const std::string at = parting(expected, all_texts(context, registered, items)); !at.empty())
      throw Failure(std::string("threads at once, ") + where + ", make something else of " + at);
  };
  on_threads([&] { expect(context_of(subject), "each in a context of its own"); });
  on_threads([&] { expect(shared, "in one context"); });
}

namespace {

// The memory of the last handles that were destroyed stays Kiln's, each as much: it grows until there are as many.
void fill_what_kiln_keeps() {
  for (int i = 0; i < 1024; ++i) {
    kiln_options *made = nullptr;
    check(kiln_options_create(&made));
    kiln_options_destroy(made);
  }
}

}  // namespace

void test_leaks(const Checked &subject) {
  fill_what_kiln_keeps();
  const Registered registered(subject.path);
  const std::vector<Item> items = some_graphs(subject, 6);
  const Context context = context_of(subject);
  const size_t compiled = growth_of([&] { all_texts(context, registered, items); });
  if (const int64_t live = report_of(kiln_context_report, context.get()).i64("handles.live"); live > 0)
    throw Failure(std::to_string(live) + " handles are left when all that was compiled is gone");
  if (compiled > 0)
    throw Failure("each time that " + std::to_string(items.size()) + " graphs are compiled " +
                  std::to_string(compiled) + " bytes more stay in use");
  if (const size_t loaded = growth_of([&] { context_of(subject); }); loaded > 0)
    throw Failure("each time that it is loaded " + std::to_string(loaded) + " bytes more stay in use");
}

}  // namespace kiln::cli::plugin_check
