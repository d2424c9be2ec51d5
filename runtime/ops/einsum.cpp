// Sums of products that an equation names, as products of matrices.
#include <map>

#include "runtime/ops/composer.h"
#include "runtime/ops/family.h"

namespace kiln::ops {
namespace {

// Which dims are one: a letter; or, from `dots` on, a dim that "..." stands for, counted from the last.
using Labels = std::vector<int>;
constexpr int dots = 256;

struct Equation {
  std::vector<Labels> operands;
  Labels result;
};

// One operand's part, or the result's. `hidden`: how many dims the "..." in it is.
Status parse_labels(const InferContext &c, std::string_view text, size_t hidden, Labels &labels) {
  bool had_dots = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    const bool letter = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z');
    if (letter) {
      labels.push_back(text[i]);
    } else if (text.substr(i, 3) == "..." && !had_dots) {
      for (size_t d = hidden; d-- > 0;) labels.push_back(dots + static_cast<int>(d));
      had_dots = true;
      i += 2;
    } else {
      return c.fail("equation has '", text.substr(i), "', expected letters and at most one '...'");
    }
  }
  return {};
}

size_t letters_in(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, [](char x) { return x != ' ' && x != '.'; }));
}
bool has(const Labels &labels, int label) { return std::ranges::find(labels, label) != labels.end(); }
size_t place(const Labels &labels, int label) {
  return static_cast<size_t>(std::ranges::find(labels, label) - labels.begin());
}

// "ij,jk->ik". Without an arrow the result has the dims of "...", then the letters that stand once, in the alphabet's
// order.
Result<Equation> parse_equation(const InferContext &c) {
  const std::string_view text = c.attr("equation").text_value();
  const size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  Equation equation;
  size_t most_hidden = 0;
  for (size_t k = 0;; ++k) {
    const size_t comma = left.find(',');
    const std::string_view part = left.substr(0, comma);
    if (k >= c.inputs.size())
      return c.fail("equation names more operands than the ", c.inputs.size(), " that there are");
    const size_t rank = c.inputs[k].rank(), named = letters_in(part);
    const bool open = part.find('.') != part.npos;
    if (open ? rank < named : rank != named)
      return c.fail("equation names ", named, " dims of ", c.arg_name(k), ", which is ", c.inputs[k].text());
    KILN_TRY(parse_labels(c, part, open ? rank - named : 0, equation.operands.emplace_back()));
    most_hidden = std::max(most_hidden, open ? rank - named : 0);
    if (comma == left.npos) break;
    left.remove_prefix(comma + 1);
  }
  if (equation.operands.size() != c.inputs.size())
    return c.fail("equation names ", equation.operands.size(), " operands of ", c.inputs.size());
  std::map<int, int> count;
  for (const Labels &labels : equation.operands)
    for (int label : labels) ++count[label];
  if (arrow != text.npos) {
    KILN_TRY(parse_labels(c, text.substr(arrow + 2), most_hidden, equation.result));
    for (int label : equation.result) {
      if (!count.contains(label))
        return c.fail("the result's dim '", static_cast<char>(label), "' is one of no operand");
      if (std::ranges::count(equation.result, label) > 1)
        return c.fail("the result's dim '", static_cast<char>(label), "' stands twice");
    }
    return equation;
  }
  for (size_t d = most_hidden; d-- > 0;) equation.result.push_back(dots + static_cast<int>(d));
  for (const auto &[label, times] : count)
    if (label < dots && times == 1) equation.result.push_back(label);
  return equation;
}

// What each label counts to. Dims of "..." are broadcast.
Result<std::map<int, Dim>> extents_of(InferContext &c, const Equation &equation) {
  std::map<int, Dim> extents;
  for (size_t k = 0; k < c.inputs.size(); ++k)
    for (size_t d = 0; d < c.inputs[k].rank(); ++d) {
      const int label = equation.operands[k][d];
      const Dim &dim = c.inputs[k].dims[d];
      const auto [known, is_new] = extents.emplace(label, dim);
      if (is_new || (label >= dots && dim.is(1))) continue;
      if (label >= dots && known->second.is(1))
        known->second = dim;
      else
        KILN_TRY(c.require_equal(
            dim, known->second,
            label >= dots ? std::string("dims of '...'") : str_cat("dims '", static_cast<char>(label), "'")));
    }
  return extents;
}

