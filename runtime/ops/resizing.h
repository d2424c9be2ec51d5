// What the ops that resize share with their gradients: attributes, and which elements of x each of the result's is made
// of. For the files of this folder.
#pragma once
#include "runtime/ops/composer.h"
#include "runtime/ops/windows.h"

namespace kiln::ops {

inline bool is_cubic(const OpSchema &op) { return op.name.starts_with("resize_cubic"); }
// The scale of dim d of space as it is given, or 0.
double resize_scale(const AttrMap &attrs, size_t d);
// [N, C, ...] with dims of space as "size" tells; all of both are to have an element. `x` is what an error calls it.
Result<Shape> resized_shape(InferContext &c, const TensorType &x, std::string_view name);
// Whether align_corners, half_pixel and antialias go together.
Status require_filter(const InferContext &c);

// A table [to, taps] of elements of dim d of space, which has `from`, and their weights.
struct ResizeTable {
  ValueId weights, indices;
};
// Whether there is something to do along dim d.
bool resizes(const AttrMap &attrs, size_t d, const Dim &from, const Dim &to);
ResizeTable resize_table(DecomposeContext &c, Composer &g, size_t d, const Dim &from, const Dim &to, DType dtype);

// ---- reference kernels

// The element of dim d of space that place `at` shows.
int64_t nearest_at(const AttrMap &attrs, size_t d, int64_t at, int64_t from, int64_t to);
// Of the elements of `from`, those that each of `to` is made of: (number, weight), with no weight 0.
using Terms = std::vector<std::pair<int64_t, double>>;
class ResizeTerms {
 public:
  ResizeTerms(const AttrMap &attrs, bool cubic, const std::vector<int64_t> &from, const std::vector<int64_t> &to);
  // Of element k.
  std::vector<std::pair<size_t, long double>> at(int64_t k) const;

 private:
  std::vector<int64_t> to_, strides_, places_;
  std::vector<std::vector<Terms>> along_;  // of each dim, of each place along it
};

// ---- records

std::vector<AttrDef> resize_attrs(std::string_view size_doc, std::vector<AttrDef> more);
AttrDef half_pixel_attr(std::string_view doc, bool fallback);
std::vector<AttrDef> filter_attrs();

// ---- samples

struct ResizeSample {
  const char *name, *x, *size;
  AttrMap attrs = {};
  std::map<std::string, int64_t> sizes = {};
};
void add_resize_samples(SampleSink &out, std::vector<ResizeSample> all);
AttrValue reals(std::vector<double> values);

}  // namespace kiln::ops
