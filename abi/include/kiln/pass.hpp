// kiln/pass.hpp: for passes written in C++17 or later. Header-only, over plugin.h; nothing here is part of the ABI.
//
//   KILN_PLUGIN_NOTE(0, 0, "drop_copies");
//   static uint64_t rewrite(kiln::pass::Rewriter &graph) {
//     ... graph.replace(from, to) ...
//     return how_many;
//   }
//   static constexpr kiln::pass::Definition definition = {
//       "drop_copies", "1", {16 bytes}, KILN_STAGE_POST_GRAD, rewrite,
//   };
//   const kiln_plugin *kiln_plugin_entry_v1(void) {
//     return kiln::pass::plugin<definition>();  // or of several: plugin<first, second>()
//   }
//
// A pass may throw what is derived from std::exception: it is the pass's error.
#ifndef KILN_PASS_HPP
#define KILN_PASS_HPP
#include <array>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <optional>
#include <stdexcept>  // for what passes throw
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kiln/attr.hpp"
#include "kiln/pattern.hpp"
#include "kiln/plugin.h"

namespace kiln {
namespace pass {

inline kiln_value result_of(kiln_node node, uint32_t output = 0) { return node << 32 | output; }
inline kiln_node node_of(kiln_value value) { return value >> 32; }

// Describes f32 values of this shape, which stay the caller's. False: the shape has not as many elements.
inline bool describe(Span<float> values, std::vector<int64_t> &shape, DLTensor &out) {
  out = {};
  out.data = const_cast<float *>(values.data());                              // read only
  out.device.device_type = static_cast<decltype(out.device.device_type)>(1);  // the CPU
  out.ndim = static_cast<int32_t>(shape.size());
  out.dtype.code = 2;  // float
  out.dtype.bits = 32;
  out.dtype.lanes = 1;
  out.shape = shape.data();
  int64_t elements = 1;
  for (int64_t size : shape) elements *= size;
  return elements == static_cast<int64_t>(values.size());
}
constexpr const char *misshapen = "a constant's shape has not as many elements as there are values";

// The graph of a running pass: questions, and changes. A question that has no answer is answered by 0, false or
// nothing, which is no match. The first change that fails ends the pass: later ones do nothing, and finish() returns
// its error.
class Rewriter {
 public:
  Rewriter(const kiln_host &host, kiln_pass_call *call)
      : host_(host), call_(call), edit_(host.pass->edit(call)), graph_(host.edit->view(edit_)) {}
  Rewriter(const Rewriter &) = delete;
  Rewriter &operator=(const Rewriter &) = delete;
  ~Rewriter() { host_.error->destroy(error_); }

  // ---- a way down: what these do not offer, plugin.h does

  const kiln_host &host() const { return host_; }
  kiln_pass_call *call() const { return call_; }
  kiln_context *context() const { return host_.pass->context(call_); }
  kiln_edit *edit() const { return edit_; }
  const kiln_graph *graph() const { return graph_; }
  // Takes the error over: of a call that was made down there, or of the pass's own finding. The first one is kept, and
  // ends the pass. Returns whether there is none.
  bool check(kiln_error *error) {
    if (!error) return true;
    if (error_) host_.error->destroy(error);
    if (!error_) error_ = error;
    return false;
  }
  // Ends the pass with an error, KILN_*.
  void fail(uint32_t code, std::string_view message) {
    check(host_.error->create(code, message.data(), message.size(), nullptr));
  }
  bool failed() const { return error_ != nullptr; }

  // ---- questions