Status infer_einsum(InferContext &c) {
  if (c.inputs.empty()) return c.fail("no operands; expected at least one");
  KILN_ASSIGN(const Equation equation, parse_equation(c));
  KILN_ASSIGN(const auto extents, extents_of(c, equation));
  Shape shape;
  for (int label : equation.result) shape.push_back(extents.at(label));
  c.results = {make_type(c.inputs[0].dtype, std::move(shape))};
  return {};
}

// ---- decomposition: from left to right, two operands at a time

struct Part {
  ValueId value;
  Labels labels;
};

class Sums {
 public:
  Sums(DecomposeContext &c, Equation equation) : c_(c), g_(c), equation_(std::move(equation)) {}

  Status run() {
    std::vector<Part> parts;
    for (size_t k = 0; k < c_.node.inputs.size(); ++k)
      parts.push_back(without_repeats({c_.node.inputs[k], equation_.operands[k]}));
    Part all = summed(parts[0], labels_from(parts, 1));
    for (size_t k = 1; k < parts.size(); ++k) {
      const Labels later = labels_from(parts, k + 1);
      Labels others = later;
      others.insert(others.end(), all.labels.begin(), all.labels.end());
      all = product(all, summed(parts[k], others), later);
    }
    return g_.give({permuted(all, equation_.result)});
  }

 private:
  // All labels of the parts from `first` on, and of the result: what has to stay.
  Labels labels_from(const std::vector<Part> &parts, size_t first) const {
    Labels all = equation_.result;
    for (size_t k = first; k < parts.size(); ++k) all.insert(all.end(), parts[k].labels.begin(), parts[k].labels.end());
    return all;
  }

  Part without_repeats(Part part) {
    for (size_t d = 0; d < part.labels.size();) {
      const auto again =
          std::find(part.labels.begin() + static_cast<ptrdiff_t>(d) + 1, part.labels.end(), part.labels[d]);
      if (again == part.labels.end()) {
        ++d;
        continue;
      }
      const int label = part.labels[d];
      part.value = g_("diagonal", {part.value},
                      {{"dim1", static_cast<int64_t>(d)}, {"dim2", static_cast<int64_t>(again - part.labels.begin())}});
      part.labels.erase(again);
      part.labels.erase(part.labels.begin() + static_cast<ptrdiff_t>(d));
      part.labels.push_back(label);
      d = 0;
    }
    return part;
  }

  Part summed(Part part, const Labels &kept) {
    std::vector<int64_t> dims;
    Labels left;
    for (size_t d = 0; d < part.labels.size(); ++d) {
      if (has(kept, part.labels[d]))
        left.push_back(part.labels[d]);
      else
        dims.push_back(static_cast<int64_t>(d));
    }
    if (dims.empty()) return part;
    return {g_("sum", {part.value}, {{"dims", ints(dims)}}), left};
  }

  ValueId permuted(const Part &part, const Labels &order) {
    std::vector<int64_t> dims;
    for (int label : order) dims.push_back(static_cast<int64_t>(place(part.labels, label)));
    return g_("permute", {part.value}, {{"dims", ints(dims)}});
  }

  // The shape of a part's labels, multiplied together in groups.
  Shape grouped(const Part &part, const Labels &apart, std::initializer_list<const Labels *> together) const {
    const Shape &dims = c_.type(part.value).dims;
    Shape shape;
    for (int label : apart) shape.push_back(dims[place(part.labels, label)]);
    for (const Labels *group : together) {
      Dim product = 1;
      for (int label : *group) product *= dims[place(part.labels, label)];
      shape.push_back(product);
    }
    return shape;
  }

