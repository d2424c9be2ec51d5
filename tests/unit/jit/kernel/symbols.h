// The symbols that the tests of this folder count with.
#pragma once
#include "jit/base/expr.h"

namespace kiln::kernel::testing {

inline const Expr n = Expr::symbol("n"), m = Expr::symbol("m"), t = Expr::symbol("t");

}  // namespace kiln::kernel::testing
