// Views of Kiln's values in C form, where the two differ in memory: texts, dims, dtypes, booleans, graphs, tensors. A
// view is made when it is first asked for and lives until clear() or its owner's end. Threads: any.
#pragma once
#include <kiln/kiln.h>

#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "runtime/graph/attr.h"

namespace kiln {
class Context;
}

namespace kiln::abi {

class Views {
 public:
  // `name` and `value` must live as long as the view.
  kiln_attr attr(const std::shared_ptr<Context> &context, std::string_view name, const AttrValue &value);
  const DLTensor *tensor(const TensorData &data);
  void clear();

  Views();
  ~Views();

 private:
  struct List;
  struct Tensor;
  std::mutex mutex_;
  std::map<const AttrValue *, std::unique_ptr<List>> lists_;
  std::map<const TensorData *, std::unique_ptr<Tensor>> tensors_;
};

}  // namespace kiln::abi
