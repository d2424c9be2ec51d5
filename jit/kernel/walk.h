// One walk over the fields of a kernel, by name, for all that writes or reads kernels: their bytes (serialize.cpp) and
// their text (runtime/unpacked), so that neither can disagree with the other about what there is. One function a
// struct, in the order of kernel.h.
//
// V is a writer, with T const, or a reader. It has
//   field(name, item, &T::member)
//   immediate(name, item, &T::member, type)    of that type; DType::none: a plain number
//   immediates(name, item, &T::member, types)  a list, by the types
// and, where it reads expressions or writes for people, `scope` (the axes that an Expr may name: their extents are what
// it is simplified by) and `loaded` (the type of what an access is of). For a struct it calls walk(v, item, (const T
// *)0).
#pragma once
#include <span>

#include "jit/kernel/kernel.h"

namespace kiln::kernel {

template <class V, class T>
void walk(V &v, T &x, const Access *) {
  DType loaded = DType::none;
  if constexpr (requires { v.loaded; }) loaded = v.loaded;
  v.field("buffer", x, &Access::buffer);
  v.field("index", x, &Access::index);
  v.field("valid", x, &Access::valid);
  v.immediate("fill", x, &Access::fill, loaded);
}
template <class V, class T>
void walk(V &v, T &x, const Value *) {
  v.field("op", x, &Value::op);
  v.field("type", x, &Value::type);
  v.field("args", x, &Value::args);
  v.immediate("immediate", x, &Value::immediate, x.op == Core::constant ? x.type : DType::none);
  if constexpr (requires { v.loaded; }) v.loaded = x.type;
  if (reads_memory(x.op)) v.field("access", x, &Value::access);
  if (has_expr(x.op)) v.field("expr", x, &Value::expr);
}
template <class V, class T>
void walk(V &v, T &x, const Body *) {
  v.field("values", x, &Body::values);
  v.field("yields", x, &Body::yields);
}
template <class V, class T>
void walk(V &v, T &x, const Axis *) {
  v.field("extent", x, &Axis::extent);
  v.field("role", x, &Axis::role);
}
template <class V, class T>
void walk(V &v, T &x, const Carriers *) {
  v.field("types", x, &Carriers::types);
  v.immediates("identities", x, &Carriers::identities, std::span<const DType>(x.types));
  v.field("combine", x, &Carriers::combine);
  v.field("exclusive", x, &Carriers::exclusive);
  v.field("reverse", x, &Carriers::reverse);
  v.field("until", x, &Carriers::until);
  v.field("in_pairs", x, &Carriers::in_pairs);
}
template <class V, class T>
void walk(V &v, T &x, const Store *) {
  v.field("to", x, &Store::to);
  v.field("value", x, &Store::value);
  v.field("mode", x, &Store::mode);
}
template <class V, class T>
void walk(V &v, T &x, const Sort::Column *) {
  v.field("buffer", x, &Sort::Column::buffer);
  v.field("spare", x, &Sort::Column::spare);
}
template <class V, class T>
void walk(V &v, T &x, const Sort *) {
  v.field("columns", x, &Sort::columns);
  v.field("descending", x, &Sort::descending);
  v.field("runs", x, &Sort::runs);
  v.field("wanted", x, &Sort::wanted);
}
template <class V, class T>
void walk(V &v, T &x, const Contract *) {
  v.field("a", x, &Contract::a);
  v.field("b", x, &Contract::b);
  v.field("accumulator", x, &Contract::accumulator);
  v.field("a_factor", x, &Contract::a_factor);
  v.field("b_factor", x, &Contract::b_factor);
  v.field("group", x, &Contract::group);
  v.field("panel", x, &Contract::panel);
  v.field("packed_buffer", x, &Contract::packed_buffer);
  v.field("packed_offset", x, &Contract::packed_offset);
}
template <class V, class T>
void walk(V &v, T &x, const Stage *) {
  v.field("axes", x, &Stage::axes);
  size_t outer = 0;
  if constexpr (requires { v.scope; }) {  // reading: the stage's axes come into scope
    outer = v.scope.size();
    v.scope.insert(v.scope.end(), x.axes.begin(), x.axes.end());
  }
  v.field("contract", x, &Stage::contract);
  v.field("body", x, &Stage::body);
  v.field("carriers", x, &Stage::carriers);
  v.field("stores", x, &Stage::stores);
  v.field("sort", x, &Stage::sort);
  if constexpr (requires { v.scope; }) v.scope.resize(outer);
}
template <class V, class T>
void walk(V &v, T &x, const Buffer *) {
  v.field("type", x, &Buffer::type);
  v.field("space", x, &Buffer::space);
  v.field("size", x, &Buffer::size);
}
template <class V, class T>
void walk(V &v, T &x, const Schedule *) {
  v.field("vector", x, &Schedule::vector);
  v.field("vector_bytes", x, &Schedule::vector_bytes);
  v.field("tiles", x, &Schedule::tiles);
  v.field("masked_tail", x, &Schedule::masked_tail);
  v.field("ordered", x, &Schedule::ordered);
  v.field("stream_bytes", x, &Schedule::stream_bytes);
  v.field("mr", x, &Schedule::mr);
  v.field("nr", x, &Schedule::nr);
  v.field("kc", x, &Schedule::kc);
  v.field("products", x, &Schedule::products);
  v.field("vector_m", x, &Schedule::vector_m);
}
template <class V, class T>
void walk(V &v, T &x, const Kernel *) {
  v.field("symbols", x, &Kernel::symbols);
  v.field("buffers", x, &Kernel::buffers);
  v.field("parallel", x, &Kernel::parallel);
  if constexpr (requires { v.scope; }) v.scope = x.parallel;
  v.field("stages", x, &Kernel::stages);
  v.field("schedule", x, &Kernel::schedule);
}

// An expression of a kernel, as Expr::text() writes it; `scope` are the axes in scope, by their numbers. nullopt: it is
// none, or names an axis that is not there.
std::optional<Expr> parse_expr(std::string_view text, std::span<const Axis> scope);

}  // namespace kiln::kernel
