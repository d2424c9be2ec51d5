// kiln/op.hpp: for ops written in C++17 or later. Header-only, over plugin.h; nothing here is part of the ABI. An op is
// a class: what is static belongs to the op, and an object of it is the state of one node in one call. It has
// decompose, or a constructor and run, or both.
//
//   struct Cube {
//     static constexpr std::string_view schema = R"({"name": "mine.cube", ...})";  // see kiln_op_def
//     static constexpr std::array<uint8_t, 16> uuid = {16 bytes};                  // of your own: uuidgen
//     static constexpr uint32_t flags = KILN_OP_ANY_THREAD;                        // or 0
//     static void infer(kiln::op::Call &call) { call.result(0, call.dtype(0), call.dims(0)); }
//     static void decompose(kiln::op::Decomposition &to) {  // what it is made of
//       const kiln_value x = to.operand(0);
//       to.yield(0, to.add("mul", {x, to.add("mul", {x, x})}));
//     }
//     explicit Cube(kiln::op::Call &call) { ... }     // when a call first runs the node
//     void run(const kiln::op::Arrays &arrays) { ... }
//   };
//   KILN_PLUGIN_NOTE(0, KILN_FEATURE_OPS, "mine");
//   const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::op::plugin<Cube>("mine"); }  // or of several
//
// All of these may throw: an Error with its code, or what else is derived from std::exception.
#ifndef KILN_OP_HPP
#define KILN_OP_HPP
#include <memory>
#include <type_traits>

#include "kiln/pass.hpp"

namespace kiln {
namespace op {

class Error : public std::exception {
 public:
  Error(uint32_t code, std::string message) : code_(code), message_(std::move(message)) {}  // KILN_*
  uint32_t code() const { return code_; }
  const char *what() const noexcept override { return message_.c_str(); }

 private:
  uint32_t code_;
  std::string message_;
};

// What infer and the constructor see of a node. Questions that have no answer (an operand or attribute that is not
// there, or is of another kind) throw.
class Call {
 public:
  Call(const kiln_host &host, kiln_op_call *call) : host_(host), table_(*host.op_call), call_(call) {}
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  // ---- a way down: what this does not offer, plugin.h does

  const kiln_host &host() const { return host_; }
  kiln_op_call *call() const { return call_; }
  // Takes the error over, and throws it.
  void check(kiln_error *error) const {
    if (!error) return;
    const std::unique_ptr<kiln_error, void (*)(kiln_error *)> owned(error, host_.error->destroy);
    kiln_text text{};
    host_.error->message(error, &text);
    throw Error(host_.error->code(error), std::string(text.data, text.size));
  }

  // ---- operands

  uint32_t operand_count() const { return table_.operand_count(call_); }
  kiln_dtype dtype(uint32_t operand) const {
    kiln_dtype number = 0;
    check(table_.dtype(call_, operand, &number));
    return number;
  }
  std::vector<kiln_dim> dims(uint32_t operand) const {
    uint64_t rank = 0;
    check(table_.dims(call_, operand, nullptr, 0, &rank));
    std::vector<kiln_dim> found(rank);
    if (rank) check(table_.dims(call_, operand, found.data(), rank, &rank));
    return found;
  }

  // ---- attributes, defaults filled in

  int64_t integer(std::string_view name) const { return read<int64_t>(name, KILN_ATTR_I64); }
  double number(std::string_view name) const { return read<double>(name, KILN_ATTR_F64); }
  bool truth(std::string_view name) const { return read<uint8_t>(name, KILN_ATTR_BOOL) != 0; }
  kiln_dim dim(std::string_view name) const { return read<kiln_dim>(name, KILN_ATTR_DIM); }
  std::string word(std::string_view name) const { return text_of(read<kiln_text>(name, KILN_ATTR_TEXT)); }

  // ---- dimensions

