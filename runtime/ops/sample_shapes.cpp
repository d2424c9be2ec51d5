#include "runtime/ops/sample_shapes.h"

#include <cassert>

namespace kiln::ops {

Shape shape_from(std::string_view text) {
  Shape shape;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    Result<Expr> dim = Expr::parse(text.substr(0, end));
    assert(dim.ok());
    shape.push_back(std::move(*dim));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shape;
}

}  // namespace kiln::ops
