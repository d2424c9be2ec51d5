// Any bytes as the plan of a record that is sound otherwise: it is refused, or runs without touching memory that is not
// there. Images and contracts stay as they were compiled (runtime/plan/verify_plan.h says why); what runs in place of
// the code reads, writes and relies on all that a contract allows.
//
// An input: which sample, the sizes of symbols, flags, the plan's bytes. Its first byte alone is a whole input: the
// sample's own plan.
#include <algorithm>
#include <cstdio>

#include "runtime/cache/record.h"
#include "runtime/exec/executable.h"
#include "runtime/exec/sizes.h"
#include "runtime/plan/contract_format.h"
#include "tests/fuzz/plan_forger.h"
#include "tests/fuzz/plan_samples.h"

extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

namespace {

using namespace kiln;

constexpr size_t symbol_count = 6, plan_at = 2 + symbol_count;
// Bytes of an array or storage: more is slow, and shows nothing that less does not.
constexpr int64_t largest = 1 << 16;

struct Input {
  const Artifact &sample;
  uint8_t flags = 0;
  std::array<uint8_t, symbol_count> sizes{};
  Bytes plan;
};

std::vector<Expr> known_of(const Artifact &artifact) {
  ByteWriter contracts;
  return serialize(artifact.contracts, contracts);
}

Input input_of(ByteSpan bytes) {
  const std::vector<Artifact> &samples = fuzz::samples();
  Input input{.sample = samples[bytes.empty() ? 0 : bytes[0] % samples.size()], .plan = {}};
  if (bytes.size() > plan_at) {
    input.flags = bytes[1];
    std::copy_n(bytes.begin() + 2, symbol_count, input.sizes.begin());
    input.plan.assign(bytes.begin() + plan_at, bytes.end());
  } else {
    input.sizes.fill(8);
    ByteWriter plan;
    serialize(input.sample.plan, known_of(input.sample), plan);
    input.plan = plan.take();
  }
  return input;
}

// The sample's record with another section `plan`, all checksums right.
Bytes record_with(const Bytes &plan, const Artifact &sample) {
  const Bytes sound = write_artifact(sample);
  const Result<RecordReader> record = RecordReader::open(sound);
  RecordWriter forged;
  for (SectionKind kind :
       {SectionKind::components, SectionKind::plan, SectionKind::images, SectionKind::contracts, SectionKind::kernels,
        SectionKind::constants, SectionKind::graph, SectionKind::report, SectionKind::source}) {
    const Result<ByteSpan> bytes = record->section(kind);
    forged.add(kind, kind == SectionKind::plan ? plan : Bytes(bytes->begin(), bytes->end()));
  }
  return forged.finish(sample.graph_key);
}

// Arrays as the plan wants them at these sizes, each an allocation of its own.
class Arrays {
 public:
  explicit Arrays(const Executable &executable) : plan_(executable.plan()), sizes_(executable.sizes()) {}

