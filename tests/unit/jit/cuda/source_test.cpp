// The emitted CUDA C++ against the interpreter of kernel IR: built as C++ under a shim of thread indices, and run.
#include "jit/cuda/source.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/unit/jit/kernel/interpreter.h"
#include "tests/unit/jit/kernel/program_builder.h"

namespace kiln::cuda {
namespace {

using kernel::testing::Array;
using kernel::testing::ProgramBuilder;
using kernel::testing::Sizes;

// One shared library of many kernels, built by the C++ compiler.
class ShimLibrary {
 public:
  explicit ShimLibrary(const std::string &source) {
    const std::filesystem::path dir = std::filesystem::path(KILN_BINARY_DIR) / "cuda_shim";
    std::filesystem::create_directories(dir);
    const std::string file = (dir / "kernels.cpp").string(), library = (dir / "kernels.so").string();
    std::ofstream(file) << "#include \"" KILN_SOURCE_DIR "/tests/unit/jit/cuda/shim.h\"\n" << prelude() << source;
    const std::string command = "c++ -std=c++20 -O1 -w -shared -fPIC -o " + library + " " + file;
    built = std::system(command.c_str()) == 0;
    if (built) handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  ~ShimLibrary() {
    if (handle_) dlclose(handle_);
  }
  void *entry(const std::string &name) const { return handle_ ? dlsym(handle_, name.c_str()) : nullptr; }
  bool built = false;

 private:
  void *handle_ = nullptr;
};

// The entry's parameter is passed by value and is too large for registers: a copy on the stack, which a struct of the
// largest size stands for.
struct Arguments {
  std::vector<uint8_t> bytes;
};

// Calls an entry through a generated wrapper that takes a pointer to its parameter.
std::string wrapper(const std::string &name) {
  return "extern \"C\" void call_" + name + "(const void *args) { " + name + "(*(const " + name + "_args *)args); }\n";
}

int64_t value(const Expr &e, const Sizes &sizes) {
  return e.evaluate([&](const std::string &s) { return sizes.at(s); });
}

void run_shim(const ShimLibrary &library, const std::string &name, const kernel::Launch &launch,
              std::vector<std::vector<float>> &tensors, const Sizes &sizes) {
  Sizes own;
  for (size_t i = 0; i < launch.symbols.size(); ++i) own[launch.kernel->symbols[i]] = sizes.at(launch.symbols[i]);
  ByteWriter args;
  for (uint32_t t : launch.buffers) args.put(reinterpret_cast<uint64_t>(tensors[t].data()));
  if (launch.buffers.empty()) args.put(uint64_t{0});
  for (const std::string &s : launch.kernel->symbols) args.put(own.at(s));
  if (launch.kernel->symbols.empty()) args.put(int64_t{0});
  Expr points = 1;
  for (const kernel::Axis &axis : launch.kernel->parallel) points *= axis.extent;
  args.put(value(points, own));
  std::vector<uint8_t> scratch(static_cast<size_t>(value(kernel::scratch_layout(*launch.kernel).size_bytes, own)) + 64);
  uint32_t error_word = 0;
  args.put(reinterpret_cast<uint64_t>(scratch.data()));
  args.put(reinterpret_cast<uint64_t>(&error_word));
  auto entry = reinterpret_cast<void (*)(const void *)>(library.entry("call_" + name));
  ASSERT_NE(entry, nullptr) << name;
  entry(args.bytes().data());
}

TEST(CudaSource, ComputesWhatTheKernelSaysForRandomPrograms) {
  const Sizes sizes = {{"n", 3}, {"t", 2}};
  constexpr unsigned programs = 120;
  std::vector<kernel::Fused> fused;
  std::string source;
  for (unsigned seed = 0; seed < programs; ++seed) {
    const ProgramBuilder b = kernel::testing::random_program(seed);
    Result<kernel::Fused> result = kernel::fuse(b.program, Target{}, {});
    ASSERT_TRUE(result.ok()) << result.status().message();
    for (size_t l = 0; l < result->launches.size(); ++l) {
      const std::string name = str_cat("p", seed, "_", l);
      Result<std::string> text = emit_source(*result->launches[l].kernel, name);
      ASSERT_TRUE(text.ok()) << text.status().message();
      source += *text + wrapper(name);
    }
    fused.push_back(std::move(*result));
  }
  const ShimLibrary library(source);
  ASSERT_TRUE(library.built);
  int compared = 0;
  for (unsigned seed = 0; seed < programs; ++seed) {
    const kernel::Fused &f = fused[seed];
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<Array> expected(f.tensors.size());
    std::vector<std::vector<float>> got(f.tensors.size());
    for (size_t t = 0; t < f.tensors.size(); ++t) {
      const size_t size = static_cast<size_t>(value(product_of(f.tensors[t].dims), sizes));
      expected[t].resize(size);
      for (size_t e = 0; e < size; ++e) {
        got[t].push_back(uniform(random));
        expected[t][e].f = got[t].back();
      }
    }
    kernel::testing::run(f, expected, sizes);
    for (size_t l = 0; l < f.launches.size(); ++l)
      run_shim(library, str_cat("p", seed, "_", l), f.launches[l], got, sizes);
    for (size_t t = 0; t < f.tensors.size(); ++t) {
      if (!f.tensors[t].is_output) continue;
      for (size_t e = 0; e < got[t].size(); ++e, ++compared) {
        ASSERT_NEAR(got[t][e], expected[t][e].f, 1e-4 * (1 + std::abs(expected[t][e].f)))
            << "program " << seed << " tensor " << t << " element " << e;
      }
    }
  }
  EXPECT_GT(compared, 1000);
}

}  // namespace
}  // namespace kiln::cuda
