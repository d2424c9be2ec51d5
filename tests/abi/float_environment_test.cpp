// A host that computes in another floating-point environment than the default gets the same code and the same numbers,
// and keeps its environment.
#include <xmmintrin.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "host.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace {

constexpr uint32_t flush = 0x8040, upward = 0x4000, to_zero = 0x6000;

// MXCSR, and the control word of the x87 unit; fesetround sets both.
struct Words {
  uint32_t mxcsr;
  uint16_t x87;
  bool operator==(const Words &) const = default;
  static Words current() {
    Words now{_mm_getcsr(), 0};
    asm volatile("fnstcw %0" : "=m"(now.x87));
    return now;
  }
  Words controls() const { return {mxcsr & 0xffc0, x87}; }  // without the flags of exceptions that there were
  void set() const {
    _mm_setcsr(mxcsr);
    asm volatile("fldcw %0" : : "m"(x87));
  }
};
void PrintTo(const Words &words, std::ostream *out) {
  *out << std::hex << words.mxcsr << ", " << words.x87 << std::dec;
}

constexpr Words defaults{0x1f80, 0x037f};

// Other environments than the default: subnormal numbers are zero, sums are rounded up, a long double has 24 bits,
// exceptions trap.
constexpr Words others[] = {{defaults.mxcsr | flush, defaults.x87},
                            {defaults.mxcsr | upward, 0x0b7f},
                            {defaults.mxcsr | flush | upward, 0x0b7f},
                            {defaults.mxcsr, 0x007f},
                            {0, 0x0340}};

// The host's environment for its life.
class Environment {
 public:
  explicit Environment(const Words &words) : before_(Words::current()) { words.set(); }
  Environment(const Environment &) = delete;
  ~Environment() { before_.set(); }

 private:
  const Words before_;
};

// Subnormal inputs, constants and results, constants that JSON's reader, Kiln and LLVM round, sums, exp, and (over k) a
// contraction. s is a value that only constants make.
constexpr std::string_view graph_text = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 64]}}],
  "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [32, 64]}}],
  "constants": [{"name": "c", "type": {"dtype": "f32", "shape": []}, "data": [1.000000059604644775390626]}],
  "nodes": [
    {"name": "tiny", "op": "full", "inputs": [], "attrs": {"shape": [], "dtype": "f32", "value": 1.7e-39}},
    {"name": "third", "op": "full", "inputs": [], "attrs": {"shape": [], "dtype": "f32", "value": 0.3333333333333333}},
    {"name": "s", "op": "mul", "inputs": ["tiny", "third"]},
    {"name": "a", "op": "mul", "inputs": ["x", "c"]},
    {"name": "b", "op": "add", "inputs": ["a", "s"]},
    {"name": "p", "op": "linear", "inputs": ["b", "w"]},
    {"name": "e", "op": "exp", "inputs": ["b"]},
    {"name": "f", "op": "softmax", "inputs": ["e"], "attrs": {"dim": 1}}],
  "outputs": [{"name": "b", "value": "b"}, {"name": "p", "value": "p"}, {"name": "f", "value": "f"}]})";

constexpr int64_t row_count = 256;

// Made before a test changes the environment.
std::vector<float> numbers(size_t count, size_t every, float small, float large, size_t period) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = (i % every ? large : small) * static_cast<float>(i % period + 1);
  return values;
}
const std::vector<float> inputs = numbers(row_count * 64, 3, 3e-39f, 1.0f, 97);
const std::vector<float> weights = numbers(32 * 64, 5, 1e-30f, 0.7f, 31);

struct Computed {
  std::string artifact, values;  // their bytes
  bool operator==(const Computed &) const = default;
};

std::string artifact_of(kiln_executable *executable) {
  const kiln::test::TemporaryFolder folder;
  const std::string path = folder.file("artifact");
  EXPECT_OK(kiln_executable_save(executable, path.data(), path.size(), nullptr));
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return bytes;
}

