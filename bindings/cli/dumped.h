// The folder that a compile with option `dump` wrote (docs/seeing.md), and what is shown of it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "handles.h"
#include "session.h"

namespace kiln::cli {

struct Dumped {
  // What a pass made of the graph, or of a part of it (a region, a piece, a nested graph); "": the whole. Files: names
  // without their endings; those of a pass that changed nothing are one.
  struct Run {
    std::string stage, pass, part, before, after;
    int64_t nodes_before = 0, nodes_after = 0;
    bool changed() const { return before != after; }
  };
  std::string folder;
  std::vector<Run> runs;  // in order

  std::string read(const std::string &file, std::string_view ending) const;
};
inline constexpr const char *given_file = "000_given";
Dumped read_dumped(const std::string &folder);

// What the graph is behind `after`: a pass, a stage, "given", or "all" of them. `form`: "text", "json", "dot" or
// "diff". Throws Usage when there is no such pass or stage.
std::string text_after(const Dumped &dumped, const std::string &after, std::string_view form);

}  // namespace kiln::cli
