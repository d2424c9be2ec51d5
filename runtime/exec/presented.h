// Outputs that a call is not given row-major (Plan::Presented): by strides of their own, or as views of inputs.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/exec/memory.h"
#include "runtime/exec/signature.h"
#include "runtime/exec/thread_pool.h"

namespace kiln {

// One of them, at the sizes of the current call, and its array.
class PresentedOutput {
 public:
  // The plan's number `number`. `sizes` are the call's; all outlive this.
  PresentedOutput(const Plan &plan, const Signature &signature, const PlanSizes &numbers, const ResolvedSizes &sizes,
                  size_t number);
  uint32_t slot() const { return slot_; }
  bool is_view() const { return declared_.kind == Plan::Presented::Kind::view; }
  uint32_t input() const { return declared_.input; }  // that it is a view of
  std::string describe() const;                       // "output 'y' is a view of input 'x'"

  // When sizes have changed. Errors: declared strides lead to one element twice, at these; corrupt: a view that is not
  // within its input.
  Status resolve();
  // The array that a run is given; of none (data null) only what Kiln's memory for it must be. Errors: what is wrong
  // with its type or strides.
  Status set_array(const ArrayRef &array);
  // From now on the array's first element is at `data`. Whether that, or a stride, is another than before.
  bool move_to(void *data);
  // Has steps make it row-major: in the array, or in memory of its own. Not of a view.
  Status make_room(BufferRecycler &recycler);
  // The run has come to its end: brings it from there to its array. `input`: where the first element of a view's is.
  void present(ThreadPool &pool, const void *input);

  // Of a view: the input's memory is about to be another's.
  void let_go() { data_ = nullptr; }

  bool is_apart() const { return made_ != nullptr; }  // steps make it in memory of its own
  void *room() const { return made_ ? made_->memory.data() : is_view() ? nullptr : data_; }  // where steps make it
  void *data() const { return data_; }                                                       // of the first element
  const std::vector<int64_t> &strides() const { return strides_; }
  uint64_t span_bytes() const { return span_bytes_; }    // of the array
  uint64_t below_bytes() const { return below_bytes_; }  // of them, before the first element
  uint64_t held_bytes() const { return made_ ? made_->memory.size_bytes() : 0; }

 private:
  const ResolvedArgument &argument() const { return sizes_.argument(slot_); }
  Status set_strides(std::span<const int64_t> strides);
  Status check_within_input() const;
  bool is_row_major() const;

  const Signature &signature_;
  const ResolvedSizes &sizes_;
  const Plan::Presented &declared_;
  const PlanSizes::Presented &numbers_;
  const uint32_t slot_;
  std::vector<int64_t> strides_;  // in elements
  int64_t offset_ = 0;            // of a view
  uint64_t span_bytes_ = 0, below_bytes_ = 0;
  bool laid_ = false;  // strides and what follows from them are those of the sizes
  bool moved_ = true;  // strides have changed
  void *data_ = nullptr;
  std::shared_ptr<OutputBuffer> made_;  // where steps make it, unless they do so in its array
};

}  // namespace kiln
