// A program and its parameters as one file: what is in it, and what calls of what is opened from it do.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "host.h"
#include "tests/child.h"
#include "tests/temporary_folder.h"

namespace {

namespace fs = std::filesystem;

constexpr int64_t n = 64;

// y = x @ (a * s) @ b + c: of a and s one thing is prepared, of b another; c is read as it is.
constexpr std::string_view graph = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["rows", 64]}}],
  "parameters": [{"name": "a", "type": {"dtype": "f32", "shape": [64, 64]}},
                 {"name": "s", "type": {"dtype": "f32", "shape": [64, 1]}},
                 {"name": "b", "type": {"dtype": "f32", "shape": [64, 64]}},
                 {"name": "c", "type": {"dtype": "f32", "shape": [64]}}],
  "nodes": [{"name": "as", "op": "mul", "inputs": ["a", "s"]},
            {"name": "xa", "op": "matmul", "inputs": ["x", "as"]}, {"name": "xb", "op": "matmul", "inputs": ["xa", "b"]},
            {"name": "y", "op": "add", "inputs": ["xb", "c"]}],
  "outputs": [{"name": "y", "value": "y"}]})";
enum : uint32_t { slot_a = 1, slot_s, slot_b, slot_c };

std::vector<float> identity(float factor) {
  std::vector<float> values(n * n);
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i * n + i)] = factor;
  return values;
}

class CallSave : public testing::Test {
 protected:
  host::Executable compiled(const host::Context &context, std::string_view specialize = "") const {
    const host::Graph parsed = host::parse(context.get(), graph);
    return host::compile(context.get(), parsed.get(),
                         [&](kiln_options *options) {
                           if (specialize.empty()) return;
                           const kiln_text sizes{specialize.data(), specialize.size()};
                           const kiln_attr attr = host::attr("specialize", KILN_ATTR_TEXT | KILN_ATTR_LIST, 1, &sizes);
                           EXPECT_OK(kiln_options_set(options, &attr));
                         })
        .executable;
  }
  static host::Call call_of(const host::Executable &executable) {
    kiln_call *call = nullptr;
    EXPECT_OK(kiln_call_create(executable.get(), &call));
    return host::Call(call);
  }
  void bind_all(const host::Call &call) const {
    for (const auto &[slot, array] : {std::pair(slot_a, &a_), {slot_s, &s_}, {slot_b, &b_}, {slot_c, &c_}})
      EXPECT_OK(kiln_call_bind(call.get(), slot, &array->tensor));
  }
  static kiln_error *save(const host::Call &call, const std::string &path) {
    return kiln_call_save(call.get(), path.data(), path.size(), nullptr);
  }
  // Of y = x * 2 * 3 * 5 + 7.
  void save_whole(std::string_view specialize = "") const {
    const Loaded whole = built(specialize);
    bind_all(whole.call);
    EXPECT_OK(save(whole.call, path_));
  }
  static kiln_error *open(const host::Context &context, const std::string &path, host::Executable &out) {
    kiln_executable *made = nullptr;
    kiln_error *error = kiln_executable_open(context.get(), path.data(), path.size(), nullptr, &made);
    out.reset(made);
    return error;
  }
  host::Executable opened(const host::Context &context) const {
    host::Executable executable;
    EXPECT_OK(open(context, path_, executable));
    return executable;
  }
  struct Loaded {
    host::Context context;
    host::Executable executable;
    host::Call call;
  };
  static Loaded with_call(host::Context context, host::Executable executable) {
    host::Call call = call_of(executable);
    return {std::move(context), std::move(executable), std::move(call)};
  }
  // Of the file, and of the graph.
  Loaded loaded() const {
    host::Context context = host::make_context();
    host::Executable executable = opened(context);
    return with_call(std::move(context), std::move(executable));
  }
  Loaded built(std::string_view specialize = "") const {
    host::Context context = host::make_context();
    host::Executable executable = compiled(context, specialize);
    return with_call(std::move(context), std::move(executable));
  }
  // What 1 becomes.
  static host::Error run(const host::Call &call, float &out, int64_t rows = 8) {
    const auto count = static_cast<size_t>(rows * n);
    const host::Array x({rows, n}, std::vector<float>(count, 1)), y({rows, n}, std::vector<float>(count));
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    host::Error error = host::take(kiln_call_run(call.get(), args, 2, nullptr));
    out = y.values[0];
    if (error.code == KILN_OK) {
      EXPECT_EQ(y.values, std::vector<float>(count, out));
    }
    return error;
  }
  static float result(const host::Call &call, int64_t rows = 8) {
    float out = 0;
    EXPECT_EQ(run(call, out, rows), host::Error());
    return out;
  }
  static host::Report report(const host::Call &call) {
    kiln_report *made = nullptr;
    EXPECT_OK(kiln_call_report(call.get(), &made));
    return host::Report(made);
  }
  static int64_t steps(const host::Call &call) { return host::i64(report(call), "prepare_steps"); }
  static uint64_t count(const host::Report &of, std::string_view path) {
    uint64_t count = 0;
    EXPECT_OK(kiln_report_count(of.get(), path.data(), path.size(), &count));
    return count;
  }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The values, behind the program: two matrices and a vector.
  std::string data() const {
    const std::string whole = bytes();
    return whole.substr(whole.size() - (2 * n * n + n) * sizeof(float));
  }
  static void change_byte(const fs::path &path, int64_t at) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 0x40));
  }
  void write(const std::string &whole) const { std::ofstream(path_, std::ios::binary) << whole; }

  const kiln::test::TemporaryFolder folder_;
  const std::string path_ = folder_.file("model.kiln");
  const host::Array a_{{n, n}, identity(2)}, s_{{n, 1}, std::vector<float>(n, 3)}, b_{{n, n}, identity(5)},
      c_{{n}, std::vector<float>(n, 7)}, other_{{n, n}, identity(1)}, ones_{{n, 1}, std::vector<float>(n, 1)};
};

