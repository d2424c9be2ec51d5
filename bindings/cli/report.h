// kiln compile --report: one page that shows all of a compile, offline (docs/seeing.md).
#pragma once
#include <string>
#include <string_view>

#include "dumped.h"
#include "handles.h"
#include "session.h"

namespace kiln::cli {

// report_page.html, whose @KILN_DATA@ is the data's place; embedded when the program is built.
std::string_view report_page();

struct Reported {
  const Session &session;
  std::string name;  // of the graph, for the title
  const Graph &graph;
  const Executable &executable;
  const Report &compile;      // of the compile that made it, with option dump
  const std::string &lookup;  // what look_up() told
};
// The page, with all that it shows in it.
std::string report_html(const Reported &reported);

// Looks the graph up, and compiles nothing. JSON: {"report" (how that ended, and why), "found" (the description of what
// was; on a HIT)}.
std::string look_up(const Session &session, const Graph &graph, Options &options);

}  // namespace kiln::cli
