#include <cmath>

#include "runtime/passes/builtin.h"
#include "runtime/passes/number.h"
#include "runtime/passes/replacing.h"

namespace kiln {
namespace {

// `x OP number`; of sub the sum with the negative number.
struct Term {
  std::string_view op;
  ValueId x;
  double number = 0;
};

// The number as floats of that type hold it, of their full precision; nothing: it is another, or they are too short
// for a number to take the place of two.
std::optional<double> held(double number, DType dtype) {
  if (dtype == DType::f32) number = static_cast<float>(number);
  const bool is_normal =
      dtype == DType::f32 ? std::isnormal(static_cast<float>(number)) : dtype == DType::f64 && std::isnormal(number);
  return is_normal ? std::optional(number) : std::nullopt;
}

// Of a node all of whose elements come from those of x, one each.
std::optional<Term> term_of(const Graph &graph, const Node &node) {
  if (!node.op || node.inputs.size() != 2 || !graph.type(node.inputs[0]).same_value_type(node.results[0]))
    return std::nullopt;
  const std::optional<Number> number = number_of_all(graph, node.inputs[1]);
  const std::optional<double> c = number ? held(number->f, number->dtype) : std::nullopt;
  if (!c) return std::nullopt;
  const std::string_view op = node.op->name;
  if (op == "add" || op == "mul" || op == "div") return Term{op, node.inputs[0], *c};
  return op == "sub" ? std::optional(Term{"add", node.inputs[0], -*c}) : std::nullopt;
}

std::optional<Term> with(const Term &term, double number, DType dtype) {
  const std::optional<double> c = held(number, dtype);
  return c ? std::optional(Term{term.op, term.x, *c}) : std::nullopt;
}

class Algebra {
 public:
  Algebra(const Graph &graph, const Node &node, const OutputStorage &outputs)
      : graph_(graph), node_(node), outputs_(outputs), dtype_(node.results[0].dtype) {}

  // What says the same with fewer operations, or a cheaper one.
  std::optional<Term> simpler() const {
    const std::optional<Term> term = term_of(graph_, node_);
    if (!term) return common_factor();
    if (term->op == "div") return with({"mul", term->x}, 1 / term->number, dtype_);
    const std::optional<Term> inner = term_that_goes(term->x);
    if (!inner || inner->op != term->op) return std::nullopt;
    if (term->op == "mul") return with(*inner, inner->number * term->number, dtype_);
    return sum({"add", inner->x}, inner->number, term->number);
  }

 private:
  // x * a + x * b, or the difference.
  std::optional<Term> common_factor() const {
    const bool is_difference = node_.op->name == "sub";
    if (node_.inputs.size() != 2 || !(is_difference || node_.op->name == "add")) return std::nullopt;
    const std::optional<Term> a = term_that_goes(node_.inputs[0]), b = term_that_goes(node_.inputs[1]);
    if (!a || !b || a->op != "mul" || b->op != "mul" || a->x != b->x) return std::nullopt;
    return sum({"mul", a->x}, a->number, is_difference ? -b->number : b->number);
  }

  // Only of one sign: what rounds on purpose, x + 2^23 - 2^23, stays, and a small difference is not made of large
  // numbers; infinities stay what they are.
  std::optional<Term> sum(const Term &term, double a, double b) const {
    return std::signbit(a) == std::signbit(b) ? with(term, a + b, dtype_) : std::nullopt;
  }

  // Of a value that nothing else reads.
  std::optional<Term> term_that_goes(ValueId value) const {
    const Node &node = *graph_.find(value.node);
    const bool goes = may_go(node, node_) && !outputs_.is_output(value) && graph_.users(value).size() == 1;
    return goes ? term_of(graph_, node) : std::nullopt;
  }

  const Graph &graph_;
  const Node &node_;
  const OutputStorage &outputs_;
  const DType dtype_;
};

}  // namespace

Pass algebra_pass() {
  Pass pass = replacing_pass("algebra", 1005, [](PassContext &context) -> MakeReplacement {
    return [&context](const Node &node, const OutputStorage &outputs) -> Result<ValueId> {
      const std::optional<Term> term = Algebra(context.edit.view(), node, outputs).simpler();
      return term ? replacement_by_number(context.edit, context.ops, node, term->op, term->x, term->number)
                  : Result<ValueId>(ValueId());
    };
  });
  pass.on_request = true;
  return pass;
}

}  // namespace kiln
