// Convolution of images by tiles: what transforms go to and from sums of products of whole matrices. A tile of m x m
// results of windows of 3 x 3 is A^T ((G w G^T) * (B^T x B)) A, where * is by elements: m + 2 squared products in place
// of 9 m squared. A. Lavin, S. Gray, "Fast algorithms for convolutional neural networks", 2015.
#include <array>

#include "runtime/ops/windows.h"

namespace kiln::ops {
namespace {

using kernel::BodyBuilder;
using kernel::Core;

struct Matrix {
  size_t rows, columns;
  std::span<const double> values;
  double at(size_t row, size_t column) const { return values[row * columns + column]; }
};

// B^T, G and A^T for a tile of `points - 1` results, as Toom and Cook make them of points of polynomials, of which
// infinity is the last.
template <size_t points>
struct Matrices {
  static constexpr size_t side = points + 1;
  std::array<double, side * side> input = {};
  std::array<double, side * 3> weight = {};
  std::array<double, (points - 1) * side> output = {};

  constexpr explicit Matrices(const std::array<double, points> &at) {
    for (size_t j = 0; j < side; ++j) {
      double scale = 1;
      input[j * side] = 1;  // the product of x - at[k], for all k but j
      for (size_t k = 0, degree = 0; k < points; ++k) {
        if (k == j) continue;
        for (size_t i = ++degree; i > 0; --i)
          input[j * side + i] = input[j * side + i - 1] - at[k] * input[j * side + i];
        input[j * side] *= -at[k];
        if (j < points) scale *= at[j] - at[k];
      }
      double power = 1;
      for (size_t i = 0; i < 3; ++i, power *= j < points ? at[j] : 1)
        weight[j * 3 + i] = j < points ? power / scale : i == 2;
      power = 1;
      for (size_t i = 0; i + 1 < points; ++i, power *= j < points ? at[j] : 1)
        output[i * side + j] = j < points ? power : i + 2 == points;
    }
  }
};
constexpr Matrices<3> of_two({0, 1, -1});
// A third of the error of 0, 1, -1, 2 and -2.
constexpr Matrices<5> of_four({0, .75, -.75, 1.5, -1.5});

struct Transforms {
  Matrix input, weight, output;
};
constexpr Transforms by_two = {{4, 4, of_two.input}, {4, 3, of_two.weight}, {2, 4, of_two.output}},
                     by_four = {{6, 6, of_four.input}, {6, 3, of_four.weight}, {4, 6, of_four.output}};

int64_t tile_of(const AttrMap &attrs) { return attrs.find("tile")->second.i64(); }
const Transforms &transforms_of(const AttrMap &attrs) { return tile_of(attrs) == 2 ? by_two : by_four; }
int64_t points_of(const AttrMap &attrs) { return (tile_of(attrs) + 2) * (tile_of(attrs) + 2); }

// ---- types

Status require_tile(const InferContext &c) {
  const int64_t tile = tile_of(c.attrs);
  return tile == 2 || tile == 4 ? Status() : c.fail("tile is ", tile, ", expected 2 or 4");
}

// [N, H, W, C] to [points, N, TH, TW, C].
Status infer_input(InferContext &c) {
  KILN_TRY(require_tile(c));
  KILN_TRY(require_rank(c, 0, 4));
  KILN_TRY(require_padding(c, 2));
  const TensorType &x = c.inputs[0];
  const std::vector<Ends> padding = padding_of(c.attrs, 2);
  Shape shape = {points_of(c.attrs), x.dims[0]};
  for (size_t d = 0; d < 2; ++d) {
    KILN_ASSIGN(const Dim count, window_count(c, x.dims[1 + d], 3, 1, padding[d], str_cat("x dim ", 1 + d)));
    shape.push_back(ceil_div(count, tile_of(c.attrs)));
  }
  shape.push_back(x.dims[3]);
  c.results = {make_type(x.dtype, std::move(shape))};
  return {};
}

// [O, C, 3, 3] to [points, C, O].
Status infer_weight(InferContext &c) {
  KILN_TRY(require_tile(c));
  KILN_TRY(require_rank(c, 0, 4));
  const TensorType &w = c.inputs[0];
  for (size_t d = 2; d < 4; ++d) KILN_TRY(c.require_equal(w.dims[d], 3, str_cat("weight dim ", d, " and 3")));
  c.results = {make_type(w.dtype, {points_of(c.attrs), w.dims[1], w.dims[0]})};
  return {};
}

// [points, N, TH, TW, O] to [N, TH, tile, TW, tile, O].
Status infer_output(InferContext &c) {
  KILN_TRY(require_tile(c));
  KILN_TRY(require_rank(c, 0, 5));
  const TensorType &sums = c.inputs[0];
  KILN_TRY(c.require_equal(sums.dims[0], points_of(c.attrs), "sums dim 0 and (tile + 2) * (tile + 2)"));
  const Dim tile = tile_of(c.attrs);
  c.results = {make_type(sums.dtype, {sums.dims[1], sums.dims[2], tile, sums.dims[3], tile, sums.dims[4]})};
  return {};
}

// ---- lowering

// The sum of values times numbers, which have one magnitude if they are to be multiplied by it once.
int sum_of(BodyBuilder &body, std::span<const double> numbers, std::span<const int> values) {
  double common = 0;
  bool is_common = true;
  for (const double number : numbers)
    if (number != 0) {
      is_common &= common == 0 || std::abs(number) == common;
      common = std::abs(number);
    }
  int sum = -1;
  const auto add = [&](bool negative) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] == 0 || (numbers[i] < 0) != negative) continue;
      const double factor = is_common ? 1 : std::abs(numbers[i]);
      const DType type = body.type(values[i]);
      int value = factor == 1 ? values[i] : body.op(Core::mul, values[i], body.constant(type, factor));
      if (sum < 0)
        sum = negative ? body.op(Core::neg, value) : value;
      else
        sum = body.op(negative ? Core::sub : Core::add, sum, value);
    }
  };
  add(false);
  add(true);
  if (!is_common || common == 1 || sum < 0) return sum;
  return body.op(Core::mul, sum, body.constant(body.type(sum), common));
}

