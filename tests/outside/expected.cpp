#include "tests/outside/expected.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "jit/base/hash.h"
#include "runtime/graph/json_scan.h"
#include "runtime/graph/json_values.h"
#include "runtime/ops/reference.h"
#include "tests/backend/harness.h"
#include "tests/paths.h"

namespace kiln::testing {
namespace {

using json::View;

Result<std::vector<int64_t>> read_integers(const View &object, std::string_view member) {
  std::vector<int64_t> values;
  KILN_ASSIGN(const View list, object.required(member));
  KILN_ASSIGN(const std::vector<View> items, list.as_list());
  for (const View &item : items) {
    KILN_ASSIGN(values.emplace_back(), item.as_integer());
  }
  return values;
}

Result<std::string> read_text(const View &object, std::string_view member) {
  KILN_ASSIGN(const View text, object.required(member));
  KILN_ASSIGN(const std::string_view value, text.as_text());
  return std::string(value);
}

Result<ExpectedOutput> read_output(const View &object) {
  ExpectedOutput output;
  KILN_TRY(object.allow_members({"shape", "step", "f64", "i64"}));
  KILN_ASSIGN(output.shape, read_integers(object, "shape"));
  KILN_ASSIGN(const View step, object.required("step"));
  KILN_ASSIGN(output.step, step.as_integer());
  if (output.step < 1) return step.expected("at least 1");
  if (object.member("i64")) {
    KILN_ASSIGN(output.i, read_integers(object, "i64"));
    return output;
  }
  KILN_ASSIGN(const View list, object.required("f64"));
  KILN_ASSIGN(const std::vector<View> items, list.as_list());
  for (const View &item : items) {
    KILN_ASSIGN(const uint64_t bits, json::read_element(item, DType::f64));
    output.f.push_back(std::bit_cast<double>(bits));
  }
  return output;
}

Result<ExpectedCase> read_case(const View &object) {
  ExpectedCase made;
  KILN_TRY(object.allow_members({"types", "inputs", "outputs", "none"}));
  KILN_ASSIGN(const View types, object.required("types"));
  KILN_ASSIGN(const std::vector<View> names, types.as_list());
  for (const View &name : names) {
    KILN_ASSIGN(const std::string_view type, name.as_text());
    made.types.emplace_back(type);
  }
  KILN_ASSIGN(made.inputs, read_text(object, "inputs"));
  if (object.member("none")) {
    KILN_ASSIGN(made.none, read_text(object, "none"));
  }
  KILN_ASSIGN(const View outputs, object.required("outputs"));
  KILN_ASSIGN(const std::vector<View> items, outputs.as_list());
  for (const View &item : items) {
    KILN_ASSIGN(made.outputs.emplace_back(), read_output(item));
  }
  return made;
}

Result<Expected> parse(std::string_view text, const Op &op) {
  Expected expected;
  KILN_TRY(scan_json(text));
  KILN_ASSIGN(const json::Document document, json::parse(text));
  const View root(document.get(), "");
  KILN_TRY(root.allow_members({"op", "peer", "samples"}));
  KILN_ASSIGN(const std::string name, read_text(root, "op"));
  if (name != op.name) return invalid("is of '", name, "'");
  KILN_ASSIGN(expected.peer, read_text(root, "peer"));
  KILN_ASSIGN(const View samples, root.required("samples"));
  KILN_ASSIGN(const std::vector<View> members, samples.as_object());
  for (const View &sample : members) {
    std::vector<ExpectedCase> &cases = expected.samples[std::string(sample.key())];
    KILN_ASSIGN(const std::vector<View> items, sample.as_list());
    for (const View &item : items) {
      KILN_ASSIGN(cases.emplace_back(), read_case(item));
    }
  }
  return expected;
}

}  // namespace

const ExpectedCase *Expected::find(const std::string &sample, std::string_view type) const {
  const auto cases = samples.find(sample);
  if (cases == samples.end()) return nullptr;
  for (const ExpectedCase &one : cases->second)
    if (std::ranges::find(one.types, type) != one.types.end()) return &one;
  return nullptr;
}

Result<Expected> read_expected(const Op &op) {
  const std::string path = str_cat(test::source_dir, "/tests/outside/expected/", op.name, ".json");
  std::ifstream file(path, std::ios::binary);
  if (!file) return error(Code::io, path, " is not there; ./dev outside writes it");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  Result<Expected> read = parse(text, op);
  if (!read.ok()) return read.take_status().with_prefix(str_cat(path, ": "));
  return read;
}

std::string digest_of_inputs(std::span<const TensorData> inputs) {
  Bytes bytes;
  auto append = [&](const auto &value) {
    const auto *at = reinterpret_cast<const uint8_t *>(&value);
    bytes.insert(bytes.end(), at, at + sizeof value);
  };
  for (const TensorData &input : inputs) {
    const RefTensor t = to_reference(input);
    for (const double x : t.f) append(std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x);
    for (const int64_t x : t.i) append(x);
  }
  return digest_of(ByteSpan(bytes)).hex().substr(0, 16);
}

std::string difference(const TensorData &got, const ExpectedOutput &expected, double tolerance) {
  if (got.shape != expected.shape)
    return str_cat("is of shape ", shape_text(got.shape), ", expected ", shape_text(expected.shape));
  RefTensor whole = to_reference(got), part{got.dtype, {}, {}, {}}, values{got.dtype, {}, expected.f, expected.i};
  for (size_t k = 0; k < whole.f.size(); k += static_cast<size_t>(expected.step)) part.f.push_back(whole.f[k]);
  for (size_t k = 0; k < whole.i.size(); k += static_cast<size_t>(expected.step)) part.i.push_back(whole.i[k]);
  if (part.f.size() != values.f.size() || part.i.size() != values.i.size())
    return str_cat("has ", part.f.size(), " floats and ", part.i.size(), " integers, expected ", values.f.size(),
                   " and ", values.i.size());
  part.shape = values.shape = {static_cast<int64_t>(part.f.size() + part.i.size())};
  const std::string parts = difference(from_reference(part), from_reference(values), tolerance);
  return parts.empty() || expected.step == 1 ? parts : str_cat("of elements ", expected.step, " apart: ", parts);
}

}  // namespace kiln::testing