  // The op's number, or 0: no node is of that op.
  kiln_op op(std::string_view name) const {
    kiln_op number = 0;
    return ok(host_.op->find(host_.pass->context(call_), name.data(), name.size(), &number)) ? number : 0;
  }
  // As they stand, in topological order; a copy.
  std::vector<kiln_node> nodes() const {
    return list<kiln_node>([&](kiln_node *buffer, uint64_t capacity, uint64_t *count) {
      return host_.graph->nodes(graph_, buffer, capacity, count);
    });
  }
  // Whether the node is of this op, and no attribute but those named differs from its default.
  bool is(kiln_node node, kiln_op op, std::initializer_list<std::string_view> named = {}) const {
    if (!op || host_.node->op(graph_, node) != op) return false;
    for (const kiln_attr &attr : attrs(node)) {
      bool known = false;
      for (std::string_view name : named) known = known || name == name_of(attr);
      if (!known) return false;
    }
    return true;
  }
  // KILN_NODE_*.
  uint32_t kind(kiln_node node) const { return host_.node->kind(graph_, node); }
  kiln_op op_of(kiln_node node) const { return host_.node->op(graph_, node); }
  // A view: valid until the next change.
  std::string_view name(kiln_node node) const {
    kiln_text text{};
    return ok(host_.node->name(graph_, node, &text)) ? std::string_view(text.data, text.size) : std::string_view();
  }
  std::vector<kiln_value> inputs() const { return signature(KILN_SIDE_INPUTS); }
  std::vector<kiln_value> parameters() const { return signature(KILN_SIDE_PARAMETERS); }
  std::vector<kiln_value> outputs() const { return signature(KILN_SIDE_OUTPUTS); }
  bool is_output(kiln_value value) const {
    for (kiln_value output : outputs())
      if (output == value) return true;
    return false;
  }
  uint32_t input_count(kiln_node node) const { return host_.node->input_count(graph_, node); }
  uint32_t output_count(kiln_node node) const { return host_.node->output_count(graph_, node); }
  std::vector<kiln_value> operands(kiln_node node) const {
    std::vector<kiln_value> values(input_count(node));
    for (uint32_t i = 0; i < values.size(); i++) values[i] = input(node, i);
    return values;
  }
  // Of a node with two operands that may stand in either order: calls match(first, second), then match(second, first),
  // until one returns what is not empty (an optional, or a bool).
  template <class Match>
  auto either_order(kiln_node node, Match match) const {
    auto found = match(input(node, 0), input(node, 1));
    return found ? found : match(input(node, 1), input(node, 0));
  }
  kiln_value input(kiln_node node, uint32_t index) const { return host_.node->input(graph_, node, index); }
  // Of a node with two operands, the one that is not `operand`.
  kiln_value other_input(kiln_node node, kiln_value operand) const {
    return input(node, 0) == operand ? input(node, 1) : input(node, 0);
  }
  bool used_once(kiln_value value) const { return host_.value->use_count(graph_, value) == 1; }
  // How often the value is an operand or an output; nodes count that nothing uses any more.
  uint32_t use_count(kiln_value value) const { return host_.value->use_count(graph_, value); }
  // The op nodes that use it, each once.
  std::vector<kiln_node> users(kiln_value value) const {
    return list<kiln_node>([&](kiln_node *buffer, uint64_t capacity, uint64_t *count) {
      return host_.value->users(graph_, value, buffer, capacity, count);
    });
  }
  // The node that alone uses the value, once; 0 when an output does.
  kiln_node only_user(kiln_value value) const {
    const auto all = users(value);
    return used_once(value) && all.size() == 1 ? all.front() : 0;
  }
  kiln_value view_of(kiln_value value) const { return host_.value->view_of(graph_, value); }
  kiln_dtype dtype(kiln_value value) const {
    kiln_dtype number = 0;
    return ok(host_.value->dtype(graph_, value, &number)) ? number : 0;
  }
  std::vector<kiln_dim> dims(kiln_value value) const {
    return list<kiln_dim>([&](kiln_dim *buffer, uint64_t capacity, uint64_t *count) {
      return host_.value->dims(graph_, value, buffer, capacity, count);
    });
  }
  // Whether both have the same value in every run of the graph; false where Kiln cannot tell.
  static bool same(const kiln_dim &a, const kiln_dim &b) { return a.value == b.value && a.expr == b.expr; }
  bool same_dims(kiln_value a, kiln_value b) const { return all_are(dims(a), dims(b), same); }
  std::vector<int64_t> integers(kiln_node node, std::string_view attr) const {
    return read<int64_t>(node, attr, KILN_ATTR_I64);
  }
  std::optional<double> number(kiln_node node, std::string_view attr) const {
    return first(read<double>(node, attr, KILN_ATTR_F64));
  }
  std::optional<uint8_t> truth(kiln_node node, std::string_view attr) const {
    return first(read<uint8_t>(node, attr, KILN_ATTR_BOOL));
  }
  std::optional<int64_t> integer(kiln_node node, std::string_view attr) const { return first(integers(node, attr)); }
  std::optional<kiln_dtype> dtype_attr(kiln_node node, std::string_view attr) const {
    return first(read<kiln_dtype>(node, attr, KILN_ATTR_DTYPE));
  }
  std::optional<std::string> text(kiln_node node, std::string_view attr) const {
    const auto texts = read<kiln_text>(node, attr, KILN_ATTR_TEXT);
    if (texts.size() != 1) return std::nullopt;
    return std::string(texts.front().data, texts.front().size);
  }
  // The bytes of a constant, row-major, as long as the graph stands; NULL of any other node.
  const DLTensor *constant_of(kiln_node node) const {
    const DLTensor *tensor = nullptr;
    return kind(node) == KILN_NODE_CONSTANT && ok(host_.node->constant(graph_, node, &tensor)) ? tensor : nullptr;
  }
  // The value of a scalar (rank 0) that the graph itself holds: an f32 or f64 constant, or `full`.
  std::optional<double> scalar(kiln_value value) const {
    const kiln_node node = node_of(value);
    if (!dims(value).empty()) return std::nullopt;
    if (is(node, op("full"), {"value", "shape", "dtype"})) return number(node, "value");
    const DLTensor *tensor = constant_of(node);
    if (!tensor) return std::nullopt;
    const char *data = static_cast<const char *>(tensor->data) + tensor->byte_offset;
    if (dtype(value) == KILN_F64) return load<double>(data);
    if (dtype(value) == KILN_F32) return load<float>(data);
    return std::nullopt;
  }
  // Whether two nodes carry the same annotations; debug.* are for people and do not count.
  bool same_annotations(kiln_node a, kiln_node b) const { return all_are(annotations(a), annotations(b), equal); }