TEST_F(CallSave, WhatIsOpenedHasItsParametersAndPreparesNothing) {
  save_whole();
  const auto [context, executable, call] = loaded();
  EXPECT_EQ(result(call), 37);
  EXPECT_EQ(steps(call), 0);
  const host::Report told = report(call);
  EXPECT_EQ(host::text(told, "weights.path"), path_);
  EXPECT_EQ(count(told, "weights.parameters"), 4);
  EXPECT_EQ(count(told, "prepared"), 2);
  EXPECT_EQ(host::text(told, "prepared.0.lookup"), "HIT");
  EXPECT_EQ(host::text(told, "prepared.0.reason"), "in the artifact's file");
  // What kernels take in another layout is there in that alone.
  const host::Report described = host::describe(executable.get());
  for (const auto &[parameter, stored] : {std::pair(0, 0), {1, 0}, {2, 0}, {3, 256}})
    EXPECT_EQ(host::i64(described, "parameters." + std::to_string(parameter) + ".stored_bytes"), stored);
  EXPECT_EQ(count(described, "weights.prepared"), 2);
  EXPECT_EQ(host::i64(described, "weights.bytes"), host::i64(told, "weights.mapped_bytes"));
}

TEST_F(CallSave, AnotherProcessRunsIt) {
  save_whole();
  kiln::test::in_child([&] {
    const auto [context, executable, call] = loaded();
    EXPECT_EQ(result(call), 37);
    EXPECT_EQ(steps(call), 0);
  });
}

TEST_F(CallSave, WithACacheNoRecordIsMadeOrLookedFor) {
  save_whole();
  const host::Context context = host::make_context(folder_.file("cache"));
  const host::Executable executable = opened(context);
  EXPECT_EQ(result(call_of(executable)), 37);
  EXPECT_EQ(host::i64(host::context_report(context.get()), "cache.prepared.misses"), 0);
  EXPECT_OK(kiln_context_close(context.get()));
  EXPECT_FALSE(fs::exists(folder_.file("cache/prepared/p")));
}

TEST_F(CallSave, EqualCallsMakeEqualFilesBeforeARunAndBehindOne) {
  save_whole();
  const std::string before = bytes();
  const auto [context, executable, call] = built();
  bind_all(call);
  EXPECT_EQ(result(call), 37);
  EXPECT_OK(save(call, path_));
  EXPECT_TRUE(bytes() == before);
  // One that was opened has all that it takes to write it again, over itself and through a link, too.
  const host::Executable again = opened(context);
  const host::Call saved = call_of(again);
  const std::string link = folder_.file("link.kiln");
  fs::create_symlink(path_, link);
  for (const std::string &path : {path_, link}) {
    EXPECT_OK(save(saved, path));
    EXPECT_TRUE(bytes() == before);
  }
  EXPECT_EQ(result(saved), 37);
}

