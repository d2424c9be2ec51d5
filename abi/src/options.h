// Options: named typed values, checked against the schema of what they are given to.
#pragma once
#include <string_view>

#include "abi/src/entry.h"

namespace kiln::abi {

// `given` over the defaults in `schema`, complete. An unknown name, or another kind than the default's, is an error
// that names `what` ("compile") and what it knows.
Result<AttrMap> check_options(std::string_view what, const AttrMap &schema, const AttrMap &given);

// NULL: the defaults.
Result<ContextOptions> context_options(const kiln_options *options);
Result<CompileOptions> compile_options(const kiln_options *options);
// For what knows no option yet.
Status no_options(std::string_view what, const kiln_options *options);
// The values, or none for NULL.
AttrMap values_of(const kiln_options *options);

}  // namespace kiln::abi
