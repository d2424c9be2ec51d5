// Random graphs: single ops, compositions that fusions look for, nodes that carry graphs, effects and a write, over
// rows of eight floats. Values stay small, so that what differs from the reference differs by more than rounding.
#include <array>
#include <functional>

#include "drawing.h"
#include "effects.h"
#include "graph_text.h"

namespace kiln::cli::plugin_check {
namespace {

constexpr std::array unary = {"neg", "abs", "tanh", "sigmoid", "relu", "silu", "sin", "cos", "gelu", "square"};
constexpr std::array binary = {"add", "sub", "mul", "maximum", "minimum"};
constexpr double largest = 4;  // beyond it a value goes through tanh before it is used
constexpr int deepest = 2;     // of graphs in graphs

// Of one graph; graphs that its nodes carry have makers of their own.
class Maker {
 public:
  // `depth` is 0 of the outermost graph.
  Maker(GraphText &text, Random &random, Named &named, int depth, std::string shape)
      : text_(text), random_(random), named_(named), depth_(depth), shape_(std::move(shape)) {}

  void make_outermost() {
    const size_t inputs = 1 + random_.below(2);
    for (size_t i = 0; i < inputs; ++i) rows_.push_back({text_.input("x" + std::to_string(i), shape_), 1});
    if (random_.below(4) == 0) token_ = text_.node("token", {});
    take_steps(3 + random_.below(8));
    for (size_t i = 0, some = 1 + random_.below(3); i < some; ++i) text_.yield(i ? pick().name : rows_.back().name);
    if (random_.below(6) == 0) text_.yield(text_.node("copy_", {text_.input("written", shape_), rows_.back().name}));
  }

 private:
  struct Value {
    std::string name;
    double magnitude;
  };
  using Step = std::function<void()>;

  void take_steps(size_t count) {
    const std::vector<Step> steps = weighted_steps();
    for (size_t i = 0; i < count; ++i) steps[random_.below(steps.size())]();
  }

  // One of them is drawn each time; what the plugin's file names is in it several times.
  std::vector<Step> weighted_steps() {
    std::vector<Step> steps;
    const auto put = [&](std::initializer_list<const char *> names, const Step &step) {
      bool named = true;
      for (const char *name : names) named = named && named_.has(name);
      for (int i = 0; i < (named ? 6 : 1); ++i) steps.push_back(step);
    };
    for (const char *op : unary) put({op}, [this, op] { push(op, {use(pick())}, "", 2); });
    for (const char *op : binary) put({op}, [this, op] { combine(op); });
    put({"neg"}, [this] { push("neg", {push("neg", {use(pick())}, "", 1)}, "", 1); });
    put({"matmul"}, [this] { push("matmul", {use(pick()), text_.parameter("[8, 8]")}, "", 4); });
    put({"softmax"}, [this] { push("softmax", {use(pick())}, "\"dim\": -1", 1); });
    put({"rms_norm"}, [this] { push("rms_norm", {use(pick()), text_.parameter("[8]")}, "", 4); });
    put({"mean", "rsqrt"}, [this] { rms_norm(); });
    put({"convert"}, [this] { convert(); });
    if (!token_.empty())
      for (int i = 0; i < 4; ++i) put({note_op}, [this] { token_ = text_.node(note_op, {use(pick()), token_}); });
    if (depth_ < deepest) {
      put({"call"}, [this] { call(); });
      put({"cond"}, [this] { cond(); });
      put({"while"}, [this] { loop(); });
    }
    if (depth_ > 0) return steps;
    put({"scan"}, [this] { scan(); });
    put({"matmul", "softmax"}, [this] { attention(); });
    put({"conv2d", "batch_norm"}, [this] { convolution(); });
    return steps;
  }