  Part product(const Part &a, const Part &b, const Labels &later) {
    if (!g_.ok()) return a;
    Labels batch, m, n, k;
    for (int label : a.labels) (!has(b.labels, label) ? m : has(later, label) ? batch : k).push_back(label);
    for (int label : b.labels)
      if (!has(a.labels, label)) n.push_back(label);
    const auto in_order = [&](const Part &part, const Labels &first, const Labels &second) {
      Labels order = batch;
      order.insert(order.end(), first.begin(), first.end());
      order.insert(order.end(), second.begin(), second.end());
      return permuted(part, order);
    };
    Labels labels = batch;
    labels.insert(labels.end(), m.begin(), m.end());
    labels.insert(labels.end(), n.begin(), n.end());
    const Shape left = grouped(a, batch, {&m, &k}), right = grouped(b, batch, {&k, &n});
    const ValueId x = g_("reshape", {in_order(a, m, k)}, {{"shape", AttrValue(left)}});
    const ValueId y = g_("reshape", {in_order(b, k, n)}, {{"shape", AttrValue(right)}});
    const ValueId z = g_(k.empty() ? "mul" : "matmul", {x, y});
    Shape shape;
    for (size_t d = 0; d < batch.size(); ++d) shape.push_back(left[d].is(1) ? right[d] : left[d]);
    for (int label : m) shape.push_back(c_.type(a.value).dims[place(a.labels, label)]);
    for (int label : n) shape.push_back(c_.type(b.value).dims[place(b.labels, label)]);
    return {g_("reshape", {z}, {{"shape", AttrValue(shape)}}), labels};
  }

  DecomposeContext &c_;
  Composer g_;
  Equation equation_;
};

Status decompose_einsum(DecomposeContext &c) {
  std::vector<TensorType> types;
  for (ValueId input : c.node.inputs) types.push_back(c.type(input));
  InferContext inferred{c.op, types, c.node.attrs, {}, {}};
  KILN_ASSIGN(Equation equation, parse_equation(inferred));
  return Sums(c, std::move(equation)).run();
}

Status reference_einsum(ReferenceContext &c) {
  std::vector<TensorType> types;
  for (const RefTensor *input : c.inputs)
    types.push_back(make_type(input->dtype, {input->shape.begin(), input->shape.end()}));
  InferContext inferred{c.op, types, c.attrs, {}, {}};
  KILN_ASSIGN(const Equation equation, parse_equation(inferred));
  KILN_ASSIGN(const auto extents, extents_of(inferred, equation));
  // All labels, those of the result first: a walk over them comes to each of its elements once, and then sums.
  Labels all = equation.result;
  for (const auto &[label, extent] : extents)
    if (!has(all, label)) all.push_back(label);
  std::vector<int64_t> shape;
  for (int label : all) shape.push_back(extents.at(label).integer());
  std::vector<std::vector<int64_t>> strides;
  for (size_t k = 0; k < c.inputs.size(); ++k) {
    const std::vector<int64_t> &own = c.inputs[k]->shape, dense = dense_strides(own);
    std::vector<int64_t> &to = strides.emplace_back(all.size(), 0);
    for (size_t d = 0; d < own.size(); ++d)
      if (own[d] != 1) to[place(all, equation.operands[k][d])] += dense[d];
  }
  const int64_t results = c.results[0].size(), points = results > 0 ? count_of(shape) / results : 0;  // of each
  const std::vector<int64_t> own = dense_strides(shape);
  return dispatch_wide(c.results[0], [&](auto zero, auto wide) {
    using T = decltype(zero);
    using Wide = decltype(wide);
    std::vector<ReadElements<T>> operands;
    for (const RefTensor *operand : c.inputs) operands.emplace_back(*operand);
    const auto sum_points = [&](int64_t result) {
      Wide sum = 0;
      for (int64_t p = result * points; p < (result + 1) * points; ++p) {
        Wide product = 1;
        for (size_t k = 0; k < operands.size(); ++k) {
          int64_t at = 0;
          for (size_t d = 0; d < all.size(); ++d) at += p / own[d] % shape[d] * strides[k][d];
          product = mul(product, Wide(operands[k][static_cast<size_t>(at)]));
        }
        sum = add(sum, product);
      }
      return sum;
    };
    return make_each<T>(c, sum_points, 4 * points);
  });
}

