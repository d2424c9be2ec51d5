// What orders effects.
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

Status infer_token(InferContext &c) {
  c.results = {make_type(DType::token, {})};
  return {};
}

Status reference_token(ReferenceContext &) { return {}; }  // it has no elements

void samples_token(SampleSink &) {}  // nothing that a call could be given

const Op tokens_records[] = {
    {{.name = "token",
      .doc = "A token: ops with an effect take one last and yield one last, and come after the one whose token they "
             "take. This one comes after all that its operands come after; without any it begins an order.",
      .flags = op_flags::moves,
      .args = {{"tokens", "all are waited for", dtypes(DType::token), Arity::variadic}},
      .result_names = {"token"},
      .infer = infer_token},
     {.reference = reference_token, .gradient = no_gradient("a token has no elements"), .samples = samples_token}},
};

}  // namespace

std::span<const Op> token_ops() { return tokens_records; }

}  // namespace kiln::ops