  std::string push(const std::string &op, const std::vector<std::string> &operands, const std::string &attrs,
                   double magnitude) {
    rows_.push_back({text_.node(op, operands, attrs), magnitude});
    return rows_.back().name;
  }
  // The last value as often as all others together.
  Value pick() { return random_.below(2) ? rows_.back() : rows_[random_.below(rows_.size())]; }
  std::string use(const Value &value) {
    return value.magnitude > largest ? push("tanh", {value.name}, "", 1) : value.name;
  }
  // Two values, or one and a scalar, a row, or a column, in either order.
  void combine(const std::string &op) {
    const std::string a = use(pick());
    std::string b;
    switch (random_.below(5)) {
      case 0:
        b = text_.constant(random_.below(2) ? 0 : 1.5);
        break;
      case 1:
        b = text_.parameter("[8]");
        break;
      case 2:
        b = text_.node("mean", {a}, R"("dims": [-1], "keepdim": true)");
        break;
      case 3:
        b = a;
        break;
      default:
        b = use(pick());
    }
    const bool turned = random_.below(2) == 0;
    push(op, {turned ? b : a, turned ? a : b}, "", op == "mul" ? largest * largest : 2 * largest);
  }
  std::string either(const std::string &op, const std::string &a, const std::string &b) {
    const bool turned = random_.below(2) == 0;
    return text_.node(op, {turned ? b : a, turned ? a : b});
  }
  void rms_norm() {
    const std::string x = use(pick()), squared = text_.node("mul", {x, x}),
                      mean = text_.node("mean", {squared}, R"("dims": [-1], "keepdim": true)"),
                      inverse = text_.node("rsqrt", {either("add", mean, text_.constant(0.25))}),
                      scaled = either("mul", x, inverse), y = either("mul", scaled, text_.parameter("[8]"));
    rows_.push_back({y, 8});
    if (random_.below(4) == 0) rows_.push_back({scaled, 8});  // a value inside that is used outside, too
  }
  // In a wider type, and back.
  void convert() {
    const std::string wide = text_.dtype() == "f32" ? "f64" : "f32",
                      x = text_.node("convert", {use(pick())}, R"("dtype": ")" + wide + '"'),
                      y = text_.node(unary[random_.below(unary.size())], {x});
    push("convert", {y}, R"("dtype": ")" + text_.dtype() + '"', 2);
  }
  void attention() {
    const std::string of = std::to_string(blocks_++), shape = "[1, 2, 5, 8]";
    const std::string q = text_.input("q" + of, shape), k = text_.input("k" + of, shape),
                      v = text_.input("v" + of, shape), turned = text_.node("permute", {k}, "\"dims\": [0, 1, 3, 2]"),
                      s = text_.node("matmul", {q, turned}), scaled = either("mul", s, text_.constant(0.5)),
                      p = text_.node("softmax", {scaled}, "\"dim\": -1");
    text_.yield(text_.node("matmul", {p, v}));
  }
  void convolution() {
    const std::string x = text_.input("image" + std::to_string(blocks_++), "[2, 3, 6, 6]"),
                      y = text_.node("conv2d", {x, text_.parameter("[4, 3, 3, 3]")}), a = text_.parameter("[4]"),
                      b = text_.parameter("[4]"), mean = text_.parameter("[4]"), variance = text_.parameter("[4]");
    text_.yield(text_.node("batch_norm", {y, a, b, mean, variance}));
  }

  // ---- nodes that carry graphs. What orders effects goes through them.

  // Its name. `open` declares the inputs of the maker that it is given, `close` says what the graph yields.
  using Part = std::function<void(Maker &)>;
  std::string nested(const std::string &shape, const Part &open, const Part &close) {
    GraphText text(text_);
    Maker maker(text, random_, named_, depth_ + 1, shape);
    open(maker);
    text.end_inputs();
    maker.take_steps(1 + random_.below(3));
    close(maker);
    return text.close();
  }
  void open_rows() { rows_.push_back({text_.input("rows", shape_), largest}); }
  void open_token(bool has_token) {
    if (has_token) token_ = text_.input("after", "[]", "token");
  }
  void close_rows() { text_.yield(use(rows_.back())); }
  void close_token() {
    if (!token_.empty()) text_.yield(token_);
  }
  // With the token, if there is one, behind what comes first.
  std::vector<std::string> operands(std::vector<std::string> given, const std::vector<std::string> &then = {}) {
    if (!token_.empty()) given.push_back(token_);
    given.insert(given.end(), then.begin(), then.end());
    for (std::string &operand : GraphText::operands_behind(text_)) given.push_back(std::move(operand));
    return given;
  }
  static std::string graph_attr(const std::string &name, const std::string &graph) {
    return '"' + name + "\": \"" + graph + '"';
  }

