// Runs the samples of ops on backends: a graph of one op, random inputs by seed, and a comparison that says where two
// results part.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/ops/op.h"
#include "runtime/ops/reference.h"
#include "runtime/ops/sample_forms.h"

namespace kiln::testing {

// A graph and its arguments: inputs, then parameters, in order of the signature.
struct Case {
  std::string name;
  GraphPtr graph;
  std::vector<TensorData> arguments;
  std::vector<double> tolerances;        // of each output
  std::map<std::string, int64_t> sizes;  // of the symbols
};

struct Backend {
  std::string name;
  std::function<Result<std::vector<TensorData>>(const Case &)> run;
  std::map<std::string, std::string, std::less<>> excluded;  // op -> the reason why it is not run here
  // Called with all cases that are about to be run, so that they can be compiled together. May be empty.
  std::function<Status(std::span<const Case>)> prepare = {};
  // Whether the case is run by the very code by which another of the backends runs it. May be empty.
  std::function<bool(const Case &)> repeats = {};
};

// ---- inputs

inline TensorData random_tensor(DType dtype, const std::vector<int64_t> &shape, const Sample &sample,
                                std::mt19937_64 &random) {
  RefTensor t{dtype, shape, {}, {}};
  t.allocate();
  // Not std's distributions: their results differ between standard libraries.
  for (double &x : t.f) x = sample.low + (sample.high - sample.low) * (static_cast<double>(random() >> 11) * 0x1p-53);
  for (int64_t &x : t.i) {
    const auto range = static_cast<uint64_t>(sample.int_high - sample.int_low);
    x = dtype == DType::boolean ? static_cast<int64_t>(random() >> 63)
                                : sample.int_low + static_cast<int64_t>(random() % range);
  }
  return from_reference(t);
}

inline std::vector<int64_t> shape_at(const Shape &dims, const std::map<std::string, int64_t> &sizes) {
  std::vector<int64_t> shape;
  for (const Dim &dim : dims)
    shape.push_back(dim.evaluate([&](const std::string &symbol) { return sizes.at(symbol); }));
  return shape;
}

// |a - b| <= tolerance * (1 + |b|) is demanded of floats, equality of all else. That of small floats is about a unit in
// their last place: results that nearly agree may be rounded apart.
inline double tolerance_of(const Sample &sample, DType dtype) {
  if (sample.tolerance != 0) return sample.tolerance;
  switch (dtype) {
    case DType::f64:
      return 1e-13;
    case DType::f32:
      return 1e-5;
    case DType::f16:
      return 0x1p-10;
    case DType::bf16:
      return 0x1p-7;
    default:
      return 0;
  }
}

// A graph under construction whose outputs are samples of one op.
class CaseBuilder {
 public:
  CaseBuilder(const Op &op, std::string name) : op_(op) { made_.name = std::move(name); }

  // With inputs by `seed`.
  Status add(const Sample &sample, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<ValueId> operands;
    for (size_t k = 0; k < sample.inputs.size(); ++k) {
      const TensorType &type = sample.inputs[k];
      KILN_ASSIGN(ValueId operand, edit_.input(str_cat("x", made_.arguments.size()), type));
      operands.push_back(operand);
      for (const Dim &dim : type.dims)
        if (dim.kind() == Expr::Kind::symbol) bound_.insert(dim.symbol_name());
      auto given = sample.given.find(k);
      made_.arguments.push_back(given != sample.given.end()
                                    ? given->second
                                    : random_tensor(type.dtype, shape_at(type.dims, sample.sizes), sample, random));
    }
    made_.sizes.insert(sample.sizes.begin(), sample.sizes.end());
    KILN_TRY(bind_symbols(sample, random));
    KILN_ASSIGN(uint32_t node, edit_.add(&op_, operands, sample.attrs, str_cat("y", outputs_.size())));
    for (uint32_t k = 0; k < edit_.view().find(node)->results.size(); ++k) {
      outputs_.push_back({node, k});
      made_.tolerances.push_back(tolerance_of(sample, edit_.view().type({node, k}).dtype));
    }
    return {};
  }

  Result<Case> finish() {
    KILN_TRY(edit_.set_output_values(outputs_));
    KILN_ASSIGN(made_.graph, edit_.finish());
    return std::move(made_);
  }

 private:
  // Symbols that no input has as a bare dim get an input of their own, which nothing reads.
  Status bind_symbols(const Sample &sample, std::mt19937_64 &random) {
    for (const auto &[symbol, size] : sample.sizes) {
      if (!bound_.insert(symbol).second) continue;
      KILN_TRY(edit_.input(str_cat("binds_", symbol), make_type(DType::f32, {Expr::symbol(symbol)})).take_status());
      made_.arguments.push_back(random_tensor(DType::f32, {size}, sample, random));
    }
    return {};
  }

