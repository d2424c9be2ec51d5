// What compiles with a cache come to, to be compared between contexts, facts and processes.
#pragma once
#include "tests.h"

namespace kiln::cli::plugin_check {

// Some graphs that are named or random, and the models.
std::vector<Item> cached_items(const Checked &subject);

struct Turn {
  std::string name;            // of the item, and of the backend
  std::string lookup, reason;  // "HIT"; "" where the compile or the run fails
  std::string ran;             // those of the plugin's passes that no HIT needs: all but early ones
  std::string made;            // the graph behind all passes, and the outputs, as digests; or how it fails
};
// One for each item, and one more for each backend of the plugin's that takes some of it.
std::vector<Turn> turns(const Context &context, const Registered &registered, const std::vector<Item> &items);
// Whether they are such as nothing is kept of, as kiln plugin inspect tells.
bool are_bypassed(const std::vector<Turn> &turns);

// As a text for `parting`.
std::string text_of(const std::vector<Turn> &turns);
// The same of what is made alone.
std::string made_of(const std::string &text);
// A Failure unless the turns that this text tells found all that was made.
void expect_found(std::vector<Turn> made, const std::string &found, const std::string &where);
// The turns of another process, as a text; `facts` are "host.NAME=V".
std::string turns_of_process(const Checked &subject, const std::string &cache,
                             const std::vector<std::string> &facts = {});
// What that process writes.
std::string turns_for_comparing(const Checked &subject, const std::string &cache);

}  // namespace kiln::cli::plugin_check
