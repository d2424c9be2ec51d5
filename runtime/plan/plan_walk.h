// One walk over the fields of a plan and of contracts, by name, for all that writes or reads them: their bytes
// (plan_format.cpp, contract_format.cpp) and their text (runtime/unpacked). One function a struct, in the order of the
// bytes.
//
// V is a writer, with T const, or a reader. It has field(name, item, &T::member), and for a plan's own plans nested(),
// likewise. For a struct it calls walk(v, item, (const T *)0).
#pragma once
#include "runtime/plan/contract.h"
#include "runtime/plan/plan.h"

namespace kiln {

// Whether messages name the node of such a step.
inline bool names_node(Plan::Step::Kind kind) {
  return kind == Plan::Step::Kind::loop || kind == Plan::Step::Kind::scan || kind == Plan::Step::Kind::call;
}

template <class V, class T>
void walk(V &v, T &x, const Plan::Argument *) {
  v.field("name", x, &Plan::Argument::name);
  v.field("dtype", x, &Plan::Argument::dtype);
  v.field("dims", x, &Plan::Argument::dims);
  v.field("strides", x, &Plan::Argument::strides);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::NodeRef *) {
  v.field("path", x, &Plan::NodeRef::path);
  v.field("name", x, &Plan::NodeRef::name);
  v.field("debug", x, &Plan::NodeRef::debug);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Presented *) {
  v.field("output", x, &Plan::Presented::output);
  v.field("kind", x, &Plan::Presented::kind);
  v.field("strides", x, &Plan::Presented::strides);
  v.field("input", x, &Plan::Presented::input);
  v.field("offset", x, &Plan::Presented::offset);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Symbol *) {
  v.field("name", x, &Plan::Symbol::name);
  v.field("input", x, &Plan::Symbol::input);
  v.field("dim", x, &Plan::Symbol::dim);
  v.field("min", x, &Plan::Symbol::min);
  v.field("max", x, &Plan::Symbol::max);
  v.field("divisor", x, &Plan::Symbol::divisor);
  v.field("resolved", x, &Plan::Symbol::resolved);
  v.field("bound", x, &Plan::Symbol::bound);
  v.field("node", x, &Plan::Symbol::node);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Check *) {
  v.field("left", x, &Plan::Check::left);
  v.field("right", x, &Plan::Check::right);
  v.field("what", x, &Plan::Check::what);
  v.field("node", x, &Plan::Check::node);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Risk *) {
  v.field("node", x, &Plan::Risk::node);
  v.field("op", x, &Plan::Risk::op);
  v.field("bits", x, &Plan::Risk::bits);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Origin *) {
  v.field("node", x, &Plan::Origin::node);
  v.field("op", x, &Plan::Origin::op);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Slot *) {
  v.field("kind", x, &Plan::Slot::kind);
  v.field("index", x, &Plan::Slot::index);
  v.field("size_bytes", x, &Plan::Slot::size_bytes);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Storage *) {
  v.field("size_bytes", x, &Plan::Storage::size_bytes);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Nested *) {
  v.field("plan", x, &Plan::Nested::plan);
  v.field("symbols", x, &Plan::Nested::symbols);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Scan *) {
  v.field("carried", x, &Plan::Scan::carried);
  v.field("sequences", x, &Plan::Scan::sequences);
  v.field("reverse", x, &Plan::Scan::reverse);
  v.field("turns", x, &Plan::Scan::turns);
}
template <class V, class T>
void walk(V &v, T &x, const Plan::Step *) {
  v.field("kind", x, &Plan::Step::kind);
  v.field("kernel", x, &Plan::Step::kernel);
  v.field("graph", x, &Plan::Step::graph);
  v.field("slots", x, &Plan::Step::slots);
  v.field("symbols", x, &Plan::Step::symbols);
  v.field("risks", x, &Plan::Step::risks);
  v.field("nested", x, &Plan::Step::nested);
  const bool is_copy = x.kind == Plan::Step::Kind::copy;
  if (is_copy) v.field("why", x, &Plan::Step::why);
  if (is_copy || names_node(x.kind)) v.field("node", x, &Plan::Step::node);
  if (is_copy || x.kind == Plan::Step::Kind::launch) v.field("origins", x, &Plan::Step::origins);
  v.field("scan", x, &Plan::Step::scan);
}
template <class V, class T>
void walk(V &v, T &x, const Plan *) {
  v.field("inputs", x, &Plan::inputs);
  v.field("parameters", x, &Plan::parameters);
  v.field("outputs", x, &Plan::outputs);
  v.field("presented", x, &Plan::presented);
  v.field("symbols", x, &Plan::symbols);
  v.field("checks", x, &Plan::checks);
  v.field("risks", x, &Plan::risks);
  v.field("slots", x, &Plan::slots);
  v.field("arena", x, &Plan::arena);
  v.field("prepared", x, &Plan::prepared);
  v.field("prepare", x, &Plan::prepare);
  v.field("steps", x, &Plan::steps);
  v.field("in_place", x, &Plan::in_place);
  v.nested("nested", x, &Plan::nested);
}

template <class V, class T>
void walk(V &v, T &x, const Contract::Symbol *) {
  v.field("name", x, &Contract::Symbol::name);
  v.field("min", x, &Contract::Symbol::min);
  v.field("max", x, &Contract::Symbol::max);
  v.field("divisor", x, &Contract::Symbol::divisor);
}
template <class V, class T>
void walk(V &v, T &x, const Contract::Buffer *) {
  v.field("dtype", x, &Contract::Buffer::dtype);
  v.field("written", x, &Contract::Buffer::written);
  v.field("size_bytes", x, &Contract::Buffer::size_bytes);
  v.field("in_place", x, &Contract::Buffer::in_place);
}
template <class V, class T>
void walk(V &v, T &x, const Contract::Equality *) {
  v.field("left", x, &Contract::Equality::left);
  v.field("right", x, &Contract::Equality::right);
}
template <class V, class T>
void walk(V &v, T &x, const Contract *) {
  v.field("symbols", x, &Contract::symbols);
  v.field("buffers", x, &Contract::buffers);
  v.field("equalities", x, &Contract::equalities);
  v.field("tasks", x, &Contract::tasks);
  v.field("scratch_bytes", x, &Contract::scratch_bytes);
}

}  // namespace kiln