  const Op &op_;
  Case made_;
  Edit edit_;
  std::vector<ValueId> outputs_;
  std::set<std::string> bound_;
};

inline Result<Case> make_case(const Op &op, const Sample &sample, uint64_t seed) {
  CaseBuilder builder(op, str_cat(op.name, "/", sample.name));
  KILN_TRY(builder.add(sample, seed));
  return builder.finish();
}

inline Result<std::vector<Case>> cases_of(const Op &op) {
  SampleSink samples;
  op.samples(samples);
  std::vector<Case> cases;
  for (size_t k = 0; k < samples.size(); ++k) {
    Result<Case> made = make_case(op, samples[k], k + 1);
    if (!made.ok()) return made.take_status().with_prefix(str_cat(op.name, "/", samples[k].name, ": "));
    cases.push_back(std::move(*made));
  }
  return cases;
}

// ---- running and comparing

inline Result<std::vector<TensorData>> run_on_reference(const Graph &graph, const std::vector<TensorData> &arguments) {
  std::vector<RefTensor> tensors;
  for (const TensorData &argument : arguments) tensors.push_back(to_reference(argument));
  std::vector<const RefTensor *> pointers;
  for (const RefTensor &tensor : tensors) pointers.push_back(&tensor);
  KILN_ASSIGN(std::vector<RefTensor> outputs, run_reference(graph, pointers));
  std::vector<TensorData> results;
  for (const RefTensor &output : outputs) results.push_back(from_reference(output));
  return results;
}

// All samples of f32 whose sizes are known again, in every other type that the op takes: one graph a type.
inline Result<std::vector<Case>> cases_of_other_types(const Op &op) {
  SampleSink samples;
  op.samples(samples);
  std::vector<Case> cases;
  for (int number = 1; number <= dtype_count; ++number) {
    const auto type = static_cast<DType>(number);
    if (type == DType::f32) continue;
    CaseBuilder builder(op, str_cat(op.name, "/", name_of(type)));
    bool any = false;
    for (size_t k = 0; k < samples.size(); ++k) {
      const Sample &sample = samples[k];
      const bool taken = is_of(sample, DType::f32) && sample.sizes.empty();
      const std::optional<Sample> other = taken ? retyped(op, sample, type) : std::nullopt;
      if (!other) continue;
      KILN_ASSIGN(const Case alone, make_case(op, *other, k + 1));
      if (!run_on_reference(*alone.graph, alone.arguments).ok()) continue;  // divides by zero
      KILN_TRY(builder.add(*other, k + 1));
      any = true;
    }
    if (!any) continue;
    KILN_ASSIGN(cases.emplace_back(), builder.finish());
  }
  return cases;
}

// What conformance is shown by.
inline Result<std::vector<Case>> all_cases_of(const Op &op) {
  KILN_ASSIGN(std::vector<Case> cases, cases_of(op));
  KILN_ASSIGN(std::vector<Case> others, cases_of_other_types(op));
  std::ranges::move(others, std::back_inserter(cases));
  return cases;
}

inline std::string shape_text(const std::vector<int64_t> &shape) {
  return str_cat("[", join(shape, ", ", [](int64_t dim) { return str_cat(dim); }), "]");
}

inline bool close(double got, double expected, double tolerance) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return got == expected;
  return std::abs(got - expected) <= tolerance * (1 + std::abs(expected));
}

// Where two tensors part, or "": "at [1, 2]: 0.5, expected 0.25 (tolerance 1e-05); 3 of 12 elements differ".
inline std::string difference(const TensorData &got, const TensorData &expected, double tolerance) {
  if (got.dtype != expected.dtype || got.shape != expected.shape)
    return str_cat("is ", name_of(got.dtype), shape_text(got.shape), ", expected ", name_of(expected.dtype),
                   shape_text(expected.shape));
  const RefTensor a = to_reference(got), b = to_reference(expected);
  int64_t count = 0, first = -1;
  for (int64_t k = 0; k < a.size(); ++k) {
    const auto at = static_cast<size_t>(k);
    if (a.is_float() ? close(a.f[at], b.f[at], tolerance) : a.i[at] == b.i[at]) continue;
    if (count++ == 0) first = k;
  }
  if (count == 0) return "";
  std::vector<int64_t> index(a.shape.size());
  int64_t rest = first;
  for (size_t d = index.size(); d-- > 0; rest /= a.shape[d]) index[d] = rest % a.shape[d];
  auto element = [&](const RefTensor &t) {
    return t.is_float() ? str_cat(t.f[static_cast<size_t>(first)]) : str_cat(t.i[static_cast<size_t>(first)]);
  };
  return str_cat("at ", shape_text(index), ": ", element(a), ", expected ", element(b), " (tolerance ", tolerance,
                 "); ", count, " of ", a.size(), " elements differ");
}

// Runs the case on `backend` and on the reference kernels; what is wrong, or "".
inline std::string check(const Backend &backend, const Case &made) {
  Result<std::vector<TensorData>> expected = run_on_reference(*made.graph, made.arguments);
  if (!expected.ok()) return str_cat("reference: ", expected.status().message());
  Result<std::vector<TensorData>> got = backend.run(made);
  if (!got.ok()) return str_cat(backend.name, ": ", got.status().message());
  if (got->size() != expected->size())
    return str_cat(backend.name, ": ", got->size(), " outputs, expected ", expected->size());
  for (size_t k = 0; k < got->size(); ++k)
    if (std::string parts = difference((*got)[k], (*expected)[k], made.tolerances[k]); !parts.empty())
      return str_cat(backend.name, ": output ", k, " ", parts);
  return "";
}

}  // namespace kiln::testing