// A matrix, and the values that its columns are multiplied by.
struct Terms {
  std::vector<std::vector<double>> rows;
  std::vector<int> values;
};

// The terms of a product. Of two columns after one another that differ in the signs of some rows alone, the sum and the
// difference of their values are made once.
Terms terms_of(BodyBuilder &body, const Matrix &matrix, std::span<const int> column) {
  Terms terms{std::vector<std::vector<double>>(matrix.rows), {}};
  const auto add = [&](int value, auto factor) {
    terms.values.push_back(value);
    for (size_t r = 0; r < matrix.rows; ++r) terms.rows[r].push_back(factor(r));
  };
  for (size_t c = 0; c < matrix.columns; ++c) {
    bool is_pair = c + 1 < matrix.columns, has_sum = false, has_difference = false;
    for (size_t r = 0; is_pair && r < matrix.rows; ++r) {
      const double first = matrix.at(r, c), second = matrix.at(r, c + 1);
      is_pair = std::abs(first) == std::abs(second);
      (first == second ? has_sum : has_difference) |= first != 0;
    }
    if (!is_pair || !has_sum || !has_difference) {
      add(column[c], [&](size_t r) { return matrix.at(r, c); });
      continue;
    }
    const auto part = [&](bool sum) {
      return
          [&matrix, c, sum](size_t r) { return (matrix.at(r, c) == matrix.at(r, c + 1)) == sum ? matrix.at(r, c) : 0; };
    };
    add(body.op(Core::add, column[c], column[c + 1]), part(true));
    add(body.op(Core::sub, column[c], column[c + 1]), part(false));
    ++c;
  }
  return terms;
}

// The matrix times a column. Of two rows after one another that differ in the signs of some columns alone, these
// columns are summed up once, and so are the others.
std::vector<int> product(BodyBuilder &body, const Matrix &matrix, std::span<const int> column) {
  const Terms terms = terms_of(body, matrix, column);
  std::vector<int> made;
  for (size_t r = 0; r < terms.rows.size(); ++r) {
    const std::vector<double> &row = terms.rows[r];
    std::vector<double> same(row.size()), turned(row.size());
    bool is_pair = r + 1 < terms.rows.size(), has_same = false, has_turned = false;
    for (size_t c = 0; is_pair && c < row.size(); ++c) {
      const double first = row[c], second = terms.rows[r + 1][c];
      is_pair = std::abs(first) == std::abs(second);
      (first == second ? has_same : has_turned) |= first != 0;
      (first == second ? same : turned)[c] = first;
    }
    if (!is_pair || !has_same || !has_turned) {
      made.push_back(sum_of(body, row, terms.values));
      continue;
    }
    const int kept = sum_of(body, same, terms.values), other = sum_of(body, turned, terms.values);
    made.push_back(body.op(Core::add, kept, other));
    made.push_back(body.op(Core::sub, kept, other));
    ++r;
  }
  return made;
}

