// Random graphs: single ops, and compositions that fusions look for, over rows of eight floats. Values stay small, so
// that what differs from the reference differs by more than rounding.
#include <array>
#include <functional>

#include "../../json.h"
#include "corpus.h"

namespace kiln::cli::plugin_check {
namespace {

struct Random {
  uint64_t state;
  uint64_t next() {  // splitmix64
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  size_t below(size_t n) { return static_cast<size_t>(next() % n); }
};

constexpr std::array unary = {"neg", "abs", "tanh", "sigmoid", "relu", "silu", "sin", "cos", "gelu", "square"};
constexpr std::array binary = {"add", "sub", "mul", "maximum", "minimum"};
constexpr double largest = 4;  // beyond it a value goes through tanh before it is used

class Maker {
 public:
  Maker(uint64_t seed, std::string_view bytes, const Dress &dress)
      : random_{seed * 0x2545f4914f6cdd1d + 1},
        bytes_(bytes),
        is_rust_(bytes.find("RUST_BACKTRACE") != bytes.npos),
        dress_(dress) {
    is_symbolic_ = random_.below(2) == 0;
    const size_t inputs = 1 + random_.below(2);
    for (size_t i = 0; i < inputs; ++i) rows_.push_back({input("x" + std::to_string(i), rows(8)), 1});
  }

  std::string json() {
    const std::vector<Step> steps = weighted_steps();
    const size_t count = 3 + random_.below(8);
    for (size_t i = 0; i < count; ++i) steps[random_.below(steps.size())]();
    for (size_t i = 0, some = 1 + random_.below(3); i < some; ++i) yield(i ? pick().name : rows_.back().name);
    std::string symbols = is_symbolic_ ? R"("symbols": {"n": {"min": 1, "hint": 5}}, )" : "";
    return "{\"kiln\": 1, " + symbols + "\"inputs\": [" + inputs_ + "], \"parameters\": [" + parameters_ +
           "], \"constants\": [" + constants_ + "],\n \"nodes\": [\n  " + nodes_ + "],\n \"outputs\": [" + outputs_ +
           "]}\n";
  }

 private:
  struct Value {
    std::string name;
    double magnitude;
  };
  using Step = std::function<void()>;

  // One of them is drawn each time; what the plugin's file names is in it several times.
  std::vector<Step> weighted_steps() {
    std::vector<Step> steps;
    const auto put = [&](std::initializer_list<const char *> names, const Step &step) {
      bool named = true;
      for (const char *name : names) named = named && is_named(name);
      for (int i = 0; i < (named ? 6 : 1); ++i) steps.push_back(step);
    };
    for (const char *op : unary) put({op}, [this, op] { push(op, {use(pick())}, "", 2); });
    for (const char *op : binary) put({op}, [this, op] { combine(op); });
    put({"neg"}, [this] { push("neg", {push("neg", {use(pick())}, "", 1)}, "", 1); });
    put({"matmul"}, [this] { push("matmul", {use(pick()), parameter("[8, 8]")}, "", 4); });
    put({"softmax"}, [this] { push("softmax", {use(pick())}, "\"dim\": -1", 1); });
    put({"rms_norm"}, [this] { push("rms_norm", {use(pick()), parameter("[8]")}, "", 4); });
    put({"mean", "rsqrt"}, [this] { rms_norm(); });
    put({"matmul", "softmax"}, [this] { attention(); });
    put({"conv2d", "batch_norm"}, [this] { convolution(); });
    return steps;
  }

  // The name as a string of its own in the file, or at the end of one; in Rust, where strings stand without an end,
  // anywhere.
  bool is_named(std::string_view name) const {
    return bytes_.find(is_rust_ ? std::string(name) : std::string(name) + '\0') != bytes_.npos;
  }

  std::string rows(int columns) const {
    return "[" + std::string(is_symbolic_ ? "\"n\"" : "5") + ", " + std::to_string(columns) + "]";
  }
  static void append(std::string &list, const std::string &item) { list += (list.empty() ? "" : ",\n  ") + item; }

