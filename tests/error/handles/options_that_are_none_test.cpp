// An option by a name, of a kind, of a value that there is not, and a graph as an option.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, OptionsThatAreNone) {
  kiln_options *made = nullptr;
  ASSERT_OK(kiln_options_create(&made));
  const host::Options options(made);
  kiln_context *context = nullptr;
  const auto refused = [](kiln_error *error, const char *code, const char *message) {
    EXPECT_REFUSED(host::take(error), code, message);
  };
  const kiln_attr graph = host::attr("g", KILN_ATTR_GRAPH, 0, nullptr);
  refused(kiln_options_set(made, &graph), "INVALID_ARGUMENT",
          "kiln_options_set: an option's kind is i64, f64, text, dtype or bool, not number 6");
  refused(kiln_options_set_bool(made, "fuse", 4, 2), "INVALID_ARGUMENT",
          "kiln_options_set_bool: value is 2; a boolean is 0 or 1");
  EXPECT_OK(kiln_options_set_text(made, "threads", 7, "2", 1));
  refused(kiln_context_create(made, nullptr, &context), "TYPE_MISMATCH",
          "option 'threads' of context is of kind i64, not text");
  EXPECT_OK(kiln_options_set_i64(made, "threads", 7, -1));
  refused(kiln_context_create(made, nullptr, &context), "INVALID_ARGUMENT", "option 'threads' is -1, out of its range");
  EXPECT_OK(kiln_options_set_i64(made, "threads", 7, 1));
  EXPECT_OK(kiln_options_set_i64(made, "thread", 6, 1));
  refused(kiln_context_create(made, nullptr, &context), "UNKNOWN_NAME",
          "context has no option 'thread'; it has: cache, cache_max_bytes, load_symbols, pass_budget_ms, "
          "pass_failures, prepared, prepared_max_bytes, threads");
  EXPECT_EQ(context, nullptr);
}

}  // namespace refused