  std::string branch() {
    const bool has_token = !token_.empty();
    return nested(
        shape_,
        [&](Maker &maker) {
          maker.open_rows();
          maker.open_token(has_token);
        },
        [](Maker &maker) {
          maker.close_rows();
          maker.close_token();
        });
  }
  void take_results(const std::string &node) {
    rows_.push_back({token_.empty() ? node : node + ":0", largest});
    if (!token_.empty()) token_ = node + ":1";
  }
  void call() {
    const std::string attr = graph_attr("graph", branch()), x = use(pick());
    take_results(text_.node("call", operands({x}), attr));
  }
  void cond() {
    if (depth_ == 0 && predicate_.empty()) predicate_ = text_.input("predicate", "[]", "bool");
    if (predicate_.empty()) return call();  // graphs inside are not given it
    const std::string then_graph = branch(), else_graph = branch(), x = use(pick());
    std::vector<std::string> given = operands({x});
    given.insert(given.begin(), predicate_);
    take_results(
        text_.node("cond", given, graph_attr("then_graph", then_graph) + ", " + graph_attr("else_graph", else_graph)));
  }
  // For one to three turns, which are counted.
  void loop() {
    const bool has_token = !token_.empty();
    const int64_t turns = 1 + static_cast<int64_t>(random_.below(3));
    const auto open = [&](Maker &maker) {
      maker.text_.input("turn", "[]", "i64");
      maker.open_rows();
      maker.open_token(has_token);
    };
    GraphText more(text_);
    Maker counting(more, random_, named_, depth_ + 1, shape_);
    open(counting);
    more.end_inputs();
    more.yield(more.node("lt", {"turn", more.integer(turns)}));
    const std::string cond_graph = more.close(),
                      body_graph = nested(shape_, open, [](Maker &maker) {
                        maker.text_.yield(maker.text_.node("add", {"turn", maker.text_.integer(1)}));
                        maker.close_rows();
                        maker.close_token();
                      });
    const std::string x = use(pick()), node = text_.node("while", operands({text_.integer(0), x}),
                                                         graph_attr("cond_graph", cond_graph) + ", " +
                                                             graph_attr("body_graph", body_graph) +
                                                             ", \"carried\": " + (has_token ? "3" : "2"));
    rows_.push_back({node + ":1", largest});
    if (has_token) token_ = node + ":2";
  }
  // Over the rows, carrying one.
  void scan() {
    const bool has_token = !token_.empty();
    const std::string body = nested(
        "[8]",
        [&](Maker &maker) {
          maker.rows_.push_back({maker.text_.input("carried", "[8]"), largest});
          maker.open_token(has_token);
          maker.open_rows();
        },
        [](Maker &maker) {
          const std::string y = maker.use(maker.rows_.back());
          maker.text_.yield(maker.text_.node("tanh", {y}));
          maker.close_token();
          maker.text_.yield(y);
        });
    const std::string x = use(pick()), first = text_.node("mean", {x}, "\"dims\": [0]"),
                      node = text_.node("scan", operands({first}, {x}),
                                        graph_attr("body_graph", body) + (has_token ? ", \"carried\": 2" : "") +
                                            ", \"sequences\": 1");
    rows_.push_back({node + (has_token ? ":2" : ":1"), largest});
    if (has_token) token_ = node + ":1";
  }

  GraphText &text_;
  Random &random_;
  Named &named_;
  int depth_;
  std::string shape_;        // of rows
  std::vector<Value> rows_;  // [n, 8]; [8] in a scan
  std::string token_;        // of the last effect; "": there is none
  std::string predicate_;
  size_t blocks_ = 0;
};

// Most are f32.
std::string dtype_of(size_t drawn) { return drawn == 0 ? "f16" : drawn == 1 ? "bf16" : "f32"; }

}  // namespace

Item random_graph(uint64_t seed, std::string_view bytes, const Dress &dress) {
  Random random{seed * 0x2545f4914f6cdd1d + 1};
  const bool is_symbolic = random.below(2) == 0;
  GraphText text(dtype_of(random.below(6)), is_symbolic, dress);
  Named named(bytes);
  Maker(text, random, named, 0, text.rows()).make_outermost();
  return {"random " + std::to_string(seed), text.json(), {}, text.dtype() == "bf16" ? bfloat_tolerance : 0};
}

}  // namespace kiln::cli::plugin_check