  bool make(std::span<const uint8_t> symbols) {
    std::vector<int64_t> values(plan_.symbols.size()), all(sizes_.sizes.count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = symbols[i % symbols.size()];
    sizes_.sizes.evaluate(values, all);
    for (const std::vector<uint32_t> *storages : {&sizes_.arena, &sizes_.prepared})
      for (uint32_t storage : *storages)
        if (all[storage] > largest) return false;
    arrays_.clear();
    arrays_.resize(sizes_.arguments.size());
    for (size_t i = 0; i < arrays_.size(); ++i)
      if (!make_one(i, all)) return false;
    return true;
  }
  ArrayRef ref(size_t slot) const {
    const Array &a = arrays_[slot];
    return {a.data.get() + a.below, dtype(slot), static_cast<uint32_t>(a.dims.size()), a.dims.data(), a.strides.data()};
  }

 private:
  struct Array {
    std::unique_ptr<uint8_t[]> data;
    size_t below = 0;  // how many bytes lie before the first element
    std::vector<int64_t> dims, strides;
  };
  DType dtype(size_t slot) const {
    for (const std::vector<Plan::Argument> *list : {&plan_.inputs, &plan_.parameters, &plan_.outputs}) {
      if (slot < list->size()) return (*list)[slot].dtype;
      slot -= list->size();
    }
    return DType::none;
  }
  bool make_one(size_t slot, const std::vector<int64_t> &all) {
    Array &a = arrays_[slot];
    int64_t last = 0, below = 0;
    bool empty = false;
    for (uint32_t number : sizes_.arguments[slot].dims) a.dims.push_back(all[number]);
    for (uint32_t number : sizes_.arguments[slot].strides) a.strides.push_back(all[number]);
    for (size_t d = 0; d < a.dims.size(); ++d) {
      if (a.dims[d] < 0 || a.dims[d] > largest || a.strides[d] < -largest || a.strides[d] > largest) return false;
      empty |= a.dims[d] == 0;
      const int64_t reach = std::max<int64_t>(a.dims[d] - 1, 0) * a.strides[d];
      last += std::abs(reach);
      below -= std::min<int64_t>(reach, 0);
    }
    const int64_t bytes = empty ? 0 : (last + 1) * size_of(dtype(slot));
    if (bytes > largest) return false;
    a.data = std::make_unique<uint8_t[]>(static_cast<size_t>(bytes));
    if (!empty) a.below = static_cast<size_t>(below) * size_of(dtype(slot));
    if (a.dims.empty() && !all.empty()) a.data[0] = static_cast<uint8_t>(all[0]);  // a size, or whether to go on
    return true;
  }

  const Plan &plan_;
  const PlanSizes &sizes_;
  std::vector<Array> arrays_;
};

// Two runs, of other sizes if `input` says so. Errors are fine.
void run(const Input &input, std::shared_ptr<const Executable> executable) {
  const Plan &plan = executable->plan();
  const auto inputs = static_cast<uint32_t>(plan.inputs.size());
  const auto first_output = inputs + static_cast<uint32_t>(plan.parameters.size());
  Result<std::unique_ptr<Call>> call = Call::create(executable);
  if (!call.ok()) return;
  std::vector<Arrays> kept;  // what is bound must stay
  kept.reserve(2);
  for (const auto sizes : {std::span(input.sizes).first(3), std::span(input.sizes).last(3)}) {
    Arrays &arrays = kept.emplace_back(*executable);
    if (!arrays.make(sizes)) return;
    for (uint32_t p = inputs; p < first_output; ++p)
      if (!(*call)->bind(p, arrays.ref(p), nullptr).ok()) return;
    std::vector<ArrayRef> given;
    for (uint32_t slot = 0; slot < inputs; ++slot) given.push_back(arrays.ref(slot));
    for (uint32_t i = 0; i < plan.outputs.size() && (input.flags & 1); ++i)
      given.push_back(arrays.ref(first_output + i));
    (void)(*call)->run(given);
  }
}

}  // namespace

// Memory for what a forged plan bounds a size by is refused, as a machine would that lacks it.
extern "C" const char *__asan_default_options() { return "allocator_may_return_null=1:max_allocation_size_mb=1024"; }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const Input input = input_of({data, size});
  Result<Artifact> read = read_artifact(record_with(input.plan, input.sample));
  if (!read.ok()) {
    if (size <= plan_at) std::abort();  // the sample itself
    return 0;
  }
  const auto artifact = std::make_shared<const Artifact>(std::move(*read));
  fuzz::running = &artifact->contracts;
  fuzz::launches_left = 1000;
  static const auto pool = std::make_shared<ThreadPool>(1);
  Result<std::shared_ptr<const Executable>> executable =
      Executable::load(artifact, builtin_ops(), pool, artifact->build_id);
  if (executable.ok()) run(input, std::move(*executable));
  return 0;
}

// Half of the time a plan is changed as a plan, otherwise as bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
  if (size > 1 && seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  Input input = input_of({data, size});
  const std::vector<Expr> known = known_of(input.sample);
  ByteReader in(input.plan);
  Result<Plan> plan = parse_plan(in, known);
  if (plan.ok()) {
    fuzz::PlanForger(*plan, seed).forge();
    ByteWriter out;
    serialize(*plan, known, out);
    input.plan = out.take();
  }
  ByteWriter out;
  out.put<uint8_t>(size == 0 ? 0 : data[0]);
  out.put(input.flags);
  out.raw(input.sizes);
  out.raw(input.plan);
  Bytes bytes = out.take();
  if (bytes.size() > max_size) return size;
  std::ranges::copy(bytes, data);
  if (seed % 8 < 3) return plan_at + LLVMFuzzerMutate(data + plan_at, bytes.size() - plan_at, max_size - plan_at);
  if (seed % 8 == 3) (void)LLVMFuzzerMutate(data + 1, plan_at - 1, plan_at - 1);
  return bytes.size();
}