// Yields the matrix times a square of values, each of which is loaded shortly before it is used, times the matrix
// transposed.
template <class Load>
void yield_products(BodyBuilder &body, const Matrix &matrix, Load load) {
  const size_t side = matrix.columns;
  std::vector<std::vector<int>> columns;
  for (size_t c = 0; c < side; ++c) {
    std::vector<int> column;
    for (size_t r = 0; r < side; ++r) column.push_back(load(static_cast<int64_t>(r), static_cast<int64_t>(c)));
    columns.push_back(product(body, matrix, column));
  }
  for (size_t r = 0; r < matrix.rows; ++r) {
    std::vector<int> row;
    for (size_t c = 0; c < side; ++c) row.push_back(columns[c][r]);
    for (const int value : product(body, matrix, row)) body.yield(value);
  }
}

Status lower_input(LowerContext &c) {
  const std::vector<Ends> padding = padding_of(c.attrs, 2);
  const Shape &x = c.inputs[0].dims;
  c.compute.unrolled = {0};
  yield_products(c.body, transforms_of(c.attrs).input, [&](int64_t row, int64_t column) {
    const Expr y = c.axis(2) * tile_of(c.attrs) + row - padding[0].before,
               z = c.axis(3) * tile_of(c.attrs) + column - padding[1].before;
    const int valid = both(c.body, inside(c.body, y, x[1]), inside(c.body, z, x[2]));
    return c.load(0, {c.axis(1), y, z, c.axis(4)}, valid);
  });
  return {};
}

Status lower_weight(LowerContext &c) {
  c.compute.unrolled = {0};
  yield_products(c.body, transforms_of(c.attrs).weight,
                 [&](int64_t row, int64_t column) { return c.load(0, {c.axis(2), c.axis(1), row, column}); });
  return {};
}

Status lower_output(LowerContext &c) {
  const Matrix &matrix = transforms_of(c.attrs).output;
  c.compute.unrolled = {2, 4};
  yield_products(c.body, matrix, [&](int64_t row, int64_t column) {
    const Expr point = row * static_cast<int64_t>(matrix.columns) + column;
    return c.load(0, {point, c.axis(0), c.axis(1), c.axis(3), c.axis(5)});
  });
  return {};
}

// ---- reference kernels: a sum over a square of places for each element

template <class Read>
Status make_products(ReferenceContext &c, const Matrix &matrix, Read read) {
  return with_wide(c.results[0], [&](auto zero) -> Status {
    using Wide = decltype(zero);
    const ReadElements<double> in(*c.inputs[0]);
    return make_each<double>(
        c,
        [&](int64_t k) {
          Wide sum = 0;
          const std::vector<int64_t> at = unflatten(k, c.results[0].shape);
          for (size_t a = 0; a < matrix.columns; ++a)
            for (size_t b = 0; b < matrix.columns; ++b) {
              const auto [row, column, element] = read(at, static_cast<int64_t>(a), static_cast<int64_t>(b));
              if (element >= 0)
                sum += static_cast<Wide>(matrix.at(static_cast<size_t>(row), a)) *
                       static_cast<Wide>(matrix.at(static_cast<size_t>(column), b)) *
                       static_cast<Wide>(in[static_cast<size_t>(element)]);
            }
          return static_cast<double>(sum);
        },
        static_cast<int64_t>(matrix.columns * matrix.columns));
  });
}

// Rows of the matrix, and the element that is read; below 0: a zero.
struct Factor {
  int64_t row, column, element;
};

Status reference_input(ReferenceContext &c) {
  const int64_t tile = tile_of(c.attrs), side = tile + 2;
  const std::vector<Ends> padding = padding_of(c.attrs, 2);
  return make_products(c, transforms_of(c.attrs).input, [&](const std::vector<int64_t> &at, int64_t a, int64_t b) {
    const std::array<int64_t, 4> from = {at[1], at[2] * tile + a - padding[0].before,
                                         at[3] * tile + b - padding[1].before, at[4]};
    return Factor{at[0] / side, at[0] % side, place_in(from, c.inputs[0]->shape)};
  });
}
Status reference_weight(ReferenceContext &c) {
  const int64_t side = tile_of(c.attrs) + 2;
  return make_products(c, transforms_of(c.attrs).weight, [&](const std::vector<int64_t> &at, int64_t a, int64_t b) {
    const std::array<int64_t, 4> from = {at[2], at[1], a, b};
    return Factor{at[0] / side, at[0] % side, place_in(from, c.inputs[0]->shape)};
  });
}
Status reference_output(ReferenceContext &c) {
  const int64_t side = tile_of(c.attrs) + 2;
  return make_products(c, transforms_of(c.attrs).output, [&](const std::vector<int64_t> &at, int64_t a, int64_t b) {
    const std::array<int64_t, 5> from = {a * side + b, at[0], at[1], at[3], at[5]};
    return Factor{at[2], at[4], place_in(from, c.inputs[0]->shape)};
  });
}

