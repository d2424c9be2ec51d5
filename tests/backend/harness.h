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

// |a - b| <= tolerance * (1 + |b|) is demanded of floats, equality of all else.
inline double tolerance_of(const Sample &sample, DType dtype) {
  if (sample.tolerance != 0) return sample.tolerance;
  return dtype == DType::f32 ? 1e-5 : 0;
}

// The sample's op as a graph. Symbols that no input has as a bare dim get an input of their own, which nothing reads.
inline Result<Case> make_case(const Op &op, const Sample &sample, uint64_t seed) {
  std::mt19937_64 random(seed);
  Case made{str_cat(op.name, "/", sample.name), nullptr, {}, {}, sample.sizes};
  Edit edit;
  std::vector<ValueId> operands;
  std::set<std::string> bound;
  for (size_t k = 0; k < sample.inputs.size(); ++k) {
    const TensorType &type = sample.inputs[k];
    KILN_ASSIGN(ValueId operand, edit.input(str_cat("x", k), type));
    operands.push_back(operand);
    for (const Dim &dim : type.dims)
      if (dim.kind() == Expr::Kind::symbol) bound.insert(dim.symbol_name());
    auto given = sample.given.find(k);
    made.arguments.push_back(given != sample.given.end()
                                 ? given->second
                                 : random_tensor(type.dtype, shape_at(type.dims, sample.sizes), sample, random));
  }
  for (const auto &[symbol, size] : sample.sizes) {
    if (bound.contains(symbol)) continue;
    KILN_TRY(edit.input(str_cat("binds_", symbol), make_type(DType::f32, {Expr::symbol(symbol)})).take_status());
    made.arguments.push_back(random_tensor(DType::f32, {size}, sample, random));
  }
  KILN_ASSIGN(uint32_t node, edit.add(&op, operands, sample.attrs, "y"));
  std::vector<ValueId> results;
  for (uint32_t k = 0; k < edit.view().find(node)->results.size(); ++k) {
    results.push_back({node, k});
    made.tolerances.push_back(tolerance_of(sample, edit.view().type({node, k}).dtype));
  }
  KILN_TRY(edit.set_output_values(results));
  KILN_ASSIGN(made.graph, edit.finish());
  return made;
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

// The element types that code is compiled for.
inline constexpr DType compiled_dtypes[] = {DType::f32, DType::i64, DType::boolean};

// The sample with its floats as another element type; nothing where the op does not take those.
inline std::optional<Sample> retyped(const Op &op, Sample sample, DType type) {
  if (!sample.given.empty()) return std::nullopt;
  for (TensorType &input : sample.inputs)
    if (dtype_info(input.dtype).is_float) input.dtype = type;
  AttrMap attrs = sample.attrs;
  if (!check_operands(op, sample.inputs).ok() || !complete_attrs(op, attrs).ok()) return std::nullopt;
  if (!infer(op, sample.inputs, attrs).ok()) return std::nullopt;
  sample.name = str_cat(sample.name, " of ", name_of(type));
  sample.tolerance = 0;
  return sample;
}

// All samples of floats again, in every other of these types that the op takes.
inline Result<std::vector<Case>> cases_of_other_types(const Op &op) {
  SampleSink samples;
  op.samples(samples);
  std::vector<Case> cases;
  for (const Sample &sample : samples) {
    const bool floats = std::ranges::any_of(sample.inputs, [](const TensorType &t) { return t.dtype == DType::f32; });
    for (DType type : compiled_dtypes) {
      const std::optional<Sample> other = floats && type != DType::f32 ? retyped(op, sample, type) : std::nullopt;
      if (!other) continue;
      KILN_ASSIGN(Case made, make_case(op, *other, cases.size() + 1));
      if (run_on_reference(*made.graph, made.arguments).ok())
        cases.push_back(std::move(made));  // else: divides by zero
    }
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