TEST_F(CallSave, ProgramsForSomeSizesFindTheirPartsToo) {
  save_whole("rows=1");
  const auto [context, executable, call] = loaded();
  EXPECT_EQ(result(call, 1), 37);
  EXPECT_EQ(host::text(report(call), "entry"), "rows=1");
  EXPECT_EQ(result(call, 8), 37);
  EXPECT_EQ(host::text(report(call), "entry"), "general");
  EXPECT_EQ(steps(call), 0);
}

TEST_F(CallSave, AParameterThatIsBoundAnewIsTheHosts) {
  save_whole();
  const auto [context, executable, call] = loaded();
  EXPECT_EQ(result(call), 37);
  EXPECT_OK(kiln_call_bind(call.get(), slot_b, &other_.tensor));
  EXPECT_EQ(result(call), 13);
  EXPECT_EQ(steps(call), 1);
  EXPECT_EQ(count(report(call), "weights.parameters"), 3);
  const host::Array zeros({n}, std::vector<float>(n));
  EXPECT_OK(kiln_call_bind(call.get(), slot_c, &zeros.tensor));
  EXPECT_EQ(result(call), 6);
  EXPECT_EQ(result(call_of(executable)), 37) << "a call of its own";
  // Bound to nothing it is the file's again.
  EXPECT_OK(kiln_call_bind(call.get(), slot_b, nullptr));
  EXPECT_OK(kiln_call_bind(call.get(), slot_c, nullptr));
  EXPECT_EQ(result(call), 37);
  EXPECT_EQ(steps(call), 0);
}

TEST_F(CallSave, WhatIsPreparedOfSeveralNeedsAllThatHaveNoValues) {
  save_whole();
  const auto [context, executable, call] = loaded();
  EXPECT_OK(kiln_call_bind(call.get(), slot_s, &ones_.tensor));
  float out = 0;
  const host::Error refused = run(call, out);
  EXPECT_EQ(refused.code, KILN_INVALID_ARGUMENT);
  EXPECT_EQ(refused.message,
            "prepare: parameter 'a' has to be bound, too: the artifact's file has only what was prepared of it");
  EXPECT_FAILS(save(call, folder_.file("other.kiln")), KILN_INVALID_ARGUMENT, "parameter 'a' has to be bound, too");
  EXPECT_OK(kiln_call_bind(call.get(), slot_a, &a_.tensor));
  EXPECT_EQ(result(call), 17);
}

TEST_F(CallSave, ParametersThatAreNotBoundAreLeftToWhoOpensIt) {
  {
    const auto [context, executable, call] = built();
    EXPECT_OK(kiln_call_bind(call.get(), slot_s, &s_.tensor));
    EXPECT_OK(kiln_call_bind(call.get(), slot_b, &b_.tensor));
    EXPECT_OK(save(call, path_));
  }
  const auto [context, executable, call] = loaded();
  float out = 0;
  EXPECT_EQ(run(call, out).message, "run: parameter 'a' is not bound");
  EXPECT_OK(kiln_call_bind(call.get(), slot_a, &a_.tensor));
  EXPECT_OK(kiln_call_bind(call.get(), slot_c, &c_.tensor));
  EXPECT_EQ(result(call), 37);
  EXPECT_EQ(host::i64(host::describe(executable.get()), "parameters.1.stored_bytes"), 256) << "it is needed with a";
  EXPECT_EQ(count(host::describe(executable.get()), "weights.prepared"), 1);
}

TEST_F(CallSave, WithoutParametersItIsAnArtifactAsOthers) {
  const host::Context context = host::make_context();
  const host::Executable executable = compiled(context);
  EXPECT_OK(save(call_of(executable), path_));
  EXPECT_TRUE(bytes() == host::bytes_of(executable));
}

