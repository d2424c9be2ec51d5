// Artifacts for tests, small enough to write by hand: their kernels are a few instructions of x86-64.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/cache/artifact_bytes.h"

namespace kiln::example {

inline Image image(Bytes code, std::string_view name) {
  Image image;
  image.code = std::make_shared<const Bytes>(std::move(code));
  image.kernel_key = digest_of(name);
  return image;
}

// out[i] = a[i] + b[i], f32, for i in [begin, end). Buffers: a, b, out.
inline Image add_kernel() {
  return image(
      {0x48, 0x8b, 0x07, 0x48, 0x8b, 0x08, 0x48, 0x8b, 0x50, 0x08, 0x48, 0x8b, 0x70, 0x10, 0x4c, 0x8b, 0x47, 0x10,
       0x4c, 0x8b, 0x4f, 0x18, 0x4d, 0x39, 0xc8, 0x7d, 0x17, 0xf3, 0x42, 0x0f, 0x10, 0x04, 0x81, 0xf3, 0x42, 0x0f,
       0x58, 0x04, 0x82, 0xf3, 0x42, 0x0f, 0x11, 0x04, 0x86, 0x49, 0xff, 0xc0, 0xeb, 0xe4, 0x31, 0xc0, 0xc3},
      "add");
}

// Sets KILN_ERROR_INDEX_OUT_OF_RANGE and does nothing else.
inline Image failing_kernel() {
  return image({0x48, 0x8b, 0x47, 0x28, 0xf0, 0x83, 0x08, 0x02, 0x31, 0xc0, 0xc3}, "fail");
}

// out[i] = a[i] + sizes[0], f32, each by way of the first 4 bytes of scratch. Buffers: a, out.
inline Image add_size_kernel() {
  return image({0x48, 0x8b, 0x07, 0x48, 0x8b, 0x08, 0x48, 0x8b, 0x70, 0x08, 0x48, 0x8b, 0x57, 0x08, 0xf3, 0x48, 0x0f,
                0x2a, 0x0a, 0x48, 0x8b, 0x57, 0x20, 0x4c, 0x8b, 0x47, 0x10, 0x4c, 0x8b, 0x4f, 0x18, 0x4d, 0x39, 0xc8,
                0x7d, 0x1d, 0xf3, 0x42, 0x0f, 0x10, 0x04, 0x81, 0xf3, 0x0f, 0x58, 0xc1, 0xf3, 0x0f, 0x11, 0x02, 0xf3,
                0x0f, 0x10, 0x02, 0xf3, 0x42, 0x0f, 0x11, 0x04, 0x86, 0x49, 0xff, 0xc0, 0xeb, 0xde, 0x31, 0xc0, 0xc3},
               "add size");
}

inline constexpr std::string_view build = "0123456789abcdef0123456789abcdef";

inline Plan::Argument argument(std::string name, Shape dims, DType dtype = DType::f32) {
  Shape strides = row_major_strides(dims);
  return {std::move(name), dtype, std::move(dims), std::move(strides)};
}

inline Plan::Step launch(uint32_t kernel, std::vector<uint32_t> slots, std::vector<uint32_t> symbols = {}) {
  Plan::Step step;
  step.kernel = kernel;
  step.slots = std::move(slots);
  step.symbols = std::move(symbols);
  return step;
}

// Of a kernel that reads some f32 buffers of `elements` and writes another, one task an element.
inline Contract contract(size_t reads, const Expr &elements) {
  Contract c;
  std::set<std::string> names;
  elements.collect_symbols(names);
  for (const std::string &name : names) c.symbols.push_back({.name = name});
  c.buffers.assign(reads + 1, {DType::f32, false, 4 * elements});
  c.buffers.back().written = true;
  c.tasks = elements;
  return c;
}

inline Artifact artifact_of(Plan plan, std::vector<Image> images, std::vector<Contract> contracts) {
  Artifact a;
  a.graph_key = digest_of("example");
  a.components = {{"graph", digest_of("graph"), "x + y"}, {"target", digest_of("x86-64"), "x86-64"}};
  a.uses = {{"backend", "cpu", "built in"}, {"op", "absent", ""}, {"op", "add", "version 1"}};
  a.build_id = build;
  a.backend = "cpu";
  a.target = "x86-64";
  a.plan = std::move(plan);
  a.kernels.resize(images.size(), Bytes{1, 2, 3});
  a.images = std::move(images);
  a.contracts = std::move(contracts);
  a.report_json = "{}";
  return a;
}

// z = x + y, all f32[n]; one step. `extent` may be a number or the symbol n.
inline Artifact add(const Expr &extent) {
  using Kind = Plan::Slot::Kind;
  Plan p;
  p.inputs = {argument("x", {extent}), argument("y", {extent})};
  p.outputs = {argument("z", {extent})};
  if (!extent.is_integer()) p.symbols = {{.name = "n", .input = 0, .dim = 0}};
  p.slots = {{Kind::input, 0, extent * 4}, {Kind::input, 1, extent * 4}, {Kind::output, 0, extent * 4}};
  p.steps = {launch(0, {0, 1, 2})};
  if (!extent.is_integer()) p.steps[0].symbols = {0};
  return artifact_of(std::move(p), {add_kernel()}, {contract(2, extent)});
}

// z = ((x + y) + (w + c)) + 2n, all f32[2n] but w and c: f32[4], of which n = 2. (w + c) is prepared, x + y lies in the
// arena. With every kind of slot, a check, an input that is written (y = x + y), scratch and sizes.
inline Artifact everything() {
  using Kind = Plan::Slot::Kind;
  const Expr n = Expr::symbol("n"), m = Expr::symbol("m"), bytes = 8 * n;
  Plan p;
  p.inputs = {argument("x", {n, 2}), argument("y", {2 * n}), argument("size", {m})};
  p.parameters = {argument("w", {4})};
  p.outputs = {argument("z", {2 * n})};
  p.written_inputs = {1};
  p.symbols = {{.name = "n", .input = 0, .dim = 0, .min = 1, .max = 1000, .divisor = 2},
               {.name = "m", .input = 2, .dim = 0}};
  p.checks = {{m, 2 * n, "size and z"}};
  p.slots = {{Kind::input, 0, bytes}, {Kind::input, 1, bytes}, {Kind::parameter, 0, 16}, {Kind::constant, 0, 16},
             {Kind::prepared, 0, 16}, {Kind::arena, 0, bytes}, {Kind::arena, 1, bytes},  {Kind::output, 0, bytes}};
  p.arena = {{bytes}, {max(bytes, 64)}};
  p.prepared = {{16}};
  p.prepare = {launch(2, {2, 3, 4})};
  Plan::Step copy;
  copy.kind = Plan::Step::Kind::copy;
  copy.slots = {5, 1};
  copy.why = Plan::Step::Why::read;
  copy.node = {.path = {}, .name = "late"};
  p.steps = {launch(0, {0, 1, 5}, {0}), launch(2, {5, 4, 6}), launch(1, {6, 7}, {1}), copy};
  Contract add = contract(2, 2 * n), add_size = contract(1, m);
  add.symbols[0] = {.name = "n", .min = 1, .max = 1000, .divisor = 2};
  add.buffers[2].in_place = {0, 1};
  add_size.scratch_bytes = 4;
  Artifact a =
      artifact_of(std::move(p), {add_kernel(), add_size_kernel(), add_kernel()}, {add, add_size, contract(2, 4)});
  TensorData c;
  c.shape = {4};
  const float values[] = {10, 20, 30, 40};
  c.bytes.assign(reinterpret_cast<const uint8_t *>(values), reinterpret_cast<const uint8_t *>(values + 4));
  a.constants = {c};
  a.graphs = {R"({"kiln": 1})"};
  return a;
}

}  // namespace kiln::example
