// What `kiln plugin check` tests; each in a process of its own (../../child_process.h). A test throws a Failure that
// says what is wrong.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../../child_process.h"
#include "../trial.h"
#include "corpus.h"

namespace kiln::cli::plugin_check {

// The plugin, and with what it is tested.
struct Checked {
  std::string path;
  std::vector<std::string> files;  // graphs that are given, and those of golden/ in the plugin's folder
  uint64_t seed = 1;               // of random graphs
  int64_t seconds = 0;             // a test's limit, in place of its own; 0: that
  const Args *args = nullptr;      // for tolerance_of, and facts
  bool alone = false;              // `seed` names one random graph, which is all there is
};

struct Test {
  std::string_view name;
  int level, seconds;  // from which level on; how long it may take, by the clock
  void (*run)(const Checked &);
  std::string_view mend;  // what to do when it fails
};
std::span<const Test> tests();

// A file each; what they ask is told in tests.cpp.
void test_load(const Checked &subject);
void test_invariants(const Checked &subject);
void test_numerics(const Checked &subject);
void test_repeat(const Checked &subject);
void test_identity(const Checked &subject);
void test_cache(const Checked &subject);
void test_ops(const Checked &subject);
void test_backends(const Checked &subject);
void test_surroundings(const Checked &subject);
void test_facts(const Checked &subject);
void test_names(const Checked &subject);
void test_random(const Checked &subject);
void test_threads(const Checked &subject);
void test_leaks(const Checked &subject);
void test_hosts(const Checked &subject);

// ---- what tests share

// A context with the plugin, the facts that are given, and the op of effects.h; `cache` is a folder or "off".
Context context_of(const Checked &subject, std::string_view cache = "off");
// The same of a context that has the plugin, or will have it.
void prepare(const Context &context, const Checked &subject);

// As passed(), without any registered pass.
Options without_passes(const Registered &registered);
// The plugin's file.
std::string bytes_of(const Checked &subject);
// The graphs that are given, then `randoms` random ones.
std::vector<Item> some_graphs(const Checked &subject, uint64_t randoms);
// What does not compile with the plugin's passes, whichever test meets it: what mends it is told by test invariants.
struct Uncompiled : Failure {
  Uncompiled(const Item &item, const Failure &why);
};
// A Failure that names the item, and how to see it.
[[noreturn]] void fail(const Item &item, const std::string &what);
// The graph behind the plugin's passes, as text; what fails is Uncompiled.
std::string after(const Context &context, const Registered &registered, const Item &item);
// The same for all of them, and the numbers of the plugin's ops on their samples: to be compared between runs.
std::string all_texts(const Context &context, const Registered &registered, const std::vector<Item> &items);
// The same, and the identities of what the plugin registers, as another process finds them (`kiln plugin check
// --texts`).
std::string texts_for_comparing(const Checked &subject);
// That in another process: `spawn` says where; `more` are words of its command line.
std::string texts_of_process(const Checked &subject, Spawn spawn, const std::vector<std::string> &more = {});
// Words by which a command has the same graphs, facts and tolerance; without the facts that `but` has.
std::vector<std::string> words_for_same(const Checked &subject, std::span<const std::string> but = {});
// That each graph which compiles without the plugin's passes compiles with them, too.
void expect_invariants(const Checked &subject, const Registered &registered, const Context &context);
// Whether the backend takes a node of the graph.
bool takes_some(const Context &context, const Item &item, const std::string &backend);

// An item's part of a text: what `make` answers for it, or how it fails, which is compared, too.
inline constexpr std::string_view heading = "== ";
std::string entry(const Item &item, const std::function<std::string()> &make);
using cli::digest_of;
std::string digest_of(const std::vector<Array> &arrays);
// The line at which two such texts part, with the item that it belongs to; "": they are equal.
std::string parting(std::string_view first, std::string_view second);
}  // namespace kiln::cli::plugin_check
