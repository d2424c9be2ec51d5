#include "abi/src/views.h"

#include <deque>

#include "abi/src/convert.h"
#include "abi/src/handles.h"

namespace kiln::abi {

// A list in C form, where AttrValue's own vector is not one already. Only the member of its kind is used.
struct Views::List {
  std::vector<kiln_text> texts;
  std::vector<kiln_dtype> dtypes;
  std::vector<kiln_dim> dims;
  std::deque<kiln_graph> graphs;
  std::vector<const kiln_graph *> graph_handles;
  std::vector<const DLTensor *> tensors;
  std::vector<uint8_t> booleans;
  const void *data = nullptr;
};

struct Views::Tensor {
  std::vector<int64_t> shape;
  DLTensor tensor{};
};

Views::Views() = default;
Views::~Views() = default;

void Views::clear() {
  std::lock_guard lock(mutex_);
  lists_.clear();
  tensors_.clear();
}

const DLTensor *Views::tensor(const TensorData &data) {
  std::lock_guard lock(mutex_);
  std::unique_ptr<Tensor> &view = tensors_[&data];
  if (!view) {
    view = std::make_unique<Tensor>();
    view->shape = data.shape;
    // DLPack has no const: what is handed out is `const DLTensor *`, and the header says that it is for reading.
    view->tensor.data = const_cast<uint8_t *>(data.bytes.data());
    view->tensor.device = {kDLCPU, 0};
    view->tensor.ndim = static_cast<int32_t>(view->shape.size());
    view->tensor.dtype = dlpack_type(data.dtype);
    view->tensor.shape = view->shape.data();
  }
  return &view->tensor;
}

kiln_attr Views::attr(const std::shared_ptr<Context> &context, std::string_view name, const AttrValue &value) {
  kiln_attr out{};
  out.name = name.data();
  out.name_size = name.size();
  out.kind = static_cast<uint32_t>(value.kind()) | (value.is_list ? KILN_ATTR_LIST : 0);
  out.count = value.size();
  if (const auto *integers = std::get_if<std::vector<int64_t>>(&value.items)) {
    out.data = integers->data();
    return out;
  }
  if (const auto *floats = std::get_if<std::vector<double>>(&value.items)) {
    out.data = floats->data();
    return out;
  }
  auto list = std::make_unique<List>();
  auto fill = [&](const auto &from, auto &to, auto convert) {
    for (const auto &element : from) to.push_back(convert(element));
    list->data = to.data();
  };
  switch (value.kind()) {
    case AttrKind::text:
      fill(std::get<2>(value.items), list->texts, [](const std::string &t) { return text_view(t); });
      break;
    case AttrKind::dtype:
      fill(std::get<3>(value.items), list->dtypes, [](DType d) { return static_cast<kiln_dtype>(d); });
      break;
    case AttrKind::dim:
      fill(std::get<4>(value.items), list->dims, [&](const Dim &d) { return write_dim(*context, d); });
      break;
    case AttrKind::graph:
      fill(std::get<5>(value.items), list->graph_handles,
           [&](const GraphPtr &graph) { return &list->graphs.emplace_back(context, graph); });
      break;
    case AttrKind::tensor:
      fill(std::get<6>(value.items), list->tensors, [&](const TensorPtr &t) { return tensor(*t); });
      break;
    case AttrKind::boolean:
      fill(std::get<7>(value.items), list->booleans, [](bool b) { return static_cast<uint8_t>(b); });
      break;
    case AttrKind::i64:
    case AttrKind::f64:
      break;
  }
  std::lock_guard lock(mutex_);
  out.data = lists_.try_emplace(&value, std::move(list)).first->second->data;  // another thread's, if it was faster
  return out;
}

}  // namespace kiln::abi
