// What drives a walk over the fields of structs to bytes and back. A walk is a function a struct, walk(v, item, (const
// T
// *)0), which hands over each field by its name (jit/kernel/walk.h, runtime/plan/plan_walk.h); bytes have no names.
// Self derives from one of these, and says what formats differ in.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "jit/base/bytes.h"

namespace kiln {

// Lists stand behind a Count of their elements. Self puts what is neither number, text, list nor struct.
template <class Self, class Count>
class WalkWriter {
 public:
  template <class T, class M>
  void field(std::string_view, const T &item, M T::*member) {
    self().put(item.*member);
  }

  template <class T>
    requires std::is_arithmetic_v<T>
  void put(T value) {
    out_.put(value);
  }
  template <class T>
    requires std::is_enum_v<T>
  void put(T value) {
    out_.put(static_cast<uint8_t>(value));
  }
  void put(const std::string &text) { out_.text(text); }
  template <class T, size_t n>
  void put(const std::array<T, n> &items) {
    for (const T &item : items) self().put(item);
  }
  template <class T>
  void put(const std::vector<T> &items) {
    out_.put(static_cast<Count>(items.size()));
    for (const T &item : items) self().put(item);
  }
  template <class T>
  void put(const std::optional<T> &item) {
    out_.put<uint8_t>(item.has_value());
    if (item) self().put(*item);
  }
  template <class T>
    requires std::is_class_v<T>
  void put(const T &item) {
    walk(self(), item, static_cast<const T *>(nullptr));
  }

 protected:
  Self &self() { return static_cast<Self &>(*this); }
  ByteWriter out_;
};

// Self gets lists, too: how many elements a damaged count may ask for is a format's own.
template <class Self>
class WalkReader {
 public:
  explicit WalkReader(ByteReader &in) : in_(in) {}

  template <class T, class M>
  void field(std::string_view, T &item, M T::*member) {
    self().get(item.*member);
  }

  template <class T>
    requires std::is_arithmetic_v<T>
  void get(T &value) {
    value = in_.get<T>();
  }
  void get(bool &value) { value = in_.get<uint8_t>() != 0; }
  template <class T>
    requires std::is_enum_v<T>
  void get(T &value) {
    value = static_cast<T>(in_.get<uint8_t>());
  }
  void get(std::string &text) { text = in_.text(); }
  template <class T, size_t n>
  void get(std::array<T, n> &items) {
    for (T &item : items) self().get(item);
  }
  template <class T>
  void get(std::optional<T> &item) {
    if (in_.get<uint8_t>() != 0) self().get(item.emplace());
  }
  template <class T>
    requires std::is_class_v<T>
  void get(T &item) {
    walk(self(), item, static_cast<const T *>(nullptr));
  }

 protected:
  Self &self() { return static_cast<Self &>(*this); }
  ByteReader &in_;
};

}  // namespace kiln
