// Any text as an expression: an error, or one that can be evaluated and whose text reads back.
#include <cstdlib>
#include <string>
#include <string_view>

#include "jit/base/expr.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  using namespace kiln;
  if (size > 400) return 0;  // long ones are slow, and show nothing that short ones do not
  const Result<Expr> read = Expr::parse({reinterpret_cast<const char *>(data), size});
  if (!read.ok()) return 0;
  const std::string text = read->text();
  if (text.size() > (16 << 10)) return 0;  // what is near the parser's limit may pass it on the way back
  const Result<Expr> again = Expr::parse(text);
  if (!again.ok()) std::abort();
  for (int64_t base : {1, 2, 7}) {
    const auto lookup = [base](const std::string &name) { return base + static_cast<int64_t>(name.size()); };
    (void)read->evaluate(lookup);
    (void)again->evaluate(lookup);
  }
  return 0;
}