  // ---- options that the pass declared, with what the host set

  int64_t integer_option(std::string_view name) { return option<int64_t>(name, KILN_ATTR_I64); }
  double number_option(std::string_view name) { return option<double>(name, KILN_ATTR_F64); }
  bool truth_option(std::string_view name) { return option<uint8_t>(name, KILN_ATTR_BOOL) != 0; }
  std::string text_option(std::string_view name) {
    const kiln_text text = option<kiln_text>(name, KILN_ATTR_TEXT);
    return text.data ? std::string(text.data, text.size) : std::string();
  }

  // ---- what neither graph nor key has, "host.rank" (kiln_pass_query): the result may depend on it. Nothing: there is
  // no such variable, file or fact. A fact of another kind ends the pass.

  std::optional<int64_t> ask_integer(std::string_view question) { return ask<int64_t>(question, KILN_ATTR_I64); }
  std::optional<double> ask_number(std::string_view question) { return ask<double>(question, KILN_ATTR_F64); }
  std::optional<std::string> ask_text(std::string_view question) {
    const auto text = ask<kiln_text>(question, KILN_ATTR_TEXT);
    return text ? std::optional<std::string>(std::in_place, text->data, text->size) : std::nullopt;
  }
  // Why no other compile may be given what the pass makes: it reads what cannot be asked for.
  void uncacheable(std::string_view why) {
    if (!error_) check(host_.pass->uncacheable(call_, why.data(), why.size()));
  }

  // ---- what whoever compiles is told: one line of UTF-8

  void note(std::string_view text) {
    if (!error_) check(host_.pass->note(call_, text.data(), text.size()));
  }
  void warn(std::string_view text) {
    if (!error_) check(host_.pass->warn(call_, text.data(), text.size()));
  }

  // ---- changes

