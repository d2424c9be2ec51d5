// A dimension's text that is no expression; a symbol without a value.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, ExpressionsThatAreNone) {
  const host::Context context = host::make_context();
  kiln_dim dim{};
  int64_t value = 7;
  EXPECT_REFUSED(host::take(kiln_dim_parse(context.get(), "2*", 2, &dim)), "INVALID_ARGUMENT",
                 "expression '2*': expected a number, a name or '(' at character 3, found the end");
  ASSERT_OK(kiln_dim_parse(context.get(), "2*n", 3, &dim));
  EXPECT_REFUSED(host::take(kiln_dim_evaluate(context.get(), &dim, nullptr, nullptr, 0, &value)), "UNKNOWN_NAME",
                 "symbol 'n' of '2*n' has no value");
  EXPECT_EQ(value, 7);
}

}  // namespace refused
