// Comparisons, logic and choice.
#include <cmath>
#include <functional>

#include "runtime/ops/elementwise.h"
#include "runtime/ops/formula.h"

namespace kiln::ops {
namespace {

using kernel::Core;

Status infer_boolean(InferContext &c) {
  KILN_TRY(infer_broadcast(c));
  c.results[0].dtype = DType::boolean;
  return {};
}

template <class Predicate>
constexpr auto holds = [](ReferenceContext &, auto a, auto b) { return Predicate{}(a, b); };

Status reference_where(ReferenceContext &c) {
  const RefTensor &condition = *c.inputs[0], &a = *c.inputs[1], &b = *c.inputs[2];
  RefTensor &y = c.results[0];
  return dispatch(y, [&](auto zero) -> Status {
    using Elements = ReadElements<decltype(zero)>;
    const ReadElements<int64_t> is_a(condition);
    const Elements from_a(a), from_b(b);
    const WriteElements<decltype(zero)> out(y);
    return walk_in_ranges<3>(c, y.shape,
                             {broadcast_strides(condition.shape, y.shape), broadcast_strides(a.shape, y.shape),
                              broadcast_strides(b.shape, y.shape)},
                             [&](size_t k, auto at) {
                               out.set(k, is_a[static_cast<size_t>(at[0])] ? from_a[static_cast<size_t>(at[1])]
                                                                           : from_b[static_cast<size_t>(at[2])]);
                             });
  });
}

void samples_comparison(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back({.name = "vectors", .inputs = {f32({257}), f32({257})}});
  out.push_back({.name = "row", .inputs = {f32({7, 33}), f32({33})}});
  out.push_back({.name = "scalar", .inputs = {f32({5, 17}), f32({})}});
  out.push_back({.name = "both", .inputs = {f32({7, 1}), f32({1, 5})}});
  out.push_back({.name = "empty", .inputs = {f32({0}), f32({0})}});
  out.push_back({.name = "symbolic", .inputs = {f32({n, 3}), f32({n, 1})}, .sizes = {{"n", 9}}});
  out.push_back({.name = "integers", .inputs = {i64({65}), i64({65})}});
  const std::vector<float> edges = {0.f, -0.f, 1.f, INFINITY, -INFINITY, NAN};
  out.push_back({.name = "edges",
                 .inputs = {f32({6, 1}), f32({6})},
                 .given = {{0, f32_data({6, 1}, edges)}, {1, f32_data({6}, edges)}}});
}
void samples_equality(SampleSink &out) {
  samples_comparison(out);
  out.push_back({.name = "booleans", .inputs = {boolean({33}), boolean({33})}});
}
void samples_logic(SampleSink &out) {
  out.push_back({.name = "vectors", .inputs = {boolean({65}), boolean({65})}});
  out.push_back({.name = "broadcast", .inputs = {boolean({3, 1}), boolean({7})}});
  out.push_back({.name = "empty", .inputs = {boolean({0}), boolean({1})}});
  out.push_back({.name = "symbolic", .inputs = {boolean({sym("n")}), boolean({sym("n")})}, .sizes = {{"n", 5}}});
}
void samples_where(SampleSink &out) {
  const Dim n = sym("n");
  out.push_back({.name = "vectors", .inputs = {boolean({257}), f32({257}), f32({257})}});
  out.push_back({.name = "scalar_branches", .inputs = {boolean({5, 17}), f32({}), f32({})}});
  out.push_back({.name = "broadcast_condition", .inputs = {boolean({9, 1}), f32({9, 33}), f32({33})}});
  out.push_back({.name = "integers", .inputs = {boolean({7}), i64({7}), i64({1})}});
  out.push_back({.name = "booleans", .inputs = {boolean({7}), boolean({7}), boolean({7})}});
  out.push_back({.name = "empty", .inputs = {boolean({0}), f32({0}), f32({1})}});
  out.push_back({.name = "symbolic", .inputs = {boolean({n, 1}), f32({n, 3}), f32({3})}, .sizes = {{"n", 5}}});
  out.push_back(
      {.name = "other_branch_is_nan",
       .inputs = {boolean({2}), f32({2}), f32({2})},
       .given = {{0, bool_data({2}, {1, 0})}, {1, f32_data({2}, {1.f, NAN})}, {2, f32_data({2}, {NAN, 2.f})}}});
}

Op comparison(std::string_view name, std::string_view doc, DTypes types, OpMeaning meaning) {
  meaning.gradient = gives_booleans;
  return {{.name = name,
           .doc = doc,
           .args = {{"a", "any shape", types}, {"b", "broadcasts with a", types}},
           .result_names = {"y"},
           .infer = infer_boolean},
          meaning};
}

const Op comparison_records[] = {
    commuting(comparison("eq", "a == b; false if either is NaN.", comparable_types,
                         {.lower = lower_as<Core::eq>,
                          .reference = reference_of_numbers<holds<std::equal_to<>>, In::own>,
                          .samples = samples_equality})),
    commuting(comparison("ne", "a != b; true if either is NaN.", comparable_types,
                         {.lower = lower_as<Core::ne>,
                          .reference = reference_of_numbers<holds<std::not_equal_to<>>, In::own>,
                          .samples = samples_equality})),
    comparison("lt", "a < b; false if either is NaN.", numeric_types,
               {.lower = lower_as<Core::lt>,
                .reference = reference_of_numbers<holds<std::less<>>, In::own>,
                .samples = samples_comparison}),
    comparison("le", "a <= b; false if either is NaN.", numeric_types,
               {.lower = lower_as<Core::le>,
                .reference = reference_of_numbers<holds<std::less_equal<>>, In::own>,
                .samples = samples_comparison}),
    comparison("gt", "a > b; false if either is NaN.", numeric_types,
               {.lower = lower_as<Core::gt>,
                .reference = reference_of_numbers<holds<std::greater<>>, In::own>,
                .samples = samples_comparison}),
    comparison("ge", "a >= b; false if either is NaN.", numeric_types,
               {.lower = lower_as<Core::ge>,
                .reference = reference_of_numbers<holds<std::greater_equal<>>, In::own>,
                .samples = samples_comparison}),
    commuting(comparison("and", "Both a and b.", dtypes(DType::boolean),
                         {.lower = lower_as<Core::logical_and>,
                          .reference = reference_of_numbers<holds<std::logical_and<>>, In::own>,
                          .samples = samples_logic})),
    commuting(comparison("or", "a or b, or both.", dtypes(DType::boolean),
                         {.lower = lower_as<Core::logical_or>,
                          .reference = reference_of_numbers<holds<std::logical_or<>>, In::own>,
                          .samples = samples_logic})),

    commuting(comparison("xor", "One of a and b.", dtypes(DType::boolean),
                         {.lower = lower_as<Core::ne>,
                          .reference = reference_of_numbers<holds<std::not_equal_to<>>, In::own>,
                          .samples = samples_logic})),

    {{.name = "where",
      .doc = "a where the condition holds, else b.",
      .flags = op_flags::moves,
      .args = {{"condition", "broadcasts with a and b", dtypes(DType::boolean), Arity::one, /*same_dtype=*/false},
               {"a", "any shape", any_type},
               {"b", "broadcasts with a", any_type}},
      .result_names = {"y"},
      .infer = infer_broadcast},
     {.lower = [](LowerContext &c) -> Status {
        const int condition = c.load(0), a = c.load(1), b = c.load(2);
        c.body.yield(c.body.op(Core::select, condition, a, b));
        return {};
      },
      .reference = reference_where,
      .gradient = by_rule("a, b"),
      .samples = samples_where}},
};

}  // namespace

std::span<const Op> comparison_ops() { return comparison_records; }

}  // namespace kiln::ops