  // Adds an op node; its first result, or 0 after a failure.
  kiln_value add(kiln_op op, Span<kiln_value> inputs, Span<Attr> attrs = {}) {
    return result_of(add_node(op, inputs, attrs));
  }
  // The node itself, for ops of several results. Operands of 0 at the end are left out: optional ones.
  kiln_node add_node(kiln_op op, Span<kiln_value> inputs, Span<Attr> attrs = {}) {
    if (error_) return 0;
    const CAttrs given(attrs);
    kiln_node node = 0;
    error_ =
        host_.edit->add(edit_, op, nullptr, 0, inputs.data(), given_count(inputs), given.data(), given.size(), &node);
    return error_ ? 0 : node;
  }
  // Adds a constant; its bytes are copied.
  kiln_value constant(const DLTensor &tensor) {
    kiln_value value = 0;
    if (!error_) error_ = host_.edit->constant(edit_, nullptr, 0, &tensor, &value);
    return error_ ? 0 : value;
  }
  // Of f32, and of this shape.
  kiln_value constant(Span<float> values, std::vector<int64_t> shape = {}) {
    DLTensor tensor{};
    if (describe(values, shape, tensor)) return constant(tensor);
    fail(KILN_INVALID_ARGUMENT, misshapen);
    return 0;
  }
  // Sets annotations of an op node; those of Remove{} are taken away. Others stay.
  void annotate(kiln_node node, Span<Attr> annotations) {
    const CAttrs given(annotations);
    if (!error_) error_ = host_.edit->annotate(edit_, node, given.data(), given.size());
  }
  // The graph's outputs, of which there must be as many, of the same types; names are kept.
  void set_outputs(Span<kiln_value> values) {
    if (!error_) error_ = host_.edit->outputs(edit_, values.data(), nullptr, values.size());
  }
  void replace(kiln_value from, kiln_value to) {
    if (!error_) error_ = host_.edit->replace(edit_, from, to);
  }
  // ---- patterns (docs/patterns.md)

  // Rewrites by the pass's patterns; how often.
  uint64_t apply_patterns() {
    uint64_t rewrites = 0;
    if (!error_) check(host_.pass->apply_patterns(call_, &rewrites));
    return rewrites;
  }
  // In a function that rewrites a match: what a capture or a node of the pattern is; 0: an optional one that is not
  // there.
  kiln_value matched(std::string_view name) {
    kiln_value value = 0;
    if (!error_) check(host_.pass->match_value(call_, name.data(), name.size(), &value));
    return value;
  }
  // The number of a capture with "number".
  double matched_number(std::string_view name) {
    double number = 0;
    if (!error_) check(host_.pass->match_number(call_, name.data(), name.size(), &number));
    return number;
  }
  // What takes the place of the pattern's outputs. Without this the place stays as it is.
  void replace_match(Span<kiln_value> values) {
    if (!error_) check(host_.pass->match_replace(call_, values.data(), values.size()));
  }

  // What a function that rewrites a match returns to the host.
  kiln_error *take_error() { return std::exchange(error_, nullptr); }
  // Ends the pass: what run() returns.
  kiln_error *finish(uint64_t rewrites) {
    if (!error_) return host_.pass->done(call_, rewrites);
    return std::exchange(error_, nullptr);
  }