// Compiles and runs `times`, on so many threads. All runs must agree.
Computed compute(int64_t threads, int times, std::string_view backend = "cpu") {
  const host::Context context = host::make_context("off", nullptr, threads);
  const host::Graph graph = host::parse(context.get(), graph_text);
  const host::Compiled compiled = host::compile(context.get(), graph.get(), [&](kiln_options *options) {
    EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend.data(), backend.size()));
  });
  EXPECT_EQ(compiled.error, host::Error());
  if (!compiled.executable) return {};
  Computed run{artifact_of(compiled.executable.get()), ""};
  kiln_call *made = nullptr;
  EXPECT_OK(kiln_call_create(compiled.executable.get(), &made));
  const host::Call call(made);
  const host::Array x({row_count, 64}, inputs), w({32, 64}, weights);
  EXPECT_OK(kiln_call_bind(call.get(), 1, &w.tensor));
  for (int i = 0; i < times; ++i) {
    const host::Array b({row_count, 64}, std::vector<float>(row_count * 64)),
        p({row_count, 32}, std::vector<float>(row_count * 32)), f({row_count, 64}, std::vector<float>(row_count * 64));
    const DLTensor *args[] = {&x.tensor, &b.tensor, &p.tensor, &f.tensor};
    EXPECT_OK(kiln_call_run(call.get(), args, 4, nullptr));
    std::string values;
    for (const host::Array *array : {&b, &p, &f})
      values.append(reinterpret_cast<const char *>(array->values.data()), array->values.size() * sizeof(float));
    if (i == 0) run.values = values;
    EXPECT_TRUE(values == run.values) << "run " << i << " differs";
  }
  return run;
}

TEST(FloatEnvironment, OfTheHostChangesNeitherCodeNorNumbers) {
  const Computed expected = compute(1, 1);
  ASSERT_FALSE(expected.values.empty());
  for (const Words &words : others) {
    for (const int64_t threads : {1, 2, 3}) {
      const Environment environment(words);
      const Computed run = compute(threads, 20);
      const Words after = Words::current();
      defaults.set();  // for the test's own words
      EXPECT_EQ(after, words) << "flags, too";
      EXPECT_TRUE(run.artifact == expected.artifact) << "environment " << testing::PrintToString(words);
      EXPECT_TRUE(run.values == expected.values)
          << "environment " << testing::PrintToString(words) << ", " << threads << " threads";
    }
  }
}

TEST(FloatEnvironment, OfTheHostDoesNotReachTheReference) {
  const Computed expected = compute(1, 1, "reference");
  for (const Words &words : others) {
    const Environment environment(words);
    const Computed run = compute(1, 1, "reference");
    defaults.set();
    EXPECT_TRUE(run == expected) << "environment " << testing::PrintToString(words);
  }
}

// What foreign code saw, and does: it turns rounding to zero on.
struct SeenEnvironment {
  std::vector<Words> words;
  void note() {
    words.push_back(Words::current().controls());
    Words{defaults.mxcsr | to_zero, 0x0f7f}.set();
  }
};

TEST(FloatEnvironment, OfTheHostIsThatOfItsCallbacks) {
  for (const Words &words : {defaults, others[2]}) {
    const Environment environment(words);
    SeenEnvironment events, passes;
    kiln_event_sink sink{};
    sink.struct_size = sizeof sink;
    sink.user = &events;
    sink.event = [](void *user, uint32_t, const char *, uint64_t) -> int32_t {
      static_cast<SeenEnvironment *>(user)->note();
      return 0;
    };
    sink.destroy = [](void *user) { static_cast<SeenEnvironment *>(user)->note(); };
    kiln_pass pass{};
    pass.struct_size = sizeof pass;
    pass.stage = KILN_STAGE_POST_GRAD;
    pass.name = "looks";
    pass.name_size = 5;
    pass.user = &passes;
    pass.run = [](void *user, kiln_pass_call *call) {
      static_cast<SeenEnvironment *>(user)->note();
      return kiln_pass_done(call, 0);  // enters Kiln again
    };
    {
      const host::Context context = host::make_context("off", &sink);
      ASSERT_OK(kiln_pass_register(context.get(), &pass, nullptr, nullptr));
      const host::Graph graph = host::parse(context.get(), host::scaled(3));
      const host::Compiled compiled = host::compile(context.get(), graph.get());
      EXPECT_EQ(compiled.error, host::Error());
      EXPECT_OK(kiln_context_close(context.get()));
      EXPECT_EQ(Words::current().controls(), words) << "what callbacks change is undone";
    }
    EXPECT_GT(events.words.size(), 3u);
    EXPECT_EQ(passes.words.size(), 1u);
    for (const Words &seen : events.words) EXPECT_EQ(seen, words);
    for (const Words &seen : passes.words) EXPECT_EQ(seen, words);
  }
}

TEST(FloatEnvironment, OfTheHostOutlivesAPluginThatSetsItsOwn) {
  const host::Context context = host::make_context();
  const std::string path = kiln::test::binary_dir + "/test_plugins/fast_math.so";
  const Words before = Words::current().controls();
  EXPECT_OK(kiln_plugin_load(context.get(), path.data(), path.size(), nullptr));
  EXPECT_EQ(Words::current().controls(), before);
}

}  // namespace
