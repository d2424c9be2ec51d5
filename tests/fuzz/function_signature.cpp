// Any text as the signature of a function: an error, or one that libffi takes and that fits a node or says why not.
#include <cstdlib>
#include <string_view>

#include "runtime/functions/binding.h"
#include "runtime/functions/native_call.h"
#include "runtime/graph/json.h"
#include "runtime/ops/op.h"

namespace {

using namespace kiln;

const Graph &graph() {
  static const GraphPtr made = read_json(R"({"kiln": 1, "inputs": [
      {"name": "a", "type": {"dtype": "f32", "shape": ["m", "k"]}},
      {"name": "b", "type": {"dtype": "f32", "shape": ["k", "2*m"]}}],
      "nodes": [{"name": "y", "op": "matmul", "inputs": ["a", "b"]}], "outputs": [{"name": "y", "value": "y"}]})",
                                         builtin_ops())
                                   .value();
  return *made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  const Result<FunctionSignature> read = parse_function_signature(text);
  if (!read.ok()) return read.status().message().empty() ? (std::abort(), 0) : 0;
  if (read->text != text || !NativeCall::of(*read).ok()) std::abort();
  const Result<FunctionBinding> bound = bind_function(*read, graph(), *graph().find("y"));
  if (!bound.ok()) return 0;
  if (bound->arguments.size() != read->arguments.size()) std::abort();
  const std::vector<std::vector<int64_t>> dims = {{2, 3}, {3, 4}, {2, 4}};
  for (const FunctionBinding::Argument &argument : bound->arguments)
    for (const Expr &value : argument.values) (void)evaluate(value, dims);
  for (const FunctionBinding::Equal &check : bound->checks)
    (void)(evaluate(check.left, dims) == evaluate(check.right, dims));
  return 0;
}