void samples_einsum(SampleSink &out) {
  const Dim n = sym("n"), m = sym("m");
  const auto sample = [&](const char *name, const char *equation, std::vector<Shape> shapes,
                          std::map<std::string, int64_t> sizes = {}) {
    Sample made{.name = name, .attrs = {{"equation", std::string(equation)}}, .sizes = std::move(sizes)};
    for (Shape &shape : shapes) made.inputs.push_back(f32(std::move(shape)));
    out.push_back(std::move(made));
  };
  sample("matmul", "ij,jk->ik", {{7, 33}, {33, 9}});
  sample("implicit", "bij,bjk", {{2, 5, 7}, {2, 7, 3}});
  sample("transposed", "ij->ji", {{7, 5}});
  sample("trace", "ii->", {{9, 9}});
  sample("diagonal", "bii->bi", {{3, 5, 5}});
  sample("sum", "ijk->j", {{3, 5, 7}});
  sample("inner", "i,i->", {{65}, {65}});
  sample("outer", "i,j->ij", {{7}, {9}});
  sample("pointwise", "ij,ij->ij", {{5, 9}, {5, 9}});
  sample("heads", "bqhd,bkhd->bhqk", {{2, 5, 3, 8}, {2, 7, 3, 8}});
  sample("dots", "...ij,...jk->...ik", {{2, 1, 5, 7}, {3, 7, 4}});
  sample("three", "ij,jk,kl->il", {{5, 7}, {7, 3}, {3, 9}});
  sample("bilinear", "bn,anm,bm->ba", {{3, 5}, {4, 5, 7}, {3, 7}});
  sample("summed_first", "ij,k->i", {{5, 7}, {9}});
  sample("nothing", "ij,jk->ik", {{3, 0}, {0, 5}});
  sample("symbolic", "bij,bkj->bik", {{n, m, 5}, {n, 7, 5}}, {{"n", 2}, {"m", 9}});
}

// ---- outer

Status infer_outer(InferContext &c) {
  KILN_TRY(require_rank(c, 0, 1));
  KILN_TRY(require_rank(c, 1, 1));
  c.results = {make_type(c.inputs[0].dtype, {c.inputs[0].dims[0], c.inputs[1].dims[0]})};
  return {};
}
Status decompose_outer(DecomposeContext &c) {
  Composer g(c);
  return g.give({g("mul", {g("unsqueeze", {c.node.inputs[0]}, {{"dims", ints({1})}}), c.node.inputs[1]})});
}
Status reference_outer(ReferenceContext &c) {
  const int64_t columns = c.inputs[1]->size();
  return dispatch(*c.inputs[0], [&](auto zero) {
    using T = decltype(zero);
    const ReadElements<T> a(*c.inputs[0]), b(*c.inputs[1]);
    return make_each<T>(
        c, [&](int64_t k) { return mul(a[static_cast<size_t>(k / columns)], b[static_cast<size_t>(k % columns)]); });
  });
}
void samples_outer(SampleSink &out) {
  out.push_back({.name = "vectors", .inputs = {f32({17}), f32({33})}});
  out.push_back({.name = "integers", .inputs = {i64({5}), i64({3})}});
  out.push_back({.name = "nothing", .inputs = {f32({0}), f32({3})}});
  out.push_back({.name = "symbolic", .inputs = {f32({sym("n")}), f32({sym("m")})}, .sizes = {{"n", 5}, {"m", 9}}});
}

constexpr DTypes summed_types =
    float_types | dtypes(DType::i64, DType::i32, DType::i16) | dtypes(DType::u64, DType::u32, DType::u16);

const Op einsum_records[] = {
    {{.name = "einsum",
      .doc = "The sums of products that an equation names: \"ij,jk->ik\". Each letter is a dim; those that the result "
             "lacks are summed over, one of size 1 is not broadcast (PyTorch's and NumPy's is), one that stands twice "
             "in an operand is its diagonal, and \"...\" are the dims that no "
             "letter names, broadcast. Without an arrow the result has these and then the letters that stand once, in "
             "the alphabet's order. Operands are multiplied from left to right.",
      .args = {{"operands", "as the equation names them", summed_types, Arity::variadic}},
      .result_names = {"y"},
      .attrs = {{.name = "equation", .doc = "letters, commas and an arrow", .kind = AttrKind::text, .required = true}},
      .infer = infer_einsum},
     {.decompose = decompose_einsum,
      .reference = reference_einsum,
      .gradient = through_decomposition(),
      .samples = samples_einsum}},
    {{.name = "outer",
      .doc = "y[i, j] = a[i] * b[j].",
      .args = {{"a", "[n]", numeric_types}, {"b", "[m]", numeric_types}},
      .result_names = {"y"},
      .infer = infer_outer},
     {.decompose = decompose_outer,
      .reference = reference_outer,
      .gradient = through_decomposition(),
      .samples = samples_outer}},
};

}  // namespace

std::span<const Op> einsum_ops() { return einsum_records; }

}  // namespace kiln::ops
