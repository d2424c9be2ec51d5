// Options: named typed values, checked against the schema of what they are given to.
#pragma once
#include <string_view>

#include "abi/src/entry.h"

namespace kiln::abi {

// `given` over the defaults in `schema`, complete. An unknown name, or another kind than the default's, is an error
// that names `what` ("compile") and what it knows.
Result<AttrMap> check_options(std::string_view what, const AttrMap &schema, const AttrMap &given);

// The options of a pass or a backend, which `what` says, with their defaults: values that a host can give
// (kiln_options_set) and that are serialised alike everywhere.
Result<AttrMap> read_option_schema(const Checks &check, Context &context, std::string_view what,
                                   const kiln_attr *options, uint64_t count);

// NULL: the defaults.
Result<ContextOptions> context_options(const kiln_options *options);
Result<CompileOptions> compile_options(const kiln_options *options);
// For what knows no option yet.
Status no_options(std::string_view what, const kiln_options *options);
// The values, or none for NULL.
AttrMap values_of(const kiln_options *options);

}  // namespace kiln::abi
