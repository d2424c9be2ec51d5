// An op's record: everything about one op, in one place. Records stand in runtime/ops/<family>.cpp, in tables that
// registry.cpp lists; the JSON reader, the ABI's enumeration, the docs, the conformance tests and the CLI walk them.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/kernel/compute.h"
#include "runtime/graph/edit.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/schema.h"
#include "runtime/ops/gradient.h"

namespace kiln {

// Each context names the op whose function is called: one function may serve several, and find what it needs in the
// record.
struct Op;

// ---- lowering to kernel IR: fills `compute` (its dims are set already, and for each result the dtype and, as what it
// names, the yield or carrier of its number)
struct LowerContext {
  const Op &op;
  std::span<const TensorType> inputs;
  const TensorType &result;  // the first; all have its dims
  const AttrMap &attrs;
  kernel::Compute &compute;
  kernel::BodyBuilder body;  // of compute.body
  // The result is to be operand 0 as it is written to (copy_): a scatter that begins as it is need not touch the rest.
  bool replaces = false;

  const AttrValue &attr(std::string_view name) const { return attrs.find(name)->second; }
  Expr axis(size_t d) const { return Expr::axis(static_cast<uint32_t>(d), result.dims[d]); }  // of the result
  std::vector<Expr> axes() const;
  Expr reduce_axis(Expr extent);  // appends one
  int load(size_t operand, std::vector<Expr> index, int valid = -1, uint64_t fill = 0);
  int load(size_t operand);  // at the result's axes, broadcast as numpy does
};

// ---- views: result index -> operand index
struct ViewContext {
  const Op &op;
  const TensorType &operand, &result;
  const AttrMap &attrs;
  std::span<const Expr> index;      // of the result, one for each dim
  std::vector<Expr> operand_index;  // to fill
  const AttrValue &attr(std::string_view name) const { return attrs.find(name)->second; }
};

// ---- decomposition: adds nodes that compute the same; results replace the node's
struct DecomposeContext {
  const Op &op;
  Edit &edit;
  const OpTable &ops;
  const Node &node;              // inputs, attrs
  std::vector<ValueId> results;  // to fill
  const AttrValue &attr(std::string_view name) const { return node.attrs.find(name)->second; }
  const TensorType &type(ValueId v) const { return edit.view().type(v); }
  // Adds an op node and returns its first result; a failure here is Kiln's bug, but is reported, not asserted.
  Result<ValueId> add(std::string_view name, std::vector<ValueId> inputs, AttrMap attrs = {});
  Result<ValueId> scalar(DType dtype, double value);     // full with shape []
  Result<ValueId> count(DType dtype, const Dim &value);  // size, or a scalar when the value is known
};

// ---- reference kernels: plain loops that compute with floats as double, integers and booleans as int64_t
// Elements as the dtype has them, where they lie in memory.
struct NativeElements {
  uint8_t *first = nullptr;           // the one at index 0
  std::vector<int64_t> strides = {};  // in elements; 0 and below, too
  std::shared_ptr<Bytes> owner = {};  // null: they are another's, and outlive the tensor
};
// What kernels compute with: wide storage, `f` or `i`, or native elements (then both are empty). element_access.h
// reads and writes either.
struct RefTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  std::vector<double> f;   // float dtypes
  std::vector<int64_t> i;  // integer dtypes and bool; the bits of u64
  std::optional<NativeElements> native = {};
  int64_t size() const;  // product of shape
  bool is_float() const { return dtype_info(dtype).is_float; }
  void allocate();         // by dtype and shape, zeros
  void allocate_native();  // the same in the dtype's own bytes
  void fit();              // to what the dtype holds: integers wrap, small floats are rounded, once and to nearest even
};
// What shares the ranges of a reference kernel among threads.
struct ReferenceThreads {
  // Runs task(0), ..., task(tasks - 1), on several threads at once, and returns when all have. None: there is one
  // thread.
  std::function<void(int64_t tasks, const std::function<void(int64_t)> &task)> run = {};
  int64_t least_work = 1 << 14;  // of a range, in elements: some ten µs
};
struct ReferenceContext {
  const Op &op;
  std::span<const RefTensor *const> inputs;
  std::span<RefTensor> results;  // dtype and shape are set, storage is allocated
  const AttrMap &attrs;          // dims are integers by now
  const AttrValue &attr(std::string_view name) const { return attrs.find(name)->second; }
  // Runs a nested graph (call): its inputs in order, to its outputs.
  std::function<Result<std::vector<RefTensor>>(const Graph &, std::span<const RefTensor *const>)> run_graph;
  std::function<Status(int64_t turn)> on_turn;  // of a loop, after each; an error ends the run
  ReferenceThreads threads = {};
  // Calls body(begin, end) for ranges that make up [0, count), on several threads: of results that do not depend on
  // each other, so that they are the same however many threads there are. `work`: about how many elements each takes.
  // Of errors the one of the first range is returned, as if one thread had gone through them in order.
  Status for_ranges(int64_t count, int64_t work, const std::function<Status(int64_t begin, int64_t end)> &body) const;
};

// ---- samples for the conformance tests
struct Sample {
  std::string name = {};                // "broadcast_both", "empty", ...
  std::vector<TensorType> inputs = {};  // symbols allowed; see `sizes`
  AttrMap attrs = {};
  std::map<std::string, int64_t> sizes = {};  // of the symbols
  double low = -2, high = 2;                  // range of random float inputs
  int64_t int_low = -5, int_high = 6;         // [low, high) of random integers
  std::map<size_t, TensorData> given = {};    // inputs that are not random
  double tolerance = 0;                       // |a - b| <= tolerance * (1 + |b|); 0: by dtype (f32: 1e-5; others exact)
};
using SampleSink = std::vector<Sample>;

// What an op does. Exactly one of view, lower and decompose is set (call has none: it is inlined).
struct OpMeaning {
  Status (*view)(ViewContext &) = nullptr;
  Status (*lower)(LowerContext &) = nullptr;
  Status (*decompose)(DecomposeContext &) = nullptr;

  Status (*reference)(ReferenceContext &) = nullptr;  // null for a view op: its map is walked
  Gradient gradient = {};                             // declared by every record
  void (*samples)(SampleSink &) = nullptr;
};

// One literal a record: {{.name = ..., .doc = ..., .infer = ...}, {.lower = ..., .reference = ..., .gradient = ...,
// .samples = ...}}.
struct Op : OpSchema, OpMeaning {};

// The built-in ops, sorted by name.
std::span<const Op *const> all_ops();
const Op *find_op(std::string_view name);
std::string suggest_among(std::string_view name, std::span<const Op *const> ops);  // as OpTable::suggest
const OpTable &builtin_ops();
inline const Op &op_of(const Node &node) { return static_cast<const Op &>(*node.op); }

}  // namespace kiln