TEST_F(CallSave, CallsContextsAndTheFilesNameGoInAnyOrder) {
  save_whole();
  const host::Context first = host::make_context();
  host::Context second = host::make_context();
  host::Executable executable = opened(first), other = opened(second);
  host::Call call = call_of(executable), clone, apart = call_of(other);
  executable.reset();
  fs::remove(path_);
  EXPECT_EQ(result(call), 37);
  kiln_call *made = nullptr;
  ASSERT_OK(kiln_call_clone(call.get(), &made));
  clone.reset(made);
  call.reset();
  EXPECT_EQ(result(clone), 37);
  EXPECT_EQ(steps(clone), 0);
  EXPECT_OK(kiln_call_bind(clone.get(), slot_b, &other_.tensor));
  EXPECT_EQ(result(clone), 13);
  EXPECT_EQ(result(apart), 37);
  EXPECT_OK(kiln_context_close(second.get()));
  EXPECT_EQ(result(apart), 37);
}

TEST_F(CallSave, ItIsOpenedByItsPathAndSavedByACallAlone) {
  save_whole();
  const host::Context context = host::make_context();
  host::Executable executable;
  const host::Error of_bytes = host::open_bytes(context.get(), bytes(), executable);
  EXPECT_EQ(of_bytes.code, KILN_INVALID_ARGUMENT);
  EXPECT_EQ(of_bytes.message, "it has parameters, which are mapped: open the file that it is in by its path");
  executable = opened(context);
  const std::string where = "its parameters are in '" + path_ + "'", out = folder_.file("out.kiln");
  EXPECT_FAILS(kiln_executable_save(executable.get(), out.data(), out.size(), nullptr), KILN_INVALID_ARGUMENT, where);
  kiln_blob *blob = nullptr;
  EXPECT_FAILS(kiln_executable_bytes(executable.get(), nullptr, &blob), KILN_INVALID_ARGUMENT, where);
  const kiln_executable *all[] = {executable.get()};
  kiln_executable *joined = nullptr;
  EXPECT_FAILS(kiln_executable_join(all, 1, &joined), KILN_INVALID_ARGUMENT, where);
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(CallSave, AParameterOfOtherSizesIsRefused) {
  const auto [context, executable, call] = built();
  const host::Array wide({n, 2 * n}, std::vector<float>(2 * n * n));
  EXPECT_OK(kiln_call_bind(call.get(), slot_b, &wide.tensor));
  EXPECT_FAILS(save(call, path_), KILN_TYPE_MISMATCH, "parameter 'b': dim 1 is 128, expected 64");
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(CallSave, AFullDiskLeavesNothing) {
  kiln::test::in_child([&] {
    const auto [context, executable, call] = built();
    bind_all(call);
    EXPECT_FAILS(save(call, "/dev/full"), KILN_IO, "cannot write '/dev/full': No space left on device");
    const rlimit few{20'000, 20'000};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &few), 0);
    EXPECT_FAILS(save(call, path_), KILN_IO, "cannot write '" + path_ + "': File too large");
    EXPECT_FALSE(fs::exists(path_));
  });
}

TEST_F(CallSave, AFileThatIsCutOrWhoseProgramOrTableChangedIsRefused) {
  save_whole();
  const std::string whole = bytes();
  const uint64_t data = host::i64(host::describe(opened(host::make_context()).get()), "weights.bytes");
  const host::Context context = host::make_context();
  host::Executable executable;
  for (const uint64_t size : {whole.size() - 1, whole.size() - data, whole.size() / 2, uint64_t{64}, uint64_t{0}}) {
    write(whole.substr(0, size));
    EXPECT_FAILS(open(context, path_, executable), KILN_CORRUPT, path_);
  }
  const uint64_t head = whole.size() - data;
  for (uint64_t at = 0; at < head; at += 97) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    write(changed);
    EXPECT_NE(host::take(open(context, path_, executable)).code, KILN_OK) << at;
  }
  write(whole);
  EXPECT_OK(open(context, path_, executable));
}

