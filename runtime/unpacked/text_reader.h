// What drives a walk from JSON: the other side of text_writer.h. A member that is not there stays as it is by default;
// one that the walk does not ask for is an error, as is all that does not fit. Errors say where
// ("stages[0].body.values[3].op"). Internal to this folder.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/graph/json_values.h"
#include "runtime/unpacked/text_writer.h"

namespace kiln::unpacked {

// What is read of one kind of value, whatever struct it is in.
Status read_digest(const json::View &view, Digest &out);
Status read_expr(const json::View &view, const std::vector<kernel::Axis> *scope, Expr &out);
Status read_unsigned(const json::View &view, uint64_t most, uint64_t &out);
Status refuse_unknown(const json::View &object, const std::vector<std::string_view> &known);

class TextReader {
 public:
  DType loaded = DType::none;
  std::vector<kernel::Axis> scope = {};
  bool in_kernel = false;  // where expressions name axes and values
  // Of nested plans, by their numbers: where they stand, and whether one has them already.
  std::vector<json::View> plans = {};
  std::vector<bool> taken = {};
  int depth = 1;

  // The whole of `view`.
  template <class T>
  Status read(const json::View &view, T &out) {
    get(view, out);
    return std::move(status_);
  }

  template <class T, class M>
  void field(std::string_view name, T &item, M T::*member) {
    if (const auto view = ask(name)) get(*view, item.*member);
  }
  template <class T>
  void immediate(std::string_view name, T &item, uint64_t T::*member, DType type) {
    if (const auto view = ask(name)) get_immediate(*view, type, item.*member);
  }
  template <class T>
  void immediates(std::string_view name, T &item, std::vector<uint64_t> T::*member, std::span<const DType> types) {
    const auto view = ask(name);
    if (!view) return;
    for (const json::View &element : elements(*view)) {
      std::vector<uint64_t> &values = item.*member;
      get_immediate(element, values.size() < types.size() ? types[values.size()] : DType::none, values.emplace_back());
    }
  }
  void nested(std::string_view name, Plan &plan, std::vector<Plan> Plan::*member);

 private:
  template <class T>
    requires std::is_arithmetic_v<T>
  void get(const json::View &view, T &out) {
    if (!status_.ok()) return;
    Result<int64_t> read = view.as_integer();
    if (!read.ok()) {
      status_ = read.take_status();
    } else if (std::is_same_v<T, uint64_t>) {
      out = static_cast<T>(*read);
    } else if (!std::in_range<T>(*read)) {
      status_ = view.fail(*read, " is out of its range");
    } else {
      out = static_cast<T>(*read);
    }
  }
  void get(const json::View &view, bool &out) {
    if (!view.is_boolean()) return fail(view.expected("true or false"));
    out = view.boolean();
  }
  template <class T>
    requires std::is_enum_v<T>
  void get(const json::View &view, T &out) {
    if (!view.is_text() || !find_enumerator(view.text(), out))
      fail(view.expected(str_cat("one of ", known_enumerators<T>())));
  }
  void get(const json::View &view, Expr &out) { fail(read_expr(view, in_kernel ? &scope : nullptr, out)); }
  void get(const json::View &view, Digest &out) { fail(read_digest(view, out)); }
  void get(const json::View &view, std::string &out) {
    const Result<std::string_view> text = view.as_text();
    if (!text.ok()) return fail(text.status());
    out = *text;
  }
  template <class T, size_t n>
  void get(const json::View &view, std::array<T, n> &out) {
    const std::vector<json::View> all = elements(view);
    if (all.size() > n) return fail(view.fail(all.size(), " elements, expected at most ", n));
    for (size_t i = 0; i < all.size(); ++i) get(all[i], out[i]);
  }
  template <class T>
  void get(const json::View &view, std::vector<T> &out) {
    for (const json::View &element : elements(view)) {
      get(element, out.emplace_back());
      if (!status_.ok()) return;
    }
  }
  template <class T>
  void get(const json::View &view, std::optional<T> &out) {
    get(view, out.emplace());
  }
  template <class T>
    requires std::is_class_v<T>
  void get(const json::View &view, T &out) {
    if (!status_.ok()) return;
    if (!view.is_object()) return fail(view.expected("an object"));
    const json::View *outer = std::exchange(object_, &view);
    std::vector<std::string_view> asked = std::exchange(asked_, {});
    walk(*this, out, static_cast<const T *>(nullptr));
    if (status_.ok()) fail(refuse_unknown(view, asked_));
    object_ = outer;
    asked_ = std::move(asked);
  }

  std::optional<json::View> ask(std::string_view name) {
    if (!status_.ok()) return std::nullopt;
    asked_.push_back(name);
    return object_->member(name);
  }
  std::vector<json::View> elements(const json::View &view);
  void get_immediate(const json::View &view, DType type, uint64_t &out);
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  Status status_;
  const json::View *object_ = nullptr;      // that is being read
  std::vector<std::string_view> asked_ = {};  // names of its members, so far
};

}  // namespace kiln::unpacked