// ---- samples: of a sum of up to 36 products, some of 8 times an element

void add_tiles(SampleSink &out, const char *name, const Shape &x, AttrMap attrs,
               const std::map<std::string, int64_t> &sizes = {}) {
  for (const int64_t tile : {2, 4}) {
    attrs["tile"] = tile;
    out.push_back(sample_of("", x, attrs, sizes));
    out.back().name = str_cat(name, "_", tile);
    out.back().tolerance = 1e-4;
  }
}

void samples_input(SampleSink &out) {
  add_tiles(out, "whole_tiles", {2, 10, 6, 5}, {});
  add_tiles(out, "padded", {1, 7, 9, 17}, {{"padding", ints({1, 1})}});
  add_tiles(out, "uneven_ends", {1, 3, 5, 8}, {{"padding", ints({0, 2, 1, 3})}});
  add_tiles(out, "no_images", {0, 4, 4, 3}, {});
  add_tiles(out, "no_channels", {1, 4, 4, 0}, {});
  add_tiles(out, "symbolic", {sym("n"), 8, sym("w"), 9}, {{"padding", ints({1, 1})}}, {{"n", 2}, {"w", 5}});
}
void samples_weight(SampleSink &out) {
  add_tiles(out, "plain", {5, 9, 3, 3}, {});
  add_tiles(out, "one_channel", {8, 1, 3, 3}, {});
  add_tiles(out, "nothing", {0, 3, 3, 3}, {});
  add_tiles(out, "symbolic", {sym("o"), 4, 3, 3}, {}, {{"o", 7}});
}
void samples_output(SampleSink &out) {
  for (const int64_t tile : {2, 4}) {
    const Dim points = (tile + 2) * (tile + 2);
    const auto add = [&](const char *name, Dim n, Dim channels, std::map<std::string, int64_t> sizes) {
      out.push_back(
          sample_of("", {points, std::move(n), 3, 2, std::move(channels)}, {{"tile", tile}}, std::move(sizes)));
      out.back().name = str_cat(name, "_", tile);
      out.back().tolerance = 1e-4;
    };
    add("plain", 2, 9, {});
    add("one_channel", 1, 1, {});
    add("nothing", 0, 3, {});
    add("symbolic", sym("n"), 8, {{"n", 2}});
  }
}

// ---- records

AttrDef tile_attr() {
  return {.name = "tile", .doc = "results of a tile along each dim: 2 or 4", .kind = AttrKind::i64, .required = true};
}

Op transform(std::string_view name, std::string_view doc, ArgDef arg, std::vector<AttrDef> attrs,
             Status (*infer)(InferContext &), OpMeaning meaning) {
  Op op{{.name = name, .doc = doc, .args = {arg}, .result_names = {"y"}, .attrs = std::move(attrs), .infer = infer},
        meaning};
  op.attrs.insert(op.attrs.begin(), tile_attr());
  op.gradient = no_gradient("it is a step of a convolution, which is differentiated as a whole");
  return op;
}

constexpr DTypes transformed = dtypes(DType::f64, DType::f32);

const Op winograd_records[] = {
    transform(
        "winograd_input",
        "A step of a convolution with windows of 3 by 3, by tiles of results (rounding=relaxed makes it): of each "
        "tile, what is multiplied by winograd_weight, [(tile + 2)^2, N, tiles of H, tiles of W, C].",
        {"x", "[N, H, W, C]", transformed},
        {padding_attr(2,
                      "zeros at both ends of H and of W; or 2 numbers for "
                      "each, before and after")},
        infer_input, {.lower = lower_input, .reference = reference_input, .samples = samples_input}),
    transform("winograd_output",
              "A step of a convolution with windows of 3 by 3, by tiles of results (rounding=relaxed makes it): the "
              "tiles, [N, tiles of H, tile, tiles of W, tile, O], of the sums of products.",
              {"sums", "[(tile + 2)^2, N, tiles of H, tiles of W, O]", transformed}, {}, infer_output,
              {.lower = lower_output, .reference = reference_output, .samples = samples_output}),
    transform("winograd_weight",
              "A step of a convolution with windows of 3 by 3, by tiles of results (rounding=relaxed makes it): the "
              "weights, [(tile + 2)^2, C, O], of winograd_input's results.",
              {"weight", "[O, C, 3, 3]", transformed}, {}, infer_weight,
              {.lower = lower_weight, .reference = reference_weight, .samples = samples_weight})};

}  // namespace

std::span<const Op> winograd_ops() { return winograd_records; }

}  // namespace kiln::ops