  // An expression: "n // 2 + 1".
  kiln_dim parse(std::string_view expression) const {
    kiln_dim made{};
    check(host_.dim->parse(table_.context(call_), expression.data(), expression.size(), &made));
    return made;
  }
  std::string text(const kiln_dim &dim) const {
    kiln_text text{};
    check(host_.dim->text(table_.context(call_), &dim, &text));
    return text_of(text);
  }
  // "[2, n]"
  std::string text(const std::vector<kiln_dim> &dims) const {
    std::string all;
    for (const kiln_dim &dim : dims) all += (all.empty() ? "" : ", ") + text(dim);
    return "[" + all + "]";
  }

  // ---- inside infer

  void result(uint32_t index, kiln_dtype dtype, const std::vector<kiln_dim> &dims) {
    kiln_type type{};
    type.struct_size = sizeof type;
    type.dtype = dtype;
    type.rank = static_cast<uint32_t>(dims.size());
    type.dims = dims.data();
    check(table_.result(call_, index, &type));
  }
  // `what` names both: "a dim 1 and b dim 0".
  void require_equal(const kiln_dim &a, const kiln_dim &b, std::string_view what) {
    check(table_.require_equal(call_, &a, &b, what.data(), what.size()));
  }
  // Operands or attributes do not fit. Kiln puts the node and the op before it.
  [[noreturn]] void fail(const std::string &message) const { throw Error(KILN_TYPE_MISMATCH, message); }

 private:
  static std::string text_of(const kiln_text &text) { return text.size ? std::string(text.data, text.size) : ""; }
  template <class T>
  T read(std::string_view name, uint32_t kind) const {
    kiln_attr attr{};
    check(table_.attr(call_, name.data(), name.size(), &attr));
    if (attr.kind == kind) return *static_cast<const T *>(attr.data);
    throw Error(KILN_TYPE_MISMATCH, "attribute '" + std::string(name) + "' is of another kind");
  }

  const kiln_host &host_;
  const kiln_host_op_call &table_;
  kiln_op_call *call_;
};

// What decompose sees of a node, and puts in its place. What cannot be added throws.
class Decomposition : public Call {
 public:
  using Call::Call;
  // Of one that is optional and was left out: 0.
  kiln_value operand(uint32_t index) const { return host().op_call->operand(call(), index); }
  // The first result of a new node. Operands of 0 at the end are left out.
  kiln_value add(std::string_view op, pass::Span<kiln_value> inputs, pass::Span<pass::Attr> attrs = {}) {
    return pass::result_of(add_node(op, inputs, attrs));
  }
  kiln_node add_node(std::string_view op, pass::Span<kiln_value> inputs, pass::Span<pass::Attr> attrs = {}) {
    kiln_op number = 0;
    check(host().op->find(host().op_call->context(call()), op.data(), op.size(), &number));
    const pass::CAttrs given(attrs);
    kiln_node node = 0;
    check(host().edit->add(edit(), number, nullptr, 0, inputs.data(), pass::given_count(inputs), given.data(),
                           given.size(), &node));
    return node;
  }
  // Its bytes are copied.
  kiln_value constant(const DLTensor &tensor) {
    kiln_value value = 0;
    check(host().edit->constant(edit(), nullptr, 0, &tensor, &value));
    return value;
  }
  // Of f32, and of this shape.
  kiln_value constant(pass::Span<float> values, std::vector<int64_t> shape = {}) {
    DLTensor tensor{};
    if (!pass::describe(values, shape, tensor)) throw Error(KILN_INVALID_ARGUMENT, pass::misshapen);
    return constant(tensor);
  }
  // The value is the node's result.
  void yield(uint32_t index, kiln_value value) { check(host().op_call->yield(call(), index, value)); }

