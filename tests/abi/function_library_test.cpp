// Functions of libraries that the context's option load_symbols lists: of the tests' own, of a BLAS and of LAPACK.
#include <dlfcn.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "test_function.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace {

using host::by;
using host::chain;
using host::compile;
using host::TestFunction;

host::Context context_of(std::string_view library, std::string_view cache = "off") {
  kiln_options *options = nullptr;
  EXPECT_OK(kiln_options_create(&options));
  const host::Options owned(options);
  EXPECT_OK(kiln_options_set_text(options, "cache", 5, cache.data(), cache.size()));
  const kiln_text listed{library.data(), library.size()};
  const kiln_attr files = host::attr("load_symbols", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &listed);
  EXPECT_OK(kiln_options_set(options, &files));
  kiln_context *context = nullptr;
  EXPECT_OK(kiln_context_create(options, nullptr, &context));
  return host::Context(context);
}

struct LibraryFunction : TestFunction {
  std::string library, symbol;
  LibraryFunction(std::string_view called_so, std::string_view of_signature, std::string of_library,
                  std::string of_symbol)
      : TestFunction(called_so, of_signature, static_cast<void (*)()>(nullptr), true),
        library(std::move(of_library)),
        symbol(std::move(of_symbol)) {
    function.flags = 0;  // the library's digest is in the key
    function.library = library.data(), function.library_size = library.size();
    function.symbol = symbol.data(), function.symbol_size = symbol.size();
  }
};

constexpr std::string_view add_signature = "i32 (f32 data x, f32 data y, i64 size x 0)";

class FunctionLibrary : public testing::Test {
 protected:
  // The library that adds 1 or 2, at one path.
  void install(int adds) const {
    std::filesystem::copy_file(kiln::test::binary_dir + "/test_plugins/adds_" + std::to_string(adds) + ".so", path,
                               std::filesystem::copy_options::overwrite_existing);
  }
  struct Outcome {
    std::string lookup, reason;
    float adds = 0;
  };
  // Of a graph in which it runs one node, in a context of its own.
  Outcome look(uint32_t flags = 0) const {
    LibraryFunction add("add", add_signature, path, "add");
    add.function.flags = flags;
    const host::Context context = context_of(path, folder.file("cache"));
    add.register_in(context.get());
    const host::Compiled compiled = compile(context.get(), chain(by("add")));
    EXPECT_EQ(compiled.error, host::Error());
    if (!compiled.executable) return {};
    const host::Array x({1}, {-10}), y({1}, {0});
    EXPECT_OK(host::run(host::make_call(compiled.executable).get(), {&x, &y}));
    return {host::text(compiled.report, "lookup"), host::text(compiled.report, "reason"), y.values[0] - 10};
  }

  const kiln::test::TemporaryFolder folder;
  const std::string path = folder.file("adds.so");
};

TEST_F(FunctionLibrary, ItsBytesAreInTheKeyUnlessTheUuidSuffices) {
  install(1);
  EXPECT_EQ(look().lookup, "MISS");
  EXPECT_EQ(look().lookup, "HIT");
  install(2);
  const Outcome other = look();
  EXPECT_EQ(other.lookup, "MISS");
  EXPECT_NE(other.reason.find("function 'add'"), std::string::npos) << other.reason;
  EXPECT_EQ(other.adds, 2);
  install(1);
  EXPECT_EQ(look().adds, 1);
  EXPECT_EQ(look().lookup, "HIT");
  EXPECT_EQ(look(KILN_FUNCTION_UUID_SUFFICES).lookup, "MISS");
  install(2);
  EXPECT_EQ(look(KILN_FUNCTION_UUID_SUFFICES).lookup, "HIT");
}

TEST_F(FunctionLibrary, WhatWasDigestedIsWhatRunsWhateverBecomesOfTheFile) {
  install(1);
  LibraryFunction add("add", add_signature, path, "add");
  const host::Context context = context_of(path);
  add.register_in(context.get());
  install(2);
  const host::Compiled compiled = compile(context.get(), chain(by("add")));
  ASSERT_EQ(compiled.error, host::Error());
  std::filesystem::remove(path);
  const host::Array x({1}, {-10}), y({1}, {0});
  ASSERT_OK(host::run(host::make_call(compiled.executable).get(), {&x, &y}));
  EXPECT_EQ(y.values[0], 11);
}

TEST_F(FunctionLibrary, WhatIsNotThereIsToldByName) {
  install(1);
  const host::Context context = context_of(path);
  LibraryFunction missing("f", add_signature, path, "subtract");
  EXPECT_FAILS(kiln_function_register(context.get(), &missing.function, nullptr), KILN_UNKNOWN_NAME,
               "has no symbol 'subtract'");
  std::ofstream(path, std::ios::trunc) << "no library";
  LibraryFunction broken("f", add_signature, path, "add");
  EXPECT_FAILS(kiln_function_register(context.get(), &broken.function, nullptr), KILN_IO, "cannot open library");
  std::filesystem::remove(path);
  EXPECT_FAILS(kiln_function_register(context.get(), &broken.function, nullptr), KILN_IO, path);
  EXPECT_EQ(missing.destroyed + broken.destroyed, 0);
}

