// Decompositions that read as what they compute. For the files of this folder.
#pragma once
#include "runtime/ops/op.h"

namespace kiln::ops {

// Adds nodes one after the other; the first failure ends it, and is what give() returns.
class Composer {
 public:
  explicit Composer(DecomposeContext &context) : c_(context) {}

  ValueId operator()(std::string_view op, std::vector<ValueId> inputs, AttrMap attrs = {}) {
    return status_.ok() ? keep(c_.add(op, std::move(inputs), std::move(attrs))) : ValueId{};
  }
  // A scalar of `like`'s dtype.
  ValueId number(ValueId like, double value) {
    return status_.ok() ? keep(c_.scalar(c_.type(like).dtype, value)) : ValueId{};
  }
  ValueId full(DType dtype, const Shape &shape, double value) {
    return (*this)("full", {}, {{"dtype", dtype}, {"shape", AttrValue(shape)}, {"value", value}});
  }
  ValueId count(ValueId like, const Dim &value) {
    return status_.ok() ? keep(c_.count(c_.type(like).dtype, value)) : ValueId{};
  }
  ValueId convert(ValueId x, DType dtype) { return (*this)("convert", {x}, {{"dtype", dtype}}); }
  ValueId reshape(ValueId x, Shape shape) { return (*this)("reshape", {x}, {{"shape", std::move(shape)}}); }

  bool ok() const { return status_.ok(); }
  Status give(std::vector<ValueId> results) {
    c_.results = std::move(results);
    return std::move(status_);
  }

 private:
  ValueId keep(Result<ValueId> value) {
    if (value.ok()) return *value;
    status_ = value.take_status();
    return {};
  }

  DecomposeContext &c_;
  Status status_;
};

}  // namespace kiln::ops
