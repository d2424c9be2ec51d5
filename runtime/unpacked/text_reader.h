// What drives a walk from JSON: the other side of text_writer.h. A member that is not there stays as it is by default;
// one that the walk does not ask for is an error, as is all that does not fit. Errors say where
// ("stages[0].body.values[3].op"). Internal to this folder.
#pragma once
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/graph/json_values.h"
#include "runtime/unpacked/text_writer.h"

namespace kiln::unpacked {

class TextReader {
 public:
  DType loaded = DType::none;
  std::vector<kernel::Axis> scope = {};
  bool in_kernel = false;  // where expressions name axes and values
  // Of nested plans, by their numbers: where they stand, and whether one has them already.
  std::vector<json::View> plans = {};
  std::vector<bool> taken = {};

  // The whole of `view`.
  template <class T>
  Status read(const json::View &view, T &out) {
    get(view, out);
    return std::move(status_);
  }

  template <class T, class M>
  void field(std::string_view name, T &item, M T::*member) {
    read_member(name, &(item.*member), &TextReader::read_one<M>);
  }
  template <class T>
  void immediate(std::string_view name, T &item, uint64_t T::*member, DType type) {
    types_ = {&type, 1};
    read_member(name, &(item.*member), &TextReader::read_immediate);
  }
  template <class T>
  void immediates(std::string_view name, T &item, std::vector<uint64_t> T::*member, std::span<const DType> types) {
    types_ = types;
    read_member(name, &(item.*member), &TextReader::read_immediates);
  }
  void nested(std::string_view name, Plan &plan, std::vector<Plan> Plan::*member) {
    read_member(name, &(plan.*member), &TextReader::read_plans);
  }

 private:
  // What reads a value into `out`, whose type it knows. One pointer for each type, and little code: there are many.
  using ReadOne = void (TextReader::*)(const json::View &view, void *out);
  template <class T>
  void read_one(const json::View &view, void *out) {
    get(view, *static_cast<T *>(out));
  }
  void read_immediate(const json::View &view, void *out);
  void read_immediates(const json::View &view, void *out);
  void read_plans(const json::View &view, void *out);

  template <class T>
    requires std::is_arithmetic_v<T>
  void get(const json::View &view, T &out) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_same_v<T, uint64_t>)
      out = static_cast<uint64_t>(integer(view, INT64_MIN, INT64_MAX));  // as it is written
    else
      out = static_cast<T>(integer(view, Limits::min(), Limits::max()));
  }
  void get(const json::View &view, bool &out);
  template <class T>
    requires std::is_enum_v<T>
  void get(const json::View &view, T &out) {
    out = static_cast<T>(enumerator(view, [](int number) { return text_of(static_cast<T>(number)); }));
  }
  void get(const json::View &view, Expr &out);
  void get(const json::View &view, Digest &out);
  void get(const json::View &view, std::string &out);
  template <class T, size_t n>
  void get(const json::View &view, std::array<T, n> &out) {
    T *next = out.data();
    list(view, n, &next, [](void *items) -> void * { return (*static_cast<T **>(items))++; }, &TextReader::read_one<T>);
  }
  template <class T>
  void get(const json::View &view, std::vector<T> &out) {
    list(
        view, SIZE_MAX, &out,
        [](void *items) -> void * { return &static_cast<std::vector<T> *>(items)->emplace_back(); },
        &TextReader::read_one<T>);
  }
  template <class T>
  void get(const json::View &view, std::optional<T> &out) {
    get(view, out.emplace());
  }
  template <class T>
    requires std::is_class_v<T>
  void get(const json::View &view, T &out) {
    object(view, &out, [](TextReader &reader, void *item) {
      walk(reader, *static_cast<T *>(item), static_cast<const T *>(nullptr));
    });
  }

  void read_member(std::string_view name, void *out, ReadOne read_it);
  int64_t integer(const json::View &view, int64_t least, int64_t most);
  int enumerator(const json::View &view, std::string_view (*name_of)(int));
  // `add` makes room for another element.
  void list(const json::View &view, size_t most, void *items, void *(*add)(void *items), ReadOne read_it);
  void object(const json::View &view, void *item, void (*walk_it)(TextReader &, void *item));
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  Status status_;
  const json::View *object_ = nullptr;        // that is being read
  std::vector<std::string_view> asked_ = {};  // names of its members, so far
  std::span<const DType> types_ = {};         // of the immediates that are being read
  int depth_ = 1;                             // of plans in plans
};

}  // namespace kiln::unpacked