TEST_F(FunctionLibrary, OnlyFilesThatTheContextListsAreOpened) {
  install(1);
  const std::string link = folder.file("link.so");
  std::filesystem::create_symlink(path, link);
  LibraryFunction add("add", add_signature, link, "add");
  EXPECT_FAILS(kiln_function_register(host::make_context().get(), &add.function, nullptr), KILN_INVALID_ARGUMENT,
               "is not among the files that the context's option 'load_symbols' lists");
  EXPECT_FAILS(kiln_function_register(context_of(path).get(), &add.function, nullptr), KILN_INVALID_ARGUMENT,
               "is not among the files");
  EXPECT_OK(kiln_function_register(context_of(link).get(), &add.function, nullptr));
}

TEST(FunctionOfAPlugin, HasThePluginsFileInItsIdentityAndEndsBeforeThePlugin) {
  const std::string path = kiln::test::binary_dir + "/test_plugins/tripler.so";
  const kiln::test::TemporaryFolder folder;
  for (const char *lookup : {"MISS", "HIT"}) {
    host::Context context = host::make_context(folder.path());
    ASSERT_OK(kiln_plugin_load(context.get(), path.data(), path.size(), nullptr));
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    ASSERT_TRUE(library) << dlerror();
    const int &destroys = *static_cast<int *>(dlsym(library, "tripler_destroys"));
    int &teardowns = *static_cast<int *>(dlsym(library, "tripler_teardowns"));
    const int before = destroys;
    teardowns = 0;  // destroy counts only what comes before it
    const host::Report report = host::context_report(context.get());
    EXPECT_EQ(host::text(report, "functions.0.plugin"), "tripler");
    EXPECT_NE(host::text(report, "functions.0.identity").find(", file "), std::string::npos);
    host::Compiled compiled = compile(context.get(), chain(by("tripler.triple")));
    host::expect_chain(compiled, 3);
    EXPECT_EQ(host::text(compiled.report, "lookup"), lookup);
    host::Call call = host::make_call(compiled.executable);
    const host::Array x({4}, std::vector<float>(4)), y({4}, std::vector<float>(4));
    const host::Error error = host::take(host::run(call.get(), {&x, &y}));
    EXPECT_EQ(error.plugin, "tripler");
    EXPECT_EQ(error.message, "node 'b': [neg] function 'tripler.triple': it returned 8");
    call.reset();
    ASSERT_OK(kiln_context_close(context.get()));
    EXPECT_EQ(destroys, before) << "the executable uses it";
    compiled.executable.reset();
    EXPECT_EQ(destroys, before + 1);
    EXPECT_EQ(teardowns, 1);
  }
}

// y = relu(a b) on the host.
std::vector<float> product(const host::Array &a, const host::Array &b) {
  const int64_t rows = a.shape[0], inner = a.shape[1], columns = b.shape[1];
  std::vector<float> y;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += a.values[static_cast<size_t>(i * inner + k)] * b.values[static_cast<size_t>(k * columns + j)];
      y.push_back(std::max(sum, 0.0f));
    }
  return y;
}

TEST(FunctionOfBlas, MultipliesMatricesThatFallBack) {
  const std::string library = KILN_CBLAS;
  if (!std::filesystem::exists(library)) GTEST_SKIP() << "SKIP: there is no libblas.so.3 (Debian's libblas3)";
  LibraryFunction sgemm("sgemm",
                        "void (i32 101, i32 111, i32 111, i32 m, i32 n, i32 k, f32 1, f32 data a[m, k], i32 k, "
                        "f32 data b[k, n], i32 n, f32 0, f32 data y[m, n], i32 n)",
                        library, "cblas_sgemm");
  const host::Context context = context_of(library);
  sgemm.register_in(context.get());
  kiln_op matmul = 0;
  ASSERT_OK(kiln_op_find(context.get(), "matmul", 6, &matmul));
  ASSERT_OK(kiln_fallback_register(context.get(), matmul, "sgemm", 5, nullptr));
  const std::string graph = R"({"kiln": 1, "inputs": [
      {"name": "a", "type": {"dtype": "f32", "shape": ["m", "k"]}},
      {"name": "b", "type": {"dtype": "f32", "shape": ["k", 4]}}],
      "nodes": [{"name": "p", "op": "matmul", "inputs": ["a", "b"]},
                {"name": "r", "op": "relu", "inputs": ["p"], "annotations": {"kiln.region": {"text": "r"}}}],
      "outputs": [{"name": "y", "value": "r"}]})";
  const host::Compiled compiled = compile(context.get(), graph, "marked");
  ASSERT_EQ(compiled.error, host::Error());
  EXPECT_EQ(host::text(compiled.report, "made.partition.fallbacks.0.by"), "sgemm");
  const host::Call call = host::make_call(compiled.executable);
  for (const int64_t m : {2, 5}) {
    const int64_t k = m + 1;
    std::vector<float> left, right;
    for (int64_t i = 0; i < m * k; ++i) left.push_back(static_cast<float>(i % 7) - 3);
    for (int64_t i = 0; i < k * 4; ++i) right.push_back(static_cast<float>(i % 5) - 2);
    const host::Array a({m, k}, left), b({k, 4}, right), y({m, 4}, std::vector<float>(static_cast<size_t>(4 * m)));
    ASSERT_OK(host::run(call.get(), {&a, &b, &y}));
    EXPECT_EQ(y.values, product(a, b));
  }
}

