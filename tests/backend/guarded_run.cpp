#include "tests/backend/guarded_run.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

#include "runtime/cache/artifact_bytes.h"
#include "tests/backend/backends.h"
#include "tests/unit/jit/llvm/vector_forms.h"

namespace kiln::testing {
namespace {

// An array at the very begin or end of its pages, in the memory order of its strides.
class Array {
 public:
  // Without `data` its elements are to be written.
  Array(const TensorData &type, std::vector<int64_t> strides, GuardedBytes::Place place, const Bytes *data)
      : shape_(type.shape), strides_(std::move(strides)), dtype_(type.dtype), count_(type.element_count()) {
    int64_t span = count_ > 0, below = 0;  // elements from the lowest to past the highest; those before the first
    for (size_t d = 0; d < shape_.size() && count_ > 0; ++d) {
      const int64_t reach = (shape_[d] - 1) * strides_[d];
      span += std::abs(reach);
      below -= std::min<int64_t>(reach, 0);
    }
    bytes_ = std::make_shared<GuardedBytes>(static_cast<size_t>(span) * size_of(dtype_), place);
    begin_ = static_cast<size_t>(bytes_->begin() - bytes_->pages()) + static_cast<size_t>(below) * size_of(dtype_);
    if (data) for_each([&](size_t k, size_t at) { std::memcpy(memory() + at, data->data() + k, size_of(dtype_)); });
  }
  ArrayRef ref() const {
    return {.data = memory() + begin_,
            .dtype = dtype_,
            .rank = static_cast<uint32_t>(shape_.size()),
            .shape = shape_.data(),
            .strides = strides_.data()};
  }
  TensorData data() const {
    TensorData data{dtype_, shape_, Bytes(static_cast<size_t>(count_) * size_of(dtype_))};
    for_each([&](size_t k, size_t at) { std::memcpy(data.bytes.data() + k, memory() + at, size_of(dtype_)); });
    return data;
  }
  bool surroundings_are_whole() const {
    std::vector<uint8_t> expected(bytes_->span(), GuardedBytes::untouched);
    for_each([&](size_t, size_t at) { std::memcpy(expected.data() + at, memory() + at, size_of(dtype_)); });
    return std::memcmp(expected.data(), memory(), expected.size()) == 0;
  }

 private:
  uint8_t *memory() const { return bytes_->pages(); }

  // Calls fn(where the element's bytes are in dense data, where in the pages).
  template <class Fn>
  void for_each(Fn fn) const {
    const size_t size = size_of(dtype_);
    for (int64_t k = 0; k < count_; ++k) {
      int64_t rest = k, at = 0;
      for (size_t d = shape_.size(); d-- > 0; rest /= shape_[d]) at += rest % shape_[d] * strides_[d];
      fn(static_cast<size_t>(k) * size, begin_ + static_cast<size_t>(at) * size);
    }
  }