 private:
  bool ok(kiln_error *error) const {
    if (!error) return true;
    host_.error->destroy(error);
    return false;
  }
  // Whether both have as many items, and those at one place are `alike`.
  template <class T, class Alike>
  static bool all_are(const std::vector<T> &a, const std::vector<T> &b, Alike alike) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); i++)
      if (!alike(a[i], b[i])) return false;
    return true;
  }
  std::vector<kiln_value> signature(uint32_t side) const {
    return list<kiln_value>([&](kiln_value *buffer, uint64_t capacity, uint64_t *count) {
      return host_.graph->signature(graph_, side, buffer, capacity, count);
    });
  }
  template <class T>
  T option(std::string_view name, uint32_t kind) {
    kiln_attr attr{};
    if (error_ || !check(host_.pass->option(call_, name.data(), name.size(), &attr))) return T{};
    if (attr.kind == kind) return *static_cast<const T *>(attr.data);
    fail(KILN_TYPE_MISMATCH, "option '" + std::string(name) + "' is of another kind");
    return T{};
  }
  template <class T>
  std::optional<T> ask(std::string_view question, uint32_t kind) {
    kiln_attr answer{};
    if (error_ || !check(host_.pass->query(call_, question.data(), question.size(), &answer))) return std::nullopt;
    if (answer.kind == kind) return *static_cast<const T *>(answer.data);
    if (answer.kind != KILN_ATTR_NONE)
      fail(KILN_TYPE_MISMATCH, "the answer to '" + std::string(question) + "' is of another kind");
    return std::nullopt;
  }
  static std::string_view name_of(const kiln_attr &attr) { return {attr.name, attr.name_size}; }

  // Asks how many there are, then for all of them.
  template <class T, class Ask>
  std::vector<T> list(Ask ask) const {
    uint64_t count = 0;
    if (!ok(ask(nullptr, 0, &count))) return {};
    std::vector<T> items(count);
    if (count && !ok(ask(items.data(), count, &count))) items.clear();
    return items;
  }
  std::vector<kiln_attr> attrs(kiln_node node) const {
    return list<kiln_attr>([&](kiln_attr *buffer, uint64_t capacity, uint64_t *count) {
      return host_.node->attrs(graph_, node, buffer, capacity, count);
    });
  }
  std::vector<kiln_attr> annotations(kiln_node node) const {
    std::vector<kiln_attr> kept;
    const auto all = list<kiln_attr>([&](kiln_attr *buffer, uint64_t capacity, uint64_t *count) {
      return host_.node->annotations(graph_, node, buffer, capacity, count);
    });
    for (const kiln_attr &annotation : all)
      if (name_of(annotation).substr(0, 6) != "debug.") kept.push_back(annotation);
    return kept;
  }

  template <class T>
  std::vector<T> read(kiln_node node, std::string_view name, uint32_t kind) const {
    kiln_attr attr{};
    if (!ok(host_.node->attr(graph_, node, name.data(), name.size(), &attr))) return {};
    if ((attr.kind & ~KILN_ATTR_LIST) != kind) return {};
    const T *data = static_cast<const T *>(attr.data);
    return {data, data + attr.count};
  }
  template <class T>
  static std::optional<T> first(const std::vector<T> &values) {
    return values.size() == 1 ? std::optional<T>(values.front()) : std::nullopt;
  }
  template <class T>
  static T load(const char *data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
  }

  static bool equal(const kiln_attr &a, const kiln_attr &b) {
    if (name_of(a) != name_of(b) || a.kind != b.kind || a.count != b.count) return false;
    const uint32_t kind = a.kind & ~KILN_ATTR_LIST;
    if (kind == KILN_ATTR_TEXT) {
      const auto *of_a = static_cast<const kiln_text *>(a.data), *of_b = static_cast<const kiln_text *>(b.data);
      for (uint64_t i = 0; i < a.count; i++)
        if (std::string_view(of_a[i].data, of_a[i].size) != std::string_view(of_b[i].data, of_b[i].size)) return false;
      return true;
    }
    const uint64_t element = kind == KILN_ATTR_BOOL ? 1 : kind == KILN_ATTR_DTYPE ? 4 : 8;  // i64 and f64: 8
    return a.count == 0 || std::memcmp(a.data, b.data, a.count * element) == 0;
  }

  const kiln_host &host_;
  kiln_pass_call *call_;
  kiln_edit *edit_;
  const kiln_graph *graph_;
  kiln_error *error_ = nullptr;
};

inline std::vector<Attr> no_options() { return {}; }
inline std::vector<Pattern> no_patterns() { return {}; }

// A pass with an identity. `options` are those that it knows, with their defaults.
struct Definition {
  std::string_view name, version;
  std::array<uint8_t, 16> uuid;
  uint32_t stage;                        // KILN_STAGE_*
  uint64_t (*rewrite)(Rewriter &graph);  // returns how many rewrites it made; see kiln_pass for what it may depend on
  std::vector<Attr> (*options)() = no_options;
  int32_t priority = 0;
  uint32_t flags = 0;           // KILN_PASS_*
  std::string_view label = {};  // tells several of one name and UUID apart
  // With patterns `rewrite` may be nullptr: then the pass is these. The note says KILN_FEATURE_PATTERNS.
  std::vector<Pattern> (*patterns)() = no_patterns;
};
// A pass that is nothing but its patterns.
constexpr Definition of_patterns(std::string_view name, std::string_view version, std::array<uint8_t, 16> uuid,
                                 uint32_t stage, std::vector<Pattern> (*patterns)()) {
  return {name, version, uuid, stage, nullptr, no_options, 0, 0, {}, patterns};
}

