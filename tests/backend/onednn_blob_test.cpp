// Bytes of a program of onednn_backend's that somebody changed: refused, or run within its arrays.
#include <gtest/gtest.h>

#include "runtime/graph/edit.h"
#include "tests/backend/onednn_backend.h"

namespace kiln::testing {
namespace {

// y = (conv(x, w), normed, pooled, reshaped) v' + c: constants, parameters, temporaries, posts.
Result<GraphPtr> region() {
  Edit edit;
  const auto f32 = [](std::vector<int64_t> dims) { return make_type(DType::f32, Shape(dims.begin(), dims.end())); };
  KILN_ASSIGN(const ValueId x, edit.input("x", f32({2, 2, 4, 4})));
  KILN_ASSIGN(const ValueId w, edit.parameter("w", f32({4, 2, 3, 3})));
  KILN_ASSIGN(const ValueId v, edit.parameter("v", f32({3, 16})));
  std::vector<ValueId> normed = {{}};
  for (const char *name : {"scale", "shift", "mean", "variance"}) {
    KILN_ASSIGN(normed.emplace_back(), edit.parameter(name, f32({4})));
  }
  const auto add = [&](const char *op, const std::vector<ValueId> &operands, AttrMap attrs) -> Result<ValueId> {
    KILN_ASSIGN(const uint32_t id, edit.add(builtin_ops().find(op), operands, std::move(attrs), ""));
    return ValueId{id, 0};
  };
  const auto pair = [](int64_t n) { return AttrValue(std::vector<int64_t>{n, n}); };
  KILN_ASSIGN(normed[0], add("conv2d", {x, w}, {{"padding", pair(1)}}));
  KILN_ASSIGN(ValueId y, add("batch_norm", normed, {}));
  KILN_ASSIGN(y, add("tanh", {y}, {}));
  KILN_ASSIGN(y, add("avg_pool2d", {y}, {{"kernel", pair(2)}}));
  KILN_ASSIGN(y, add("reshape", {y}, {{"shape", AttrValue(Shape{2, 16})}}));
  KILN_ASSIGN(const ValueId other, add("linear", {y, v}, {}));
  KILN_ASSIGN(y, add("mul", {other, other}, {}));
  KILN_TRY(edit.set_output_values(std::vector<ValueId>{y}));
  return edit.finish();
}

// Loads it and, where that goes, prepares and runs it: what comes of it does not matter, if nothing crashes.
Status load_and_run(const BackendFunctions &onednn, Bytes bytes, const std::vector<std::vector<float>> &data,
                    std::span<const RunArray> arrays) {
  KILN_ASSIGN(const auto program, onednn.load(std::make_shared<const Bytes>(std::move(bytes))));
  std::vector<std::vector<float>> own = data;
  std::vector<void *> at;
  for (std::vector<float> &array : own) at.push_back(array.data());
  const std::span<void *const> all = at;
  KILN_ASSIGN(const auto prepared, program->prepare(arrays.subspan(1, 6), all.subspan(1, 6)));
  KILN_ASSIGN(const auto run, program->open());
  run->resize(arrays);
  return run->run(all, prepared.get());
}

TEST(OnednnBlob, ThatWasChangedIsRefusedOrStaysWithinItsArrays) {
  if (const std::string reason = no_onednn(); !reason.empty()) GTEST_SKIP() << reason;
  const Result<GraphPtr> graph = region();
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const BackendPtr backend = table_with_onednn()->find("onednn");
  AttrMap options = backend->options;
  options["take"] = std::string("all");
  options["kiln.rounding"] = std::string("strict");  // as a compile says
  const Result<Bytes> made = backend->functions->compile(*graph, options);
  ASSERT_TRUE(made.ok()) << made.status().message();
  std::vector<RunArray> arrays;
  for (const std::vector<int64_t> &dims :
       std::vector<std::vector<int64_t>>{{2, 2, 4, 4}, {4, 2, 3, 3}, {3, 16}, {4}, {4}, {4}, {4}, {2, 3}})
    arrays.push_back({DType::f32, dims});
  std::vector<std::vector<float>> data;
  for (const RunArray &array : arrays) {
    size_t count = 1;
    for (const int64_t dim : array.dims) count *= static_cast<size_t>(dim);
    data.emplace_back(count, 0.5f);
  }
  const Status whole = load_and_run(*backend->functions, *made, data, arrays);
  ASSERT_TRUE(whole.ok()) << whole.message();
  for (size_t size = 0; size < made->size(); size += 3) {
    const Status status = load_and_run(*backend->functions,
                                       Bytes(made->begin(), made->begin() + static_cast<int64_t>(size)), data, arrays);
    EXPECT_EQ(status.code(), Code::corrupt) << size;
  }
  // Numbers are of 8 bytes: each becomes a neighbour, negative, and large.
  int refused = 0, changed = 0;
  for (size_t at = 0; at + 8 <= made->size(); at += 8)
    for (const auto &[byte, bits] : {std::pair<size_t, uint8_t>{0, 1}, {0, 0x7f}, {3, 0x40}, {7, 0x80}}) {
      Bytes other = *made;
      other[at + byte] ^= bits;
      ++changed;
      refused += load_and_run(*backend->functions, std::move(other), data, arrays).ok() ? 0 : 1;
    }
  std::printf("%d of %d changed blobs are refused\n", refused, changed);
  EXPECT_GT(refused, changed / 2);
}

}  // namespace
}  // namespace kiln::testing