  std::vector<int64_t> shape_, strides_;
  DType dtype_;
  int64_t count_;
  size_t begin_ = 0;
  std::shared_ptr<GuardedBytes> bytes_;  // a copy of an array is the same memory
};

// By position: the inputs that copy_ writes.
std::vector<size_t> written_inputs(const Graph &graph) {
  std::vector<size_t> written;
  for (size_t k = 0; k < graph.inputs().size(); ++k)
    for (const Node &node : graph.nodes())
      if (node.op && node.op->flags & op_flags::mutates && node.inputs[0].node == graph.inputs()[k]) {
        written.push_back(k);
        break;
      }
  return written;
}

// KILN_GUARD_PAGES as long as it lives.
class GuardedAreas {
 public:
  explicit GuardedAreas(GuardedBytes::Place place) {
    setenv("KILN_GUARD_PAGES", place == GuardedBytes::Place::end ? "1" : "2", 1);
  }
  ~GuardedAreas() { unsetenv("KILN_GUARD_PAGES"); }
  GuardedAreas(const GuardedAreas &) = delete;
  GuardedAreas &operator=(const GuardedAreas &) = delete;
};

// Whether it speaks of a size that the call does not give.
bool depends_on_the_run(const TensorType &type, const SymbolSizes &sizes) {
  std::set<std::string> used;
  for (const Dim &dim : type.dims) dim.collect_symbols(used);
  return !std::ranges::all_of(used, [&](const std::string &symbol) { return sizes.contains(symbol); });
}

Result<Results> make_call(Call &call, const Graph &graph, const GraphCall &now, GuardedBytes::Place place,
                          bool bind_parameters) {
  const size_t inputs = graph.inputs().size(), leaves = inputs + graph.parameters().size();
  const std::vector<size_t> written = written_inputs(graph);
  std::vector<Array> arrays;
  for (size_t k = 0; k < leaves; ++k) {
    const Node &leaf = *graph.find(k < inputs ? graph.inputs()[k] : graph.parameters()[k - inputs]);
    const TensorData &data = now.arguments[k];
    arrays.emplace_back(data, shape_at(leaf.results[0].strides, now.sizes), place, &data.bytes);
  }
  std::vector<bool> left_to_kiln(leaves);
  for (const GraphOutput &output : graph.outputs()) {
    const TensorType &type = graph.type(output.value);
    left_to_kiln.push_back(depends_on_the_run(type, now.sizes));
    if (left_to_kiln.back()) {
      arrays.emplace_back(TensorData{type.dtype, {0}, {}}, std::vector<int64_t>{1}, place, nullptr);
      continue;
    }
    const TensorData data{type.dtype, shape_at(type.dims, now.sizes), {}};
    arrays.emplace_back(data, shape_at(row_major_strides(type.dims), now.sizes), place, nullptr);
  }
  for (size_t k = inputs; bind_parameters && k < leaves; ++k) {
    auto keep = std::make_shared<Array>(arrays[k]);  // as long as the binding
    KILN_TRY(call.bind(static_cast<uint32_t>(k), keep->ref(), keep));
  }
  std::vector<ArrayRef> refs;
  for (size_t k = 0; k < arrays.size(); ++k)
    if (k < inputs || k >= leaves) refs.push_back(left_to_kiln[k] ? ArrayRef() : arrays[k].ref());
  KILN_TRY(call.run(refs));
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (!arrays[k].surroundings_are_whole()) return invalid("a byte beside array ", k, " was written");
    const bool may_change = k >= leaves || std::ranges::find(written, k) != written.end();
    if (!may_change && arrays[k].data().bytes != now.arguments[k].bytes) return invalid("input ", k, " was written");
  }
  Results results;
  for (size_t k = leaves; k < arrays.size(); ++k) {
    if (!left_to_kiln[k]) {
      results.push_back(arrays[k].data());
      continue;
    }
    KILN_ASSIGN(const Call::Taken taken, call.take(static_cast<uint32_t>(k)));
    TensorData &data = results.emplace_back(TensorData{taken.dtype, taken.shape, {}});
    const auto *bytes = static_cast<const uint8_t *>(taken.data);
    data.bytes.assign(bytes, bytes + static_cast<size_t>(data.element_count()) * size_of(data.dtype));
  }
  for (size_t k : written) results.push_back(arrays[k].data());
  return results;
}

const std::shared_ptr<ThreadPool> &pool_of(uint32_t threads) {
  static const auto pools = [] {
    std::array<std::shared_ptr<ThreadPool>, most_threads> all;
    for (uint32_t i = 0; i < most_threads; ++i) all[i] = std::make_shared<ThreadPool>(i + 1);
    return all;
  }();
  return pools[threads - 1];
}

// All IR that there is holds to the table of its level.
Status check_forms(const Compiled &compiled, const CompileOptions &options) {
  if (!options.want_ir) return {};
  KILN_ASSIGN(const Target target, Target::by_name(options.cpu));
  for (const std::string &text : compiled.kernel_texts)
    for (const std::string &name : forbidden_forms(text, target))
      return error(Code::internal, "a kernel for ", options.cpu, " calls ", name);
  return {};
}

}  // namespace

Result<std::vector<Results>> make_calls(std::shared_ptr<const Executable> executable, const Graph &graph,
                                        std::span<const GraphCall> calls, GuardedBytes::Place place) {
  const GuardedAreas areas(place);
  KILN_ASSIGN(const std::unique_ptr<Call> call, Call::create(std::move(executable)));
  bool sized_parameters = false;
  for (uint32_t id : graph.parameters())
    for (const Dim &dim : graph.find(id)->results[0].dims) sized_parameters |= !dim.is_integer();
  std::vector<Results> all;
  for (const GraphCall &now : calls) {
    Result<Results> results = make_call(*call, graph, now, place, all.empty() || sized_parameters);
    if (!results.ok()) return results.take_status().with_prefix(str_cat("call ", all.size(), ": "));
    all.push_back(std::move(results).value());
  }
  return all;
}

std::vector<Setting> all_settings() {
  std::vector<Setting> all;
  for (uint32_t threads = 1; threads <= most_threads; ++threads)
    for (const auto place : {GuardedBytes::Place::end, GuardedBytes::Place::begin}) all.push_back({threads, place});
  return all;
}

Result<std::vector<Results>> run_guarded(const GraphPtr &graph, std::span<const GraphCall> calls,
                                         const CompileOptions &options, std::span<const Setting> settings, Cache *cache,
                                         const PassList *passes) {
  KILN_ASSIGN(const Compiled compiled, compile_alone(graph, options, cache, passes ? *passes : built_in_passes()));
  KILN_TRY(check_forms(compiled, options));
  KILN_ASSIGN(Artifact read,
              read_artifact(write_artifact(compiled.executable->artifact())));  // as the next process does
  const auto artifact = std::make_shared<const Artifact>(std::move(read));
  KILN_ASSIGN(const BackendInfo *backend, find_backend(options.backend));
  std::vector<Results> first;
  for (const Setting &setting : settings) {
    std::shared_ptr<const Executable> executable = compiled.executable;
    if (!backend->on_device()) {
      KILN_ASSIGN(executable, Executable::load(artifact, builtin_ops(), pool_of(setting.threads), build_id()));
    }
    KILN_ASSIGN(std::vector<Results> results, make_calls(executable, *graph, calls, setting.place));
    if (&setting == &settings.front())
      first = std::move(results);
    else if (results != first)
      return invalid(setting.threads, " threads and ", settings.front().threads,
                     " give results that are not the same bits");
  }
  return first;
}

}  // namespace kiln::testing
