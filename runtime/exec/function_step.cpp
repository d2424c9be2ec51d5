#include "runtime/exec/function_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kiln {
namespace {

using Bound = FunctionBinding::Argument;

// Of a float of the type, its bits.
uint64_t bits_of(double value, DType type) {
  uint64_t bits = 0;
  const auto single = static_cast<float>(value);
  if (type == DType::f32)
    std::memcpy(&bits, &single, sizeof single);
  else
    std::memcpy(&bits, &value, sizeof value);
  return bits;
}

}  // namespace

FunctionStep::FunctionStep(const Function &function, const FunctionBinding &binding, const Node &node)
    : function_(function), binding_(binding), node_(node), call_([this] { return call(); }) {
  const size_t count = binding_.arguments.size();
  words_.resize(count);
  tensors_.resize(count);
  pointees_.resize(count);
  originals_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const Bound &argument = binding_.arguments[i];
    values_.push_back(&words_[i]);
    if (argument.kind == Kind::user) words_[i] = reinterpret_cast<uintptr_t>(function.user);
    if (argument.kind == Kind::tensor) words_[i] = reinterpret_cast<uintptr_t>(&tensors_[i]);
    if (argument.kind == Kind::tensor || argument.kind == Kind::data || argument.kind == Kind::inout)
      placed_.push_back({argument.kind, i, argument.array, argument.operand});
    if (argument.kind == Kind::scalar && argument.by_pointer) pointers_.push_back(i);
  }
}

std::string FunctionStep::of_function() const {
  return str_cat("[", node_.op->name, "] function '", function_.name, "': ");
}

Status FunctionStep::check_sizes(const std::vector<std::vector<int64_t>> &dims) const {
  for (const FunctionBinding::Equal &check : binding_.checks) {
    const int64_t left = evaluate(check.left, dims), right = evaluate(check.right, dims);
    if (left != right)
      return error(Code::type_mismatch, of_function(), "its signature wants, ", check.what, ": it is ", left, ", not ",
                   right);
  }
  return {};
}

Status FunctionStep::set_scalar(size_t number, const std::vector<std::vector<int64_t>> &dims) {
  const Bound &argument = binding_.arguments[number];
  const size_t size = size_of(argument.type);
  std::vector<uint64_t> words;
  for (const double value : argument.numbers) words.push_back(bits_of(value, argument.type));
  for (const Expr &value : argument.values) {
    const int64_t is = evaluate(value, dims);
    if (!fits(is, argument.type))
      return error(Code::type_mismatch, of_function(), "'",
                   function_.signature.text_of(function_.signature.arguments[number]), "' is ", is, ", which is no ",
                   name_of(argument.type));
    words.push_back(static_cast<uint64_t>(is));
  }
  if (!argument.by_pointer) {
    words_[number] = words[0];
    return {};
  }
  std::vector<uint64_t> &memory = originals_[number];
  const size_t text = argument.text.size() + 1;  // with its end
  memory.assign(std::max(words.size() * size, text) / sizeof(uint64_t) + 1, 0);
  auto *to = reinterpret_cast<uint8_t *>(memory.data());
  std::memcpy(to, argument.text.data(), argument.text.size());
  for (size_t i = 0; i < words.size(); ++i) std::memcpy(to + i * size, &words[i], size);
  pointees_[number] = memory;
  words_[number] = reinterpret_cast<uintptr_t>(pointees_[number].data());
  return {};
}

Status FunctionStep::resize(const kiln::Signature &signature, const ResolvedSizes &sizes) {
  dims_.clear();
  bytes_.clear();
  for (uint32_t slot = 0; slot < signature.count(); ++slot) {
    const ResolvedArgument &array = sizes.argument(slot);
    dims_.emplace_back(array.dims.begin(), array.dims.end());
    bytes_.push_back(array.span_bytes);
  }
  KILN_TRY(check_sizes(dims_));
  std::vector<uint64_t> scratch;
  for (size_t i = 0; i < binding_.arguments.size(); ++i) {
    const Bound &argument = binding_.arguments[i];
    if (argument.kind == Kind::scalar) KILN_TRY(set_scalar(i, dims_));
    if (argument.kind == Kind::scratch)
      scratch.push_back(static_cast<uint64_t>(std::max<int64_t>(evaluate(argument.values[0], dims_), 0)));
    if (argument.kind != Kind::tensor) continue;
    const ResolvedArgument &array = sizes.argument(argument.array);
    const DTypeInfo &type = dtype_info(array.dtype);
    tensors_[i] = {.data = nullptr,
                   .device = {kDLCPU, 0},
                   .ndim = static_cast<int32_t>(array.dims.size()),
                   .dtype = {type.dlpack_code, type.dlpack_bits, 1},
                   .shape = dims_[argument.array].data(),
                   .strides = nullptr,
                   .byte_offset = 0};
  }
  KILN_TRY(scratch_.resize(scratch, "scratch of a function"));
  for (size_t i = 0, next = 0; i < binding_.arguments.size(); ++i)
    if (binding_.arguments[i].kind == Kind::scratch) words_[i] = reinterpret_cast<uintptr_t>(scratch_[next++]);
  return {};
}

void *FunctionStep::call() {
  returned_ = function_.native.call(function_.pointer, values_.data());
  const bool is_error = function_.signature.returns == FunctionSignature::Return::error;
  return is_error ? reinterpret_cast<void *>(returned_) : nullptr;
}

Status FunctionStep::run(std::span<void *const> data) {
  for (const Placed &at : placed_) {
    if (at.kind == Kind::tensor) {
      tensors_[at.argument].data = data[at.array];
      continue;
    }
    words_[at.argument] = reinterpret_cast<uintptr_t>(data[at.array]);
    if (at.kind == Kind::inout && data[at.array] != data[at.operand] && bytes_[at.array] > 0)
      std::memcpy(data[at.array], data[at.operand], bytes_[at.array]);
  }
  for (const uint32_t i : pointers_)
    std::memcpy(pointees_[i].data(), originals_[i].data(), originals_[i].size() * sizeof(uint64_t));
  Status status = function_.owner->run(call_);
  const auto code = static_cast<int32_t>(returned_);
  if (status.ok() && function_.signature.returns == FunctionSignature::Return::code && code != 0)
    status = error(Code::plugin_failed, "it returned ", code);
  if (status.ok()) return {};
  if (status.info()->plugin.empty()) status.info()->plugin = function_.plugin;
  return std::move(status).with_prefix(of_function());
}

}  // namespace kiln
