#include "runtime/exec/presented.h"

#include <algorithm>

#include "runtime/exec/strided_copy.h"

namespace kiln {

PresentedOutput::PresentedOutput(const Plan &plan, const Signature &signature, const PlanSizes &numbers,
                                 const ResolvedSizes &sizes, size_t number)
    : signature_(signature),
      sizes_(sizes),
      declared_(plan.presented[number]),
      numbers_(numbers.presented[number]),
      slot_(signature.outputs().begin + declared_.output),
      strides_(signature.argument(slot_).dims.size()) {}

std::string PresentedOutput::describe() const {
  return str_cat(signature_.describe(slot_), " is a view of ", signature_.describe(declared_.input));
}

Status PresentedOutput::resolve() {
  laid_ = false;
  if (declared_.kind == Plan::Presented::Kind::any) return {};  // its array tells
  std::vector<int64_t> strides;
  for (const uint32_t stride : numbers_.strides) strides.push_back(sizes_[stride]);
  if (!is_view()) return set_strides(strides);
  strides_ = std::move(strides);
  offset_ = sizes_[numbers_.offset];
  return check_within_input();
}

Status PresentedOutput::check_within_input() const {
  const ResolvedArgument &input = sizes_.argument(declared_.input);
  if (argument().elements == 0) return {};
  const std::optional<ArraySpan> span = span_of(argument().dims, strides_);
  if (span && argument().dtype == input.dtype) {
    const auto size = static_cast<int64_t>(size_of(input.dtype));
    const int64_t elements = static_cast<int64_t>(input.span_bytes) / size;
    const int64_t least = span->below - static_cast<int64_t>(input.below_bytes) / size;
    if (offset_ >= least && offset_ <= least + elements - span->elements) return {};
  }
  return error(Code::corrupt, "the plan is damaged: ", describe(), ", and lies beyond it");
}

// Of an array that is written.
Status PresentedOutput::set_strides(std::span<const int64_t> strides) {
  if (laid_ && std::ranges::equal(strides, strides_)) return {};
  laid_ = false;
  const ResolvedArgument &a = argument();
  KILN_TRY(sizes_.check_written(slot_, strides));
  strides_.assign(strides.begin(), strides.end());
  const std::optional<ArraySpan> span = a.elements == 0 ? ArraySpan() : span_of(a.dims, strides_);
  int64_t bytes = 0;
  if (!span || __builtin_mul_overflow(span->elements, int64_t{size_of(a.dtype)}, &bytes))
    return error(Code::type_mismatch, signature_.describe(slot_), ": its size overflows");
  span_bytes_ = static_cast<uint64_t>(bytes);
  below_bytes_ = static_cast<uint64_t>(span->below) * size_of(a.dtype);
  laid_ = moved_ = true;
  return {};
}

Status PresentedOutput::set_array(const ArrayRef &array) {
  const ResolvedArgument &a = argument();
  const bool any = declared_.kind == Plan::Presented::Kind::any;
  if (!array.data) {
    if (any && a.late) span_bytes_ = 0;  // row-major, whatever its size will be
    return any && !a.late ? set_strides(a.strides) : Status();
  }
  if (!a.is_of_type(array)) return sizes_.check(slot_, array);
  const std::span<const int64_t> given(array.strides ? array.strides : a.strides.data(), a.dims.size());
  if (any) return set_strides(given);
  for (size_t d = 0; d < a.dims.size() && a.elements > 1; ++d)
    if (a.dims[d] != 1 && given[d] != strides_[d])
      return error(Code::type_mismatch, signature_.describe(slot_), ": stride of dim ", d, " is ", given[d],
                   ", expected ", strides_[d], " elements, as the graph declares it");
  return {};
}

bool PresentedOutput::move_to(void *data) {
  const bool moved = std::exchange(moved_, false) || data != data_;
  data_ = data;
  return moved;
}

bool PresentedOutput::is_row_major() const {
  const ResolvedArgument &a = argument();
  if (a.late || a.elements <= 1) return true;
  for (size_t d = 0; d < a.dims.size(); ++d)
    if (a.dims[d] != 1 && a.strides[d] != strides_[d]) return false;
  return true;
}

Status PresentedOutput::make_room(BufferRecycler &recycler) {
  if (is_row_major()) {
    made_.reset();
    return {};
  }
  const uint64_t bytes = argument().span_bytes;
  if (made_ && made_->memory.size_bytes() >= bytes) return {};
  made_.reset();
  auto acquired = recycler.acquire(bytes);
  if (!acquired.ok()) return acquired.take_status().with_prefix(str_cat(signature_.describe(slot_), ": "));
  made_ = std::move(acquired).value();
  return {};
}

void PresentedOutput::present(ThreadPool &pool, const void *input) {
  const ResolvedArgument &a = argument();
  if (is_view()) {
    const int64_t offset = a.elements == 0 ? 0 : offset_ * static_cast<int64_t>(size_of(a.dtype));
    data_ = const_cast<uint8_t *>(static_cast<const uint8_t *>(input)) + offset;
  } else if (made_) {
    copy_to_strides(pool, size_of(a.dtype), a.dims, made_->memory.data(), strides_, data_);
  } else if (a.late) {
    strides_ = a.strides;
  }
}

}  // namespace kiln
