#include "op_samples.h"

#include <algorithm>
#include <cstdio>

#include "arrays.h"
#include "compare.h"
#include "json.h"

namespace kiln::cli {
namespace {

std::string json_of_element(const Report &op, const std::string &path, const std::string &kind) {
  if (kind == "bool") return op.boolean(path) ? "true" : "false";
  if (kind == "f64") return json_number(op.f64(path));
  const std::string shown = op.shown(path);  // a dim may be a number or a text
  const bool is_number = kind != "text" && kind != "dtype" && shown.find_first_not_of("-0123456789") == shown.npos;
  return is_number ? shown : json_text(shown);
}

template <class OfElement>
std::string json_list(size_t count, OfElement of_element) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text.append(i ? ", " : "").append(of_element(i));
  return "[" + text + "]";
}

// One sample: a graph of the op's node alone, and what it is run on.
class SampleRun {
 public:
  SampleRun(const Session &session, const Report &op, const std::string &sample)
      : session_(session), op_(op), sample_(sample), graph_(make_graph()) {
    for (const size_t operand : arrays_of()) draw(operand);
  }

  std::vector<Array> on(std::string_view backend) const {
    Options options;
    options.set("backend", backend);
    options.set("cache", false);
    options.set("disable_passes", passes_of_plugins());  // it is the op that is tested
    const Compiled compiled = compile(session_, graph_, options);
    const Call call = make<Call>(kiln_call_create, compiled.executable.get());
    for (uint32_t slot = 0; slot < inputs_.size(); ++slot)
      check(kiln_call_bind(call.get(), slot, inputs_[slot].tensor()));
    check(kiln_call_run(call.get(), nullptr, 0, nullptr));
    std::vector<Array> outputs;
    for (const std::string &result : results()) {
      const DLTensor *tensor = nullptr;
      check(kiln_call_output(call.get(), static_cast<uint32_t>(inputs_.size() + outputs.size()), &tensor));
      outputs.push_back(Array::copy_of(*tensor, result));
    }
    return outputs;
  }
  // All but the token of an op with an effect.
  std::vector<std::string> results() const {
    std::vector<std::string> names;
    for (size_t k = 0; k < op_.count("results"); ++k) names.push_back(op_.text(path_of("results", k)));
    for (size_t i = 0; i < op_.count("flags"); ++i)
      if (op_.text(path_of("flags", i)) == "effect") names.pop_back();
    return names;
  }

 private:
  std::vector<std::string> passes_of_plugins() const {
    const Report context = report_of(kiln_context_report, session_.context());
    std::vector<std::string> names;
    for (size_t i = 0; i < context.count("passes"); ++i) names.push_back(context.text(path_of("passes", i, "name")));
    return names;
  }
  size_t operands() const { return op_.count(sample_ + ".inputs"); }
  std::string type_of(size_t operand) const { return path_of(sample_ + ".inputs", operand, "type"); }
  // The operands that are not tokens, which a graph is not given.
  std::vector<size_t> arrays_of() const {
    std::vector<size_t> arrays;
    for (size_t k = 0; k < operands(); ++k)
      if (op_.text(type_of(k) + ".dtype") != "token") arrays.push_back(k);
    return arrays;
  }
  static std::string name_of(size_t operand) { return "x" + std::to_string(operand); }

  void draw(size_t operand) {
    std::vector<int64_t> shape;
    for (size_t d = 0; d < op_.count(type_of(operand) + ".shape"); ++d)
      shape.push_back(op_.i64(path_of(type_of(operand) + ".shape", d)));
    const Array::Range range{op_.f64(sample_ + ".range.0"), op_.f64(sample_ + ".range.1"),
                             op_.i64(sample_ + ".integer_range.0"), op_.i64(sample_ + ".integer_range.1")};
    inputs_.push_back(Array::within(range, op_.text(type_of(operand) + ".dtype"), std::move(shape),
                                    op_.text(path_of(sample_ + ".inputs", operand, "stream"))));
  }

