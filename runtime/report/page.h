// Option `report_html`: one page that shows all of a compile, offline (docs/seeing.md).
#pragma once
#include <string>
#include <string_view>

#include "runtime/dump.h"
#include "runtime/exec/executable.h"
#include "runtime/modules.h"
#include "runtime/report/compile_report.h"

namespace kiln {

struct PageContent {
  std::string title;
  const Graph &given;
  const Executable &executable;
  const CompileReport &compile;  // of the compile that made it
  const Dump &passes;            // what they made in it
  std::string_view lookup;       // JSON: {"report" (how one ends now), "found" (the description of what is; on a HIT)}
};
// HTML, with all that it shows in it. Errors: kernels that cannot be listed.
Result<std::string> page_of(const PageContent &content, Modules &modules);

// page.html, whose @KILN_DATA@ is the data's place; embedded when the library is built.
std::string_view page_template();

}  // namespace kiln