TEST_F(CallSave, ChangedWeightsAreFoundInTheBackgroundAndEndTheRunsThatFollow) {
  save_whole();
  std::string changed = bytes();
  changed[changed.size() - 1000] = static_cast<char>(changed[changed.size() - 1000] ^ 0x40);
  write(changed);
  std::vector<std::string> warnings;
  const kiln_event_sink sink = host::warnings_into(warnings);
  const host::Context context = host::make_context("off", &sink);
  const host::Executable executable = opened(context);
  const host::Call call = call_of(executable), beside = call_of(executable);
  float out = 0;
  host::Error error = run(call, out);
  EXPECT_EQ(error, host::Error());
  while (error.code == KILN_OK) {  // the test's own time limit ends it otherwise
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    error = run(call, out);
  }
  EXPECT_EQ(error.code, KILN_CORRUPT);
  EXPECT_EQ(error.message, "'" + path_ + "' is damaged, which has the parameters");
  ASSERT_EQ(warnings.size(), 1);
  EXPECT_NE(warnings[0].find("block 0 has a wrong checksum"), std::string::npos) << warnings[0];
  EXPECT_EQ(run(beside, out).code, KILN_CORRUPT);
  EXPECT_FAILS(save(beside, folder_.file("other.kiln")), KILN_CORRUPT, path_);
  // The host's own parameters are none of it.
  bind_all(beside);
  EXPECT_EQ(result(beside), 37);
}

TEST_F(CallSave, WhatIsDamagedIsNotSavedAsRight) {
  save_whole();
  const std::string right = data();
  // A record that the cache has of a parameter is prepared anew.
  const std::string weights = folder_.file("weights.bin"), cache = folder_.file("cache");
  std::ofstream(weights, std::ios::binary)
      .write(reinterpret_cast<const char *>(b_.values.data()), n * n * sizeof(float));
  const std::string digest(32, 'd');
  kiln_source source{};
  source.struct_size = sizeof source;
  source.path = weights.data();
  source.path_size = weights.size();
  source.digest = reinterpret_cast<const uint8_t *>(digest.data());
  source.digest_size = digest.size();
  DLTensor type = b_.tensor;
  type.data = nullptr;
  for (const bool is_first : {true, false}) {
    const host::Context context = host::make_context(cache);
    const host::Executable executable = compiled(context);
    const host::Call call = call_of(executable);
    bind_all(call);
    EXPECT_OK(kiln_call_bind_source(call.get(), slot_b, &type, &source));
    EXPECT_OK(save(call, path_));
    EXPECT_TRUE(data() == right);
    EXPECT_EQ(host::i64(host::context_report(context.get()), "cache.prepared.rejects"), is_first ? 0 : 1);
    EXPECT_EQ(result(call), 37);
    EXPECT_OK(kiln_context_close(context.get()));
    for (const fs::directory_entry &entry : fs::recursive_directory_iterator(cache + "/prepared/p"))
      if (entry.is_regular_file()) change_byte(entry.path(), 5000);
  }
  // An artifact's file is refused.
  change_byte(path_, static_cast<int64_t>(fs::file_size(path_)) - 1000);
  const host::Context context = host::make_context();
  const host::Executable executable = opened(context);
  EXPECT_FAILS(save(call_of(executable), folder_.file("other.kiln")), KILN_CORRUPT, path_);
}

TEST_F(CallSave, WhatIsRightIsToldAsVerified) {
  save_whole();
  const auto [context, executable, call] = loaded();
  const auto verified = [&] {
    uint32_t is = 0;
    EXPECT_OK(kiln_report_get_bool(report(call).get(), "weights.verified", 16, &is));
    return is != 0;
  };
  EXPECT_FALSE(verified());
  EXPECT_EQ(result(call), 37);
  while (!verified()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(CallSave, TheReferenceBackendReadsAllAsItIs) {
  const host::Context context = host::make_context();
  {
    const host::Graph parsed = host::parse(context.get(), graph);
    const host::Executable executable = host::compile(context.get(), parsed.get(), [](kiln_options *options) {
                                          EXPECT_OK(kiln_options_set_text(options, "backend", 7, "reference", 9));
                                        }).executable;
    const host::Call call = call_of(executable);
    bind_all(call);
    EXPECT_OK(save(call, path_));
  }
  const host::Executable executable = opened(context);
  EXPECT_EQ(result(call_of(executable)), 37);
  EXPECT_EQ(host::i64(host::describe(executable.get()), "parameters.0.stored_bytes"), n * n * 4);
}

}  // namespace
