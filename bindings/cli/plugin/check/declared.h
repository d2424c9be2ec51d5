// Patterns that a plugin's passes declare (docs/patterns.md), and graphs in which they are found: each capture becomes
// an input of a type that fits, each node a node.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "../trial.h"

namespace kiln::cli::plugin_check {

struct Declared {
  struct Size {
    std::string name;   // sizes of one name are equal; empty: `exact`, or any
    int64_t exact = 0;  // 0: any
  };
  struct Capture {
    std::string name, from, number;          // number: as JSON; empty: it need not be one
    std::vector<std::string> dtypes;         // empty: any
    std::optional<std::vector<Size>> sizes;  // none: any shape
    bool leading = false;                    // there may be others before these
    bool optional = false;
  };
  struct Attr {
    std::string name;
    std::vector<std::string> values;  // that it may have, as JSON; "": it is left out
  };
  struct Node {
    std::string name;
    std::vector<std::string> ops, operands;
    std::vector<Attr> attrs;
    bool optional = false, keeps = false, commutes = false;
    bool has_results = false;  // several
  };
  std::string pass, name;
  size_t number = 0;  // in the pass
  std::vector<Capture> captures;
  std::vector<Node> nodes;
  std::vector<std::string> outputs;
};
std::vector<Declared> declared_patterns(const Context &context, const Registered &registered);

// One graph of a pattern: which parts are there, and what they are.
struct Drawn {
  explicit Drawn(const Declared &of);
  std::vector<bool> lacks_capture, lacks_node, swapped;
  std::vector<size_t> ops;                 // of each node, the number in its list
  std::vector<std::vector<size_t>> attrs;  // likewise of each attribute's values
  std::vector<size_t> ranks;               // of each capture; where sizes are said, how many stand before these
  std::vector<std::string> dtypes;
  std::map<std::string, int64_t> sizes;  // of variables(); others are `usual_size`
  bool shows_inner = false;              // nodes that may be used elsewhere are outputs, too
  bool has_constants = false;            // what may be a constant is one
  size_t nodes;                          // how many of them are written; the last is the output unless they all are
};
inline constexpr int64_t usual_size = 4;
// The names of the sizes that may be chosen.
std::vector<std::string> variables(const Declared &pattern, const Drawn &drawn);
std::string json_of(const Declared &pattern, const Drawn &drawn);

}  // namespace kiln::cli::plugin_check