  std::string attrs() const {
    std::string text;
    for (size_t i = 0; i < op_.count("attrs"); ++i) {
      const std::string name = op_.text(path_of("attrs", i, "name")), kind = op_.text(path_of("attrs", i, "kind"));
      const std::string path = sample_ + ".attrs." + name;
      if (!op_.has_member(sample_ + ".attrs", name)) continue;
      text += (text.empty() ? "" : ", ") + json_text(name) + ": ";
      text += !op_.boolean(path_of("attrs", i, "list"))
                  ? json_of_element(op_, path, kind)
                  : json_list(op_.count(path), [&](size_t k) { return json_of_element(op_, path_of(path, k), kind); });
    }
    return "{" + text + "}";
  }

  Graph make_graph() const {
    const std::vector<size_t> arrays = arrays_of();
    const std::string inputs = json_list(arrays.size(), [&](size_t i) {
      const std::string type = type_of(arrays[i]);
      const std::string shape =
          json_list(op_.count(type + ".shape"), [&](size_t d) { return op_.shown(path_of(type + ".shape", d)); });
      return "{\"name\": \"" + name_of(arrays[i]) + "\", \"type\": {\"dtype\": \"" + op_.text(type + ".dtype") +
             "\", \"shape\": " + shape + "}}";
    });
    std::string nodes;
    for (size_t k = 0; k < operands(); ++k)
      if (std::ranges::find(arrays, k) == arrays.end())
        nodes += "{\"name\": \"" + name_of(k) + "\", \"op\": \"token\"}, ";
    const std::string given = json_list(operands(), [&](size_t k) { return "\"" + name_of(k) + "\""; });
    nodes += "{\"name\": \"sample\", \"op\": " + json_text(op_.text("name")) + ", \"inputs\": " + given +
             ", \"attrs\": " + attrs() + "}";
    const std::vector<std::string> names = results();
    const std::string outputs = json_list(names.size(), [&](size_t k) {
      return "{\"name\": " + json_text(names[k]) + ", \"value\": \"sample:" + std::to_string(k) + "\"}";
    });
    const std::string json =
        "{\"kiln\": 1, \"inputs\": " + inputs + ", \"nodes\": [" + nodes + "], \"outputs\": " + outputs + "}";
    return make<Graph>(kiln_graph_parse, session_.context(), json.data(), json.size());
  }

  const Session &session_;
  const Report &op_;
  const std::string sample_;  // its path
  const Graph graph_;
  std::vector<Array> inputs_;
};

}  // namespace

bool test_samples(const Session &session, const Report &op) {
  for (size_t i = 0; i < op.count("samples"); ++i) {
    const std::string path = path_of("samples", i);
    const std::string what = op.text("name") + ", sample " + op.text(path + ".name") + ": ";
    const double tolerance = op.f64(path + ".tolerance");
    try {
      const SampleRun sample(session, op, path);
      const std::vector<Array> expected = sample.on("reference"), got = sample.on("cpu");
      double apart = 0;
      for (size_t k = 0; k < got.size(); ++k) {
        const Difference found = difference_of(*got[k].tensor(), *expected[k].tensor());
        apart = std::max(apart, found.relative);
        if (tolerance > 0 ? found.relative <= tolerance : !found.is_beyond) continue;
        char numbers[80];
        std::snprintf(numbers, sizeof numbers, "%.3g, relative %.3g", found.absolute, found.relative);
        print(printable(what + "'" + sample.results()[k] + "' differs from reference by " + numbers + " at " +
                        found.where) +
              "\n");
        return false;
      }
      char text[40];
      std::snprintf(text, sizeof text, "%.3g", apart);
      print(printable(what + "as on reference, at most " + text + " apart") + "\n");
    } catch (const Failure &failure) {
      throw Failure(what + failure.what(), failure.code);
    }
  }
  return true;
}

}  // namespace kiln::cli