// What is being thrown, as an error: nothing may be thrown into the host.
inline kiln_error *caught(const kiln_host &host) {
  const auto failed = [&](uint32_t code, std::string_view text) {
    return host.error->create(code, text.data(), text.size(), nullptr);
  };
  try {
    throw;
  } catch (const std::bad_alloc &) {
    return failed(KILN_OUT_OF_MEMORY, {});
  } catch (const std::exception &exception) {
    return failed(KILN_EXCEPTION, exception.what());
  } catch (...) {
    return failed(KILN_EXCEPTION, "it threw what is no std::exception");
  }
}

template <void (*rewrite)(Rewriter &)>
kiln_error *rewrite_match(void *user, kiln_pass_call *call) {
  const kiln_host &host = *static_cast<const kiln_host *>(user);
  try {
    Rewriter graph(host, call);
    rewrite(graph);
    return graph.take_error();
  } catch (...) {
    return caught(host);
  }
}
// A pattern without a replacement, at each place of which `rewrite` is called.
template <void (*rewrite)(Rewriter &)>
Pattern calling(Pattern pattern) {
  pattern.rewrite = rewrite_match<rewrite>;
  return pattern;
}

template <const Definition &definition>
kiln_error *run(void *user, kiln_pass_call *call) {
  const kiln_host &host = *static_cast<const kiln_host *>(user);
  try {
    Rewriter graph(host, call);
    return graph.finish(definition.rewrite(graph));
  } catch (...) {
    return caught(host);
  }
}

// Asked of an argument: a compiler warns where it knows that a function's own address is compared with NULL.
constexpr bool is_given(uint64_t (*rewrite)(Rewriter &graph)) { return rewrite != nullptr; }

template <const Definition &definition>
kiln_error *add_pass(const kiln_host *host, kiln_context *context) {
  kiln_pass pass{};
  pass.struct_size = sizeof pass;
  pass.stage = definition.stage;
  pass.name = definition.name.data();
  pass.name_size = definition.name.size();
  pass.version = definition.version.data();
  pass.version_size = definition.version.size();
  pass.uuid = definition.uuid.data();
  pass.user = const_cast<kiln_host *>(host);  // read only; it outlives the pass
  if (is_given(definition.rewrite)) pass.run = run<definition>;
  pass.priority = definition.priority;
  pass.flags = definition.flags;
  pass.label = definition.label.data();
  pass.label_size = definition.label.size();
  const std::vector<Attr> known = definition.options();
  const CAttrs options(known);
  pass.options = options.data();
  pass.option_count = options.size();
  const std::vector<Pattern> made = definition.patterns();
  std::vector<kiln_pattern> patterns(made.size());
  std::vector<const kiln_pattern *> row;
  for (size_t i = 0; i < made.size(); i++) {
    patterns[i].struct_size = sizeof patterns[i];
    patterns[i].json = made[i].json.data();
    patterns[i].json_size = made[i].json.size();
    patterns[i].rewrite = made[i].rewrite;
    row.push_back(&patterns[i]);
  }
  pass.patterns = row.data();
  pass.pattern_count = row.size();
  return host->context->add_pass(context, &pass);
}

template <const Definition &...definitions>
kiln_error *set_up(const kiln_host *host, kiln_context *context, void **) {
  kiln_error *error = nullptr;
  try {
    (void)((error = add_pass<definitions>(host, context)) || ...);
    return error;
  } catch (...) {
    return caught(*host);
  }
}

// The table of a plugin of these passes; it must carry a note of the first one's name that needs nothing, or, where
// one has patterns, KILN_FEATURE_PATTERNS.
template <const Definition &first, const Definition &...others>
const kiln_plugin *plugin() {
  static const kiln_plugin table = [] {
    kiln_plugin made{};
    made.struct_size = sizeof made;
    made.abi_major = KILN_ABI_MAJOR;
    made.magic = KILN_PLUGIN_MAGIC;
    made.name = first.name.data();
    made.name_size = first.name.size();
    if (((first.patterns != no_patterns) || ... || (others.patterns != no_patterns)))
      made.features_needed = KILN_FEATURE_PATTERNS;
    made.setup = set_up<first, others...>;
    return made;
  }();
  return &table;
}

}  // namespace pass
}  // namespace kiln
#endif