// lu, x = solve(a, b), which nothing computes but the function.
struct SolveOp {
  kiln_op_def def{};
  static constexpr std::string_view schema = R"({"name": "host.solve", "args": [
      {"name": "a", "dtypes": ["f32"]}, {"name": "b", "dtypes": ["f32"]}], "results": ["lu", "x"]})";
  SolveOp() {
    def.struct_size = sizeof def;
    def.schema = schema.data(), def.schema_size = schema.size();
    def.infer = [](void *, kiln_op_call *call) -> kiln_error * {
      for (uint32_t k = 0; k < 2; ++k) {
        kiln_dim dims[2];
        uint64_t rank = 0;
        if (kiln_error *error = kiln_op_call_dims(call, k, dims, 2, &rank)) return error;
        kiln_type type{};
        type.struct_size = sizeof type;
        type.dtype = KILN_F32;
        type.rank = static_cast<uint32_t>(rank);
        type.dims = dims;
        if (kiln_error *error = kiln_op_call_result(call, k, &type)) return error;
      }
      return nullptr;
    };
    def.run = [](void *, void *, const DLTensor *const *, uint64_t, const kiln_run_options *) {
      return kiln_error_create(KILN_UNIMPLEMENTED, "a function is to run it", 23, nullptr);
    };
  }
};

TEST(FunctionOfLapack, SolvesInPlaceAndTellsOfASingularMatrix) {
  const std::string library = KILN_LAPACKE;
  if (!std::filesystem::exists(library)) GTEST_SKIP() << "SKIP: there is no liblapacke.so.3 (Debian's liblapacke)";
  LibraryFunction sgesv("sgesv",
                        "i32 (i32 101, i32 n, i32 m, f32 inout lu[n, n]=a, i32 n, scratch 4 * n, f32 inout x[n, m]=b, "
                        "i32 m)",
                        library, "LAPACKE_sgesv");
  const host::Context context = context_of(library);
  const SolveOp op;
  ASSERT_OK(kiln_op_register(context.get(), &op.def, nullptr));
  sgesv.register_in(context.get());
  // The residual a x - b, for which a and b live on.
  const std::string graph = R"({"kiln": 1, "inputs": [
      {"name": "a", "type": {"dtype": "f32", "shape": ["n", "n"]}},
      {"name": "b", "type": {"dtype": "f32", "shape": ["n", 2]}}],
      "nodes": [{"name": "a2", "op": "mul", "inputs": ["a", "a"]},
                {"name": "s", "op": "host.solve", "inputs": ["a2", "b"], "annotations": {)" +
                            by("sgesv") + R"(}},
                {"name": "p", "op": "matmul", "inputs": ["a2", "s:1"]},
                {"name": "r", "op": "sub", "inputs": ["p", "b"]}],
      "outputs": [{"name": "x", "value": "s:1"}, {"name": "residual", "value": "r"}]})";
  const host::Compiled compiled = compile(context.get(), graph);
  ASSERT_EQ(compiled.error, host::Error());
  const host::Call call = host::make_call(compiled.executable);
  const host::Array a({2, 2}, {1, 2, 3, 1}), b({2, 2}, {13, 4, 29, 9});
  const host::Array singular({2, 2}, {1, 1, 1, 1});
  for (int i = 0; i < 2; ++i) {
    const host::Array x({2, 2}, std::vector<float>(4)), residual({2, 2}, std::vector<float>(4, 9));
    ASSERT_OK(host::run(call.get(), {&a, &b, &x, &residual}));
    for (const float value : residual.values) EXPECT_NEAR(value, 0, 1e-4);
    // [[1, 4], [9, 1]] x = b
    EXPECT_NEAR(x.values[0] + 4 * x.values[2], 13, 1e-4);
    EXPECT_NEAR(9 * x.values[1] + x.values[3], 9, 1e-4);
    EXPECT_EQ(a.values, (std::vector<float>{1, 2, 3, 1}));
    EXPECT_EQ(b.values, (std::vector<float>{13, 4, 29, 9}));
    EXPECT_FAILS(host::run(call.get(), {&singular, &b, &x, &residual}), KILN_PLUGIN_FAILED,
                 "node 's': [host.solve] function 'sgesv': it returned 2");
  }
}

}  // namespace
