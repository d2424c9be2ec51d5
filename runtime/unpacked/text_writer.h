// What drives a walk (jit/kernel/walk.h, runtime/plan/plan_walk.h, manifest.h) to JSON, every field by its name.
// Numbers, texts, flags and lists that are as by default are left out. Internal to this folder.
#pragma once
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/json_writer.h"
#include "jit/kernel/walk.h"
#include "runtime/plan/plan_walk.h"
#include "runtime/unpacked/manifest.h"
#include "runtime/unpacked/names.h"

namespace kiln::unpacked {

// A kernel's immediate of a float is the bits of a double, of all else an integer (Core::constant).
inline DType immediate_type(DType type) {
  return type != DType::none && dtype_info(type).is_float ? DType::f64 : DType::i64;
}

class TextWriter {
 public:
  DType loaded = DType::none;
  std::vector<const Plan *> plans = {};  // that the plan written has in it: they stand beside it, by these numbers

  template <class T>
  std::string text_of_item(const T &item) {
    json_ = JsonWriter();
    put(item);
    return json_.take();
  }

  template <class T, class M>
  void field(std::string_view name, const T &item, M T::*member) {
    if (is_default(item.*member, defaults<T>().*member)) return;
    key(name);
    put(item.*member);
  }
  template <class T>
  void immediate(std::string_view name, const T &item, uint64_t T::*member, DType type) {
    if (item.*member == 0) return;
    key(name);
    put_immediate(item.*member, type);
  }
  template <class T>
  void immediates(std::string_view name, const T &item, std::vector<uint64_t> T::*member,
                  std::span<const DType> types) {
    const std::vector<uint64_t> &values = item.*member;
    if (values.empty()) return;
    key(name);
    begin('[');
    for (size_t i = 0; i < values.size(); ++i) put_immediate(values[i], i < types.size() ? types[i] : DType::none);
    end(']');
  }
  void nested(std::string_view name, const Plan &plan, std::vector<Plan> Plan::*member) {
    if ((plan.*member).empty()) return;
    key(name);
    begin('[');
    for (const Plan &inner : plan.*member) {
      put(plans.size());
      plans.push_back(&inner);
    }
    end(']');
  }

  template <class T>
    requires std::is_arithmetic_v<T>
  void put(T value) {
    put_integer(static_cast<int64_t>(value));  // readers know integers of 64 bits with a sign
  }
  void put(bool value);
  template <class T>
    requires std::is_enum_v<T>
  void put(T value) {
    put_text(text_of(value));
  }
  void put(const Expr &e);
  void put(const std::string &text) { put_text(text); }
  void put(const Digest &digest) { put_text(digest.hex()); }
  template <class T, size_t n>
  void put(const std::array<T, n> &items) {
    size_t count = n;
    while (count > 0 && items[count - 1] == -1) --count;  // as by default
    begin('[');
    for (size_t i = 0; i < count; ++i) put(items[i]);
    end(']');
  }
  template <class T>
  void put(const std::vector<T> &items) {
    begin('[');
    for (const T &item : items) put(item);
    end(']');
  }
  template <class T>
  void put(const std::optional<T> &item) {
    put(*item);
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T &item) {
    begin('{');
    walk(*this, item, static_cast<const T *>(nullptr));
    end('}');
  }

 private:
  template <class T>
  static const T &defaults() {
    static const T as_made{};
    return as_made;
  }
  // In one place, for there are many fields.
  void key(std::string_view name);
  void begin(char bracket);
  void end(char bracket);
  void put_integer(int64_t value);
  void put_text(std::string_view text);
  void put_immediate(uint64_t bits, DType type);

  template <class M>
  static bool is_default(const M &value, const M &unset) {
    if constexpr (std::is_arithmetic_v<M>) return value == unset;
    return false;  // a kind is told always; an object says what of it is not as by default
  }
  static bool is_default(DType value, DType) { return value == DType::none; }
  static bool is_default(const kiln_kernel_use &value, const kiln_kernel_use &unset) {
    return std::memcmp(&value, &unset, sizeof value) == 0;
  }
  static bool is_default(const Expr &value, const Expr &unset) { return value == unset; }
  static bool is_default(const std::string &value, const std::string &unset) { return value == unset; }
  static bool is_default(const Digest &value, const Digest &unset) { return value == unset; }
  static bool is_default(const Plan::NodeRef &value, const Plan::NodeRef &unset) { return value == unset; }
  static bool is_default(const kernel::Body &value, const kernel::Body &) {
    return value.values.empty() && value.yields.empty();
  }
  static bool is_default(const kernel::Carriers &value, const kernel::Carriers &) {
    return value.types.empty() && value.identities.empty() && is_default(value.combine, value.combine);
  }
  static bool is_default(const Plan::Scan &value, const Plan::Scan &) {
    return value.carried == 0 && value.sequences == 0 && !value.reverse && value.turns.is(0);
  }
  template <class T, size_t n>
  static bool is_default(const std::array<T, n> &value, const std::array<T, n> &unset) {
    return value == unset;
  }
  template <class T>
  static bool is_default(const std::vector<T> &value, const std::vector<T> &) {
    return value.empty();
  }
  template <class T>
  static bool is_default(const std::optional<T> &value, const std::optional<T> &) {
    return !value;
  }

  JsonWriter json_;
};

}  // namespace kiln::unpacked
