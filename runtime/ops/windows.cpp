#include "runtime/ops/windows.h"

namespace kiln::ops {

size_t space_of(const OpSchema &op) {
  const size_t digit = op.name.find_first_of("123");
  return static_cast<size_t>(op.name[digit] - '0');
}

std::string_view layout_doc(size_t n) { return n == 1 ? "[N, C, W]" : n == 2 ? "[N, C, H, W]" : "[N, C, D, H, W]"; }

AttrDef stride_attr(size_t n) {
  return list("stride", "steps from window to window, along each dim of space", std::vector<int64_t>(n, 1));
}
AttrDef dilation_attr(size_t n) {
  return list("dilation", "steps between the elements of a window, along each dim of space",
              std::vector<int64_t>(n, 1));
}
AttrDef padding_attr(size_t n, std::string_view doc) { return list("padding", doc, std::vector<int64_t>(n, 0)); }

Status require_padding(const InferContext &c, size_t n) {
  const size_t count = c.attr("padding").i64_list().size();
  if (count != n && count != 2 * n)
    return c.fail("padding has ", count, " values, expected ", n, ", or ", 2 * n, ": before and after each dim");
  return require_integers(c, "padding", count, 0);
}

std::vector<Ends> padding_of(const AttrMap &attrs, size_t n) {
  const std::vector<int64_t> &padding = attrs.find("padding")->second.i64_list();
  std::vector<Ends> ends;
  for (size_t d = 0; d < n; ++d)
    ends.push_back(padding.size() == n ? Ends{padding[d], padding[d]} : Ends{padding[2 * d], padding[2 * d + 1]});
  return ends;
}

AttrValue padding_as(std::span<const Ends> ends) {
  std::vector<int64_t> padding;
  for (const auto &[before, after] : ends) padding.insert(padding.end(), {before, after});
  return ints(std::move(padding));
}

Dim window_extent(const Dim &count, int64_t step) { return (count - 1) * step + 1; }

std::string_view by_size(const OpSchema &op) { return op.find_attr("size") ? " by size" : ""; }

std::string windows_by(const OpSchema &op) {
  std::string names;
  for (const char *name : {"size", "kernel", "stride", "padding", "dilation"})
    if (op.find_attr(name)) str_append(names, str_cat(names.empty() ? "" : ", ", name));
  return str_cat("the number of windows by ", names);
}

Result<Dim> window_count(InferContext &c, const Dim &size, const Dim &extent, int64_t stride, Ends padding,
                         std::string_view what) {
  const Dim padded = size + Dim(padding.before) + Dim(padding.after);  // as Dims: they saturate
  KILN_TRY(require_at_most(c, extent, padded,
                           str_cat("kernel", c.op.find_attr("dilation") ? " by dilation" : "", " <= ", what,
                                   by_size(c.op), " with padding")));
  return floor_div(padded - extent, stride) + 1;
}

std::vector<Expr> unflatten(const Expr &k, std::span<const Dim> extents) {
  std::vector<Expr> index(extents.size());
  Expr step = 1;
  for (size_t d = extents.size(); d-- > 0; step = step * extents[d])
    index[d] = d == 0 ? floor_div(k, step) : mod(floor_div(k, step), extents[d]);
  return index;
}

std::vector<int64_t> unflatten(int64_t k, std::span<const int64_t> extents) {
  std::vector<int64_t> index(extents.size());
  for (size_t d = extents.size(); d-- > 0; k /= extents[d]) index[d] = k % extents[d];
  return index;
}

int64_t place_in(std::span<const int64_t> index, std::span<const int64_t> shape) {
  int64_t place = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (index[d] < 0 || index[d] >= shape[d]) return -1;
    place = place * shape[d] + index[d];
  }
  return place;
}

AttrValue each(size_t n, int64_t value) { return ints(std::vector<int64_t>(n, value)); }

AttrValue uneven_ends(size_t n) {
  std::vector<Ends> ends;
  for (size_t d = 0; d < n; ++d) ends.push_back({static_cast<int64_t>(d), 2});
  return padding_as(ends);
}

double keys_cubic(double u, double a) {
  if (u <= 1) return ((a + 2) * u - (a + 3)) * u * u + 1;
  return u < 2 ? (((u - 5) * u + 8) * u - 4) * a : 0;
}

}  // namespace kiln::ops