 private:
  kiln_edit *edit() const { return host().op_call->edit(call()); }
};

// The operands, then the results, of one run: on the CPU, row-major.
class Arrays {
 public:
  Arrays(const DLTensor *const *arrays, uint64_t count) : arrays_(arrays), count_(count) {}
  uint64_t size() const { return count_; }
  const DLTensor &operator[](size_t index) const { return *arrays_[index]; }
  bool is_f64(size_t index) const { return arrays_[index]->dtype.code == 2 && arrays_[index]->dtype.bits == 64; }
  std::vector<int64_t> shape(size_t index) const {
    return {arrays_[index]->shape, arrays_[index]->shape + arrays_[index]->ndim};
  }
  template <class T>
  T *data(size_t index) const {
    return reinterpret_cast<T *>(static_cast<char *>(arrays_[index]->data) + arrays_[index]->byte_offset);
  }

 private:
  const DLTensor *const *arrays_;
  uint64_t count_;
};

// Runs `action`; what it throws is an error for the host.
template <class Action>
kiln_error *guarded(void *user, Action action) {
  const kiln_host &host = *static_cast<const kiln_host *>(user);
  try {
    action(host);
    return nullptr;
  } catch (const Error &error) {
    return host.error->create(error.code(), error.what(), std::strlen(error.what()), nullptr);
  } catch (...) {
    return pass::caught(host);
  }
}

template <class Op, class = void>
struct decomposes : std::false_type {};
template <class Op>
struct decomposes<Op, std::void_t<decltype(Op::decompose(std::declval<Decomposition &>()))>> : std::true_type {};
template <class Op, class = void>
struct runs : std::false_type {};
template <class Op>
struct runs<Op, std::void_t<decltype(std::declval<Op &>().run(std::declval<const Arrays &>()))>> : std::true_type {};

// For a setup of your own, where a plugin has more than ops.
template <class Op>
kiln_error *add_op(const kiln_host *host, kiln_context *context) {
  kiln_op_def def{};
  def.struct_size = sizeof def;
  def.flags = Op::flags;
  def.schema = Op::schema.data();
  def.schema_size = Op::schema.size();
  def.uuid = Op::uuid.data();
  def.user = const_cast<kiln_host *>(host);  // read only; it outlives the op
  def.infer = [](void *user, kiln_op_call *call) {
    return guarded(user, [&](const kiln_host &of) {
      Call node(of, call);
      Op::infer(node);
    });
  };
  static_assert(decomposes<Op>::value || runs<Op>::value, "an op has decompose, or run, or both");
  if constexpr (decomposes<Op>::value)
    def.decompose = [](void *user, kiln_op_call *call) {
      return guarded(user, [&](const kiln_host &of) {
        Decomposition to(of, call);
        Op::decompose(to);
      });
    };
  if constexpr (runs<Op>::value) {
    def.open = [](void *user, kiln_op_call *call, void **out_state) {
      return guarded(user, [&](const kiln_host &of) {
        Call node(of, call);
        *out_state = new Op(node);
      });
    };
    def.run = [](void *user, void *state, const DLTensor *const *arrays, uint64_t count, const kiln_run_options *) {
      return guarded(user, [&](const kiln_host &) { static_cast<Op *>(state)->run(Arrays(arrays, count)); });
    };
    def.close = [](void *, void *state) { delete static_cast<Op *>(state); };
  }
  return host->context->add_op(context, &def);
}

template <class... Ops>
kiln_error *set_up(const kiln_host *host, kiln_context *context, void **) {
  kiln_error *error = nullptr;
  (void)((error = add_op<Ops>(host, context)) || ...);
  return error;
}

// The table of a plugin of these ops; it must carry a note of this name that needs KILN_FEATURE_OPS.
template <class... Ops>
const kiln_plugin *plugin(std::string_view name) {
  static const kiln_plugin table = [&] {
    kiln_plugin made{};
    made.struct_size = sizeof made;
    made.abi_major = KILN_ABI_MAJOR;
    made.magic = KILN_PLUGIN_MAGIC;
    made.features_needed = KILN_FEATURE_OPS;
    made.name = name.data();
    made.name_size = name.size();
    made.setup = set_up<Ops...>;
    return made;
  }();
  return &table;
}

}  // namespace op
}  // namespace kiln
#endif
