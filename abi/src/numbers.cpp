// The numbers of the headers are those of Kiln's enumerations. Both are permanent.
#include <kiln/kiln.h>

#include "jit/base/dtype.h"
#include "jit/base/status.h"
#include "runtime/context.h"
#include "runtime/graph/attr.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/pass.h"

namespace kiln {
namespace {

template <class Enum>
constexpr bool is(uint32_t number, Enum value) {
  return number == static_cast<uint32_t>(value);
}

static_assert(is(KILN_OK, Code::ok) && is(KILN_INVALID_ARGUMENT, Code::invalid_argument) &&
              is(KILN_TYPE_MISMATCH, Code::type_mismatch) && is(KILN_UNKNOWN_NAME, Code::unknown_name) &&
              is(KILN_UNIMPLEMENTED, Code::unimplemented) && is(KILN_INVARIANT, Code::invariant) &&
              is(KILN_NOT_CACHED, Code::not_cached) && is(KILN_CANCELLED, Code::cancelled) &&
              is(KILN_OUT_OF_MEMORY, Code::out_of_memory) && is(KILN_BUSY, Code::busy) &&
              is(KILN_PLUGIN_FAILED, Code::plugin_failed) && is(KILN_IO, Code::io) && is(KILN_CORRUPT, Code::corrupt) &&
              is(KILN_INCOMPATIBLE, Code::incompatible) && is(KILN_NO_DEVICE, Code::no_device) &&
              is(KILN_OUT_OF_RANGE, Code::out_of_range) && is(KILN_INTERNAL, Code::internal) &&
              is(KILN_EXCEPTION, Code::exception));

static_assert(is(KILN_F64, DType::f64) && is(KILN_F32, DType::f32) && is(KILN_F16, DType::f16) &&
              is(KILN_BF16, DType::bf16) && is(KILN_I64, DType::i64) && is(KILN_I32, DType::i32) &&
              is(KILN_I16, DType::i16) && is(KILN_I8, DType::i8) && is(KILN_U8, DType::u8) &&
              is(KILN_BOOL, DType::boolean) && is(KILN_U16, DType::u16) && is(KILN_U32, DType::u32) &&
              is(KILN_U64, DType::u64) && is(KILN_F8_E4M3FN, DType::f8_e4m3fn) && is(KILN_F8_E5M2, DType::f8_e5m2) &&
              is(KILN_TOKEN, DType::token) && last_dtype == 16);

static_assert(is(KILN_ATTR_I64, AttrKind::i64) && is(KILN_ATTR_F64, AttrKind::f64) &&
              is(KILN_ATTR_TEXT, AttrKind::text) && is(KILN_ATTR_DTYPE, AttrKind::dtype) &&
              is(KILN_ATTR_DIM, AttrKind::dim) && is(KILN_ATTR_GRAPH, AttrKind::graph) &&
              is(KILN_ATTR_TENSOR, AttrKind::tensor) && is(KILN_ATTR_BOOL, AttrKind::boolean));

static_assert(is(KILN_STAGE_PRE_GRAD, Stage::pre_grad) && is(KILN_STAGE_POST_GRAD, Stage::post_grad));
static_assert(is(0, Timing::by_identity) && is(KILN_TIMING_LATE, Timing::late) && is(KILN_TIMING_EARLY, Timing::early));
static_assert(is(KILN_EVENT_PROGRESS, Event::progress) && is(KILN_EVENT_WARNING, Event::warning) &&
              is(KILN_EVENT_LOOP, Event::loop) && is(KILN_EVENT_ENTRY, Event::entry) &&
              is(KILN_EVENT_STEP, Event::step));

// kiln_node_kind counts from 1.
static_assert(is(KILN_NODE_INPUT - 1, Node::Kind::input) && is(KILN_NODE_PARAMETER - 1, Node::Kind::parameter) &&
              is(KILN_NODE_CONSTANT - 1, Node::Kind::constant) && is(KILN_NODE_OP - 1, Node::Kind::op));

}  // namespace
}  // namespace kiln
