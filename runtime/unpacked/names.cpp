#include "runtime/unpacked/names.h"

#include <initializer_list>

namespace kiln::unpacked {
namespace {

template <class E>
std::string_view named(E e, E first, std::initializer_list<std::string_view> names) {
  const auto at = static_cast<size_t>(e) - static_cast<size_t>(first);  // below the first: past all
  return at < names.size() ? names.begin()[at] : std::string_view();
}

}  // namespace

// `none` is told by a member that is not there, where it can be at all.
std::string_view text_of(DType dtype) {
  const auto number = static_cast<int>(dtype);
  return number > 0 && number <= last_dtype ? name_of(dtype) : std::string_view();
}
std::string_view text_of(kernel::Core op) {
  return static_cast<size_t>(op) < kernel::core_count ? kernel::core_info(op).name : std::string_view();
}
std::string_view text_of(kernel::Axis::Role role) {
  return named(role, kernel::Axis::Role::parallel, {"parallel", "loop", "reduce", "scan", "block"});
}
std::string_view text_of(kernel::Store::Mode mode) {
  return named(mode, kernel::Store::Mode::plain, {"plain", "add", "mul", "min", "max", "bit_and", "bit_or"});
}
std::string_view text_of(kernel::Buffer::Space space) {
  return named(space, kernel::Buffer::Space::in, {"in", "out", "row_local"});
}
std::string_view text_of(kernel::Schedule::Vector vector) {
  return named(vector, kernel::Schedule::Vector::inner, {"inner", "parallel"});
}
std::string_view text_of(kernel::Schedule::Products products) {
  return named(products, kernel::Schedule::Products::widened, {"widened", "dot", "tiles"});
}
std::string_view text_of(Plan::Presented::Kind kind) {
  return named(kind, Plan::Presented::Kind::strided, {"strided", "any", "view"});
}
std::string_view text_of(Plan::Slot::Kind kind) {
  return named(kind, Plan::Slot::Kind::input, {"input", "parameter", "constant", "output", "arena", "prepared"});
}
std::string_view text_of(Plan::Step::Kind kind) {
  return named(kind, Plan::Step::Kind::launch,
               {"launch", "copy", "reference", "call", "branch", "loop", "scan", "resolve"});
}
std::string_view text_of(Plan::Step::Why why) {
  return named(why, Plan::Step::Why::given,
               {"given", "prepared", "elsewhere", "read", "kept", "order", "shared", "written"});
}

}  // namespace kiln::unpacked
