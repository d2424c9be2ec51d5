// What enumerators are called in text. Internal to this folder.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "jit/kernel/kernel.h"
#include "runtime/plan/plan.h"

namespace kiln::unpacked {

// Each enumeration's names, from its first enumerator on; "": it has no such enumerator.
std::string_view text_of(DType dtype);
std::string_view text_of(kernel::Core op);
std::string_view text_of(kernel::Axis::Role role);
std::string_view text_of(kernel::Store::Mode mode);
std::string_view text_of(kernel::Buffer::Space space);
std::string_view text_of(kernel::Schedule::Vector vector);
std::string_view text_of(kernel::Schedule::Products products);
std::string_view text_of(Plan::Presented::Kind kind);
std::string_view text_of(Plan::Slot::Kind kind);
std::string_view text_of(Plan::Step::Kind kind);

// The enumerator of that name; false: there is none.
template <class E>
bool find_enumerator(std::string_view name, E &out) {
  for (int i = 0; i <= UINT8_MAX && !name.empty(); ++i)
    if (text_of(static_cast<E>(i)) == name) {
      out = static_cast<E>(i);
      return true;
    }
  return false;
}
template <class E>
std::string known_enumerators() {
  std::string all;
  for (int i = 0; i <= UINT8_MAX; ++i)
    if (const std::string_view name = text_of(static_cast<E>(i)); !name.empty())
      str_append(all, str_cat(all.empty() ? "" : ", ", name));
  return all;
}

}  // namespace kiln::unpacked