  std::string typed(const std::string &name, const std::string &shape) const {
    return "{\"name\": \"" + name + "\", \"type\": {\"dtype\": \"f32\", \"shape\": " + shape + "}";
  }
  std::string input(const std::string &name, const std::string &shape) {
    append(inputs_, typed(name, shape) + "}");
    return name;
  }
  std::string parameter(const std::string &shape) {
    const std::string name = "w" + std::to_string(parameter_count_++);
    append(parameters_, typed(name, shape) + "}");
    return name;
  }
  std::string constant(double value) {
    const std::string name = "c" + std::to_string(constant_count_++);
    append(constants_, typed(name, "[]") + ", \"data\": [" + json_number(value) + "]}");
    return name;
  }
  std::string node(const std::string &op, const std::vector<std::string> &operands, const std::string &attrs) {
    const std::string name = dress_.prefix + std::to_string(node_count_++);
    std::string text = "{\"name\": \"" + name + "\", \"op\": \"" + op + "\", \"inputs\": [";
    for (size_t i = 0; i < operands.size(); ++i) text.append(i ? ", \"" : "\"").append(operands[i]).append("\"");
    text += "], \"attrs\": {" + attrs + "}";
    if (dress_.debug) text += ", \"annotations\": {\"debug.line\": {\"i64\": " + std::to_string(node_count_) + "}}";
    append(nodes_, text + "}");
    return name;
  }
  std::string push(const std::string &op, const std::vector<std::string> &operands, const std::string &attrs,
                   double magnitude) {
    rows_.push_back({node(op, operands, attrs), magnitude});
    return rows_.back().name;
  }
  void yield(const std::string &value) {
    append(outputs_, "{\"name\": \"out" + std::to_string(output_count_++) + "\", \"value\": \"" + value + "\"}");
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
        b = constant(random_.below(2) ? 0 : 1.5);
        break;
      case 1:
        b = parameter("[8]");
        break;
      case 2:
        b = node("mean", {a}, R"("dims": [-1], "keepdim": true)");
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
    return node(op, {turned ? b : a, turned ? a : b}, "");
  }
  void rms_norm() {
    const std::string x = use(pick()), squared = node("mul", {x, x}, ""),
                      mean = node("mean", {squared}, R"("dims": [-1], "keepdim": true)"),
                      inverse = node("rsqrt", {either("add", mean, constant(0.25))}, ""),
                      scaled = either("mul", x, inverse), y = either("mul", scaled, parameter("[8]"));
    rows_.push_back({y, 8});
    if (random_.below(4) == 0) rows_.push_back({scaled, 8});  // a value inside that is used outside, too
  }
  void attention() {
    const std::string of = std::to_string(blocks_++), shape = "[1, 2, 5, 8]";
    const std::string q = input("q" + of, shape), k = input("k" + of, shape), v = input("v" + of, shape),
                      turned = node("permute", {k}, "\"dims\": [0, 1, 3, 2]"), s = node("matmul", {q, turned}, ""),
                      scaled = either("mul", s, constant(0.5)), p = node("softmax", {scaled}, "\"dim\": -1");
    yield(node("matmul", {p, v}, ""));
  }
  void convolution() {
    const std::string x = input("image" + std::to_string(blocks_++), "[2, 3, 6, 6]"),
                      y = node("conv2d", {x, parameter("[4, 3, 3, 3]")}, ""), a = parameter("[4]"),
                      b = parameter("[4]"), mean = parameter("[4]"), variance = parameter("[4]");
    yield(node("batch_norm", {y, a, b, mean, variance}, ""));
  }

  Random random_;
  std::string_view bytes_;
  bool is_rust_;
  const Dress &dress_;
  bool is_symbolic_ = false;
  std::vector<Value> rows_;  // [n, 8]
  std::string inputs_, parameters_, constants_, nodes_, outputs_;
  size_t node_count_ = 0, parameter_count_ = 0, constant_count_ = 0, output_count_ = 0, blocks_ = 0;
};

}  // namespace

Item random_graph(uint64_t seed, std::string_view bytes, const Dress &dress) {
  return {"random " + std::to_string(seed), Maker(seed, bytes, dress).json()};
}

}  // namespace kiln::cli::plugin_check
