// Compiling with option `report_html`.
#pragma once
#include "runtime/compile.h"

namespace kiln {

// As compile() does, and tells by a page (report/page.h), which it writes last, what it did and how a lookup of the
// graph ends now. Further errors: code io, the page cannot be written.
Result<Compiled> compile_with_page(const CompileEnvironment &env, GraphPtr graph, const CompileOptions &options,
                                   CompileReport &report);

}  // namespace kiln
