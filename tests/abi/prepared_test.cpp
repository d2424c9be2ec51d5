// What is prepared of parameters that lie in files: made once, mapped by whoever comes after. A context with the same
// folder is to another what a process is: they share nothing but records.
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include "host.h"
#include "tests/child.h"
#include "tests/paths.h"
#include "tests/temporary_folder.h"

namespace {

namespace fs = std::filesystem;

constexpr int64_t n = 64;

// y = x @ a @ b
constexpr std::string_view two_products = R"({"kiln": 1,
  "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": [8, 64]}}],
  "parameters": [{"name": "a", "type": {"dtype": "f32", "shape": [64, 64]}},
                 {"name": "b", "type": {"dtype": "f32", "shape": [64, 64]}}],
  "nodes": [{"name": "xa", "op": "matmul", "inputs": ["x", "a"]}, {"name": "y", "op": "matmul", "inputs": ["xa", "b"]}],
  "outputs": [{"name": "y", "value": "y"}]})";

// A multiple of the identity, so that a product tells it.
std::vector<float> identity(float factor) {
  std::vector<float> values(n * n);
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i * n + i)] = factor;
  return values;
}

void append(const std::string &path, const std::vector<float> &values) {
  std::ofstream(path, std::ios::binary | std::ios::app)
      .write(reinterpret_cast<const char *>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(float)));
}

// What a binding of both parameters came to.
struct Came {
  float factor = 0;  // of x, in y
  int64_t steps = 0;
  std::vector<std::string> lookups, reasons;  // by part
  bool operator==(const Came &) const = default;
};
std::ostream &operator<<(std::ostream &out, const Came &came) {
  out << came.factor << " times, " << came.steps << " steps";
  for (size_t i = 0; i < came.lookups.size(); ++i) out << ", " << came.lookups[i] << " (" << came.reasons[i] << ")";
  return out;
}

class Prepared : public testing::Test {
 protected:
  struct Process {
    std::vector<std::string> warnings = {};  // first: the context tells them until it ends
    host::Context context;
    host::Executable executable;
    host::Call call;
  };
  using Set = std::function<void(kiln_options *)>;

  Prepared() {
    append(weights_, identity(2));
    append(weights_, identity(3));
  }

  std::unique_ptr<Process> start(const Set &of_context = {}, const Set &of_compile = {}) const {
    auto process = std::make_unique<Process>();
    kiln_options *options = nullptr;
    EXPECT_OK(kiln_options_create(&options));
    const host::Options owned(options);
    EXPECT_OK(kiln_options_set_text(options, "cache", 5, cache_.data(), cache_.size()));
    EXPECT_OK(kiln_options_set_i64(options, "threads", 7, 1));
    if (of_context) of_context(options);
    const kiln_event_sink sink = host::warnings_into(process->warnings);
    kiln_context *context = nullptr;
    EXPECT_OK(kiln_context_create(options, &sink, &context));
    process->context.reset(context);
    const host::Graph graph = host::parse(context, two_products);
    process->executable = host::compile(context, graph.get(), [&](kiln_options *compile) {
                            if (of_compile) of_compile(compile);
                          }).executable;
    kiln_call *call = nullptr;
    EXPECT_OK(kiln_call_create(process->executable.get(), &call));
    process->call.reset(call);
    return process;
  }

  // A parameter, 1 or 2, to the matrix at this place in the file.
  kiln_error *bind(const Process &process, uint32_t slot, uint64_t place, std::string_view digest) const {
    DLTensor type{};
    int64_t shape[] = {n, n};
    type.ndim = 2;
    type.device = {kDLCPU, 0};
    type.dtype = {kDLFloat, 32, 1};
    type.shape = shape;
    kiln_source source{};
    source.struct_size = sizeof source;
    source.path = weights_.data();
    source.path_size = weights_.size();
    source.offset = place * n * n * sizeof(float);
    source.digest = digest.empty() ? nullptr : reinterpret_cast<const uint8_t *>(digest.data());
    source.digest_size = digest.size();
    return kiln_call_bind_source(process.call.get(), slot, &type, &source);
  }

  static Came run(const Process &process) {
    const host::Array x({8, n}, std::vector<float>(8 * n, 1)), y({8, n}, std::vector<float>(8 * n));
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    Came came;
    EXPECT_OK(kiln_call_run(process.call.get(), args, 2, nullptr));
    came.factor = y.values[0];
    EXPECT_EQ(y.values, std::vector<float>(8 * n, came.factor));
    kiln_report *made = nullptr;
    EXPECT_OK(kiln_call_report(process.call.get(), &made));
    const host::Report report(made);
    came.steps = host::i64(report, "prepare_steps");
    uint64_t count = 0;
    EXPECT_OK(kiln_report_count(made, "prepared", 8, &count));
    for (uint64_t i = 0; i < count; ++i) {
      came.lookups.push_back(host::text(report, "prepared." + std::to_string(i) + ".lookup"));
      came.reasons.push_back(host::text(report, "prepared." + std::to_string(i) + ".reason"));
    }
    std::ranges::sort(came.lookups);
    std::ranges::sort(came.reasons);
    return came;
  }

  // A process that binds both, by what names them.
  Came run_once(const Process &process, std::string_view digest) const {
    EXPECT_OK(bind(process, 1, 0, digest));
    EXPECT_OK(bind(process, 2, 1, digest));
    return run(process);
  }
  static void end(std::unique_ptr<Process> process) { EXPECT_OK(kiln_context_close(process->context.get())); }
  Came run_process(std::string_view digest, const Set &of_context = {}, const Set &of_compile = {}) const {
    std::unique_ptr<Process> process = start(of_context, of_compile);
    Came came = run_once(*process, digest);
    end(std::move(process));
    return came;
  }

  std::vector<fs::path> files(const std::string &part) const {
    std::vector<fs::path> found;
    if (fs::exists(cache_ + part))
      for (const fs::directory_entry &entry : fs::recursive_directory_iterator(cache_ + part))
        if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }
  std::vector<fs::path> records() const { return files("/prepared/p"); }
  static void change_byte(const fs::path &path, int64_t offset) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(offset < 0 ? static_cast<int64_t>(fs::file_size(path)) + offset : offset);
    const auto at = file.tellg();
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 0x40));
  }
  static int64_t counted(const Process &process, std::string_view name) {
    return host::i64(host::context_report(process.context.get()), "cache.prepared." + std::string(name));
  }
  // Until that many have been counted; the test's own time limit ends it otherwise.
  static void wait_for(const Process &process, std::string_view name, int64_t count) {
    while (counted(process, name) < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  const std::string digest_ = std::string(32, 'd');
  const kiln::test::TemporaryFolder folder_;
  const std::string cache_ = folder_.file("cache"), weights_ = folder_.file("weights.bin");
};

const Came made{6, 2, {"MISS", "MISS"}, {"no record", "no record"}};
const Came mapped{6, 0, {"HIT", "HIT"}, {"hit", "hit"}};

TEST_F(Prepared, TheFirstProcessMakesItAndTheNextOnesMapIt) {
  EXPECT_EQ(run_process(digest_), made);
  EXPECT_EQ(records().size(), 2);
  EXPECT_EQ(run_process(digest_), mapped);
  EXPECT_EQ(run_process(digest_), mapped);
}

TEST_F(Prepared, TheContextCountsWhatWasFoundSavedAndVerified) {
  std::unique_ptr<Process> first = start();
  (void)run_once(*first, digest_);
  EXPECT_EQ(counted(*first, "misses"), 2);
  wait_for(*first, "saves", 2);
  const std::unique_ptr<Process> second = start();
  (void)run_once(*second, digest_);
  EXPECT_EQ(counted(*second, "hits"), 2);
  wait_for(*second, "verified", 2);
  EXPECT_EQ(counted(*second, "rejects"), 0);
}

TEST_F(Prepared, OtherValuesAreAnotherRecord) {
  EXPECT_EQ(run_process(digest_), made);
  EXPECT_EQ(run_process(std::string(32, 'e')), made);
  EXPECT_EQ(records().size(), 4);
}

TEST_F(Prepared, AnotherTargetIsAnotherRecord) {
  const auto plain = [](kiln_options *options) { EXPECT_OK(kiln_options_set_text(options, "cpu", 3, "x86-64", 6)); };
  EXPECT_EQ(run_process(digest_), made);
  EXPECT_EQ(run_process(digest_, {}, plain), made);
  EXPECT_EQ(run_process(digest_), mapped);
  EXPECT_EQ(run_process(digest_, {}, plain), mapped);
}

// Nobody says what it holds but the file itself.
TEST_F(Prepared, AFileThatWasJustChangedIsNotRecorded) {
  const Came came = run_process("");
  EXPECT_EQ(came.factor, 6);
  EXPECT_EQ(came.steps, 2);
  EXPECT_EQ(came.lookups, (std::vector<std::string>{"BYPASS", "BYPASS"}));
  EXPECT_NE(came.reasons[0].find("was changed less than 3 s before it was mapped"), std::string::npos);
  EXPECT_TRUE(records().empty());
}

TEST_F(Prepared, AFileIsKnownByItsTimesSizeAndPlace) {
  const auto settle = [] { std::this_thread::sleep_for(std::chrono::milliseconds(3200)); };
  settle();
  EXPECT_EQ(run_process(""), made);
  EXPECT_EQ(run_process(""), mapped);
  const auto settled_again = [&](float factor) {
    const Came came = run_process("");
    EXPECT_EQ(came.factor, factor);
    EXPECT_EQ(came.lookups, (std::vector<std::string>{"BYPASS", "BYPASS"}));
    settle();
    Came anew = made;
    anew.factor = factor;
    EXPECT_EQ(run_process(""), anew);
    anew.steps = 0;
    EXPECT_EQ(run_process("").steps, 0);
  };
  // The same size, written in place.
  std::fstream(weights_, std::ios::binary | std::ios::in | std::ios::out)
      .write(reinterpret_cast<const char *>(identity(5).data()), n * n * sizeof(float));
  settled_again(15);
  // Its times alone.
  fs::last_write_time(weights_, fs::last_write_time(weights_) - std::chrono::hours(1));
  settled_again(15);
  // Longer.
  append(weights_, {1});
  settled_again(15);
  // Another in its place.
  append(weights_ + "2", identity(7));
  append(weights_ + "2", identity(3));
  fs::rename(weights_ + "2", weights_);
  settled_again(21);
}

// Which a host may do as soon as it is bound: nobody would find the record again.
TEST_F(Prepared, AFileThatIsUnlinkedBeforeSavingIsNoFailure) {
  std::this_thread::sleep_for(std::chrono::milliseconds(3200));
  std::unique_ptr<Process> process = start();
  EXPECT_OK(bind(*process, 1, 0, ""));
  EXPECT_OK(bind(*process, 2, 1, ""));
  fs::remove(weights_);
  EXPECT_EQ(run(*process), made);
  end(std::move(process));
  EXPECT_TRUE(records().empty());
}

TEST_F(Prepared, WhatATensorFileHoldsIsKnownByTheFile) {
  const std::string path = kiln::test::source_dir + "/tests/models/chars/weights.safetensors";
  const std::string model = kiln::test::source_dir + "/tests/models/chars/graph.json";
  std::ifstream file(model);
  const std::string json((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> logits[2];
  for (std::vector<float> &out : logits) {
    const host::Context context = host::make_context(cache_);
    const host::Graph graph = host::parse(context.get(), json);
    const host::Executable executable = host::compile(context.get(), graph.get()).executable;
    kiln_call *made_call = nullptr;
    ASSERT_OK(kiln_call_create(executable.get(), &made_call));
    const host::Call call(made_call);
    kiln_tensors *opened = nullptr;
    ASSERT_OK(kiln_tensors_open(path.data(), path.size(), &opened));
    const host::Tensors tensors(opened);
    for (uint64_t i = 0; i < kiln_tensors_count(opened); ++i) {
      kiln_text name{};
      const DLTensor *tensor = nullptr;
      uint32_t slot = 0;
      ASSERT_OK(kiln_tensors_at(opened, i, &name, &tensor));
      ASSERT_OK(kiln_call_slot(call.get(), name.data, name.size, &slot));
      ASSERT_OK(kiln_call_bind(call.get(), slot, tensor));
    }
    int64_t shape[] = {1, 16}, tokens[16] = {1, 2, 3};
    const DLTensor input{tokens, {kDLCPU, 0}, 2, {kDLInt, 64, 1}, shape, nullptr, 0};
    const DLTensor *args[] = {&input};
    ASSERT_OK(kiln_call_run(call.get(), args, 1, nullptr));
    uint32_t slot = 0;
    ASSERT_OK(kiln_call_slot(call.get(), "logits", 6, &slot));
    const DLTensor *result = nullptr;
    ASSERT_OK(kiln_call_output(call.get(), slot, &result));
    const auto *values = static_cast<const float *>(result->data);
    out.assign(values, values + 16);
    const bool second = &out == &logits[1];
    const host::Report report = host::context_report(context.get());
    EXPECT_EQ(host::i64(report, "cache.prepared.hits") > 0, second);
    EXPECT_EQ(host::i64(report, "cache.prepared.misses") > 0, !second);
    EXPECT_OK(kiln_context_close(context.get()));
  }
  EXPECT_EQ(logits[0], logits[1]);
}

TEST_F(Prepared, ATruncatedRecordIsFoundBeforeItIsMappedAndMadeAgain) {
  EXPECT_EQ(run_process(digest_), made);
  for (const fs::path &record : records()) fs::resize_file(record, fs::file_size(record) - 1);
  const Came came = run_process(digest_);
  EXPECT_EQ(came.factor, 6);
  EXPECT_EQ(came.steps, 2);
  EXPECT_EQ(came.lookups, (std::vector<std::string>{"REJECT", "REJECT"}));
  EXPECT_NE(came.reasons[0].find("the record is damaged"), std::string::npos) << came.reasons[0];
  EXPECT_EQ(files("/prepared/quarantine").size(), 2);
  EXPECT_EQ(run_process(digest_), mapped);
}

TEST_F(Prepared, ARecordWhoseHeaderWasChangedIsMadeAgain) {
  for (const int64_t offset : {0, 12, 30, 60, 70, 140}) {
    (void)run_process(digest_);
    for (const fs::path &record : records()) change_byte(record, offset);
    const Came came = run_process(digest_);
    EXPECT_EQ(came.factor, 6);
    EXPECT_EQ(came.lookups, (std::vector<std::string>{"REJECT", "REJECT"})) << offset;
  }
}

TEST_F(Prepared, AChangedBlockIsFoundInTheBackgroundAndMadeAgain) {
  EXPECT_EQ(run_process(digest_), made);
  for (const fs::path &record : records()) change_byte(record, -1000);
  const std::unique_ptr<Process> process = start();
  EXPECT_EQ(run_once(*process, digest_).lookups, mapped.lookups);
  wait_for(*process, "rejects", 2);
  EXPECT_EQ(files("/prepared/quarantine").size(), 2);
  process->warnings.clear();
  while (run(*process).steps != 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(run(*process), made);
  ASSERT_EQ(process->warnings.size(), 2);
  EXPECT_NE(process->warnings[0].find("prepared parameters: the record is damaged: block 0 has a wrong checksum"),
            std::string::npos)
      << process->warnings[0];
  wait_for(*process, "saves", 2);
  EXPECT_EQ(run_process(digest_), mapped);
}

TEST_F(Prepared, ClosingVerifiesWhatRunsMappedAndTellsOfDamage) {
  EXPECT_EQ(run_process(digest_), made);
  for (const fs::path &record : records()) change_byte(record, -1000);
  const std::unique_ptr<Process> process = start();
  EXPECT_EQ(run_once(*process, digest_).lookups, mapped.lookups);
  EXPECT_FAILS(kiln_context_close(process->context.get()), KILN_CORRUPT,
               "results may be wrong: prepared parameters: the record is damaged: block 0 has a wrong checksum");
  EXPECT_EQ(files("/prepared/quarantine").size(), 2);
  EXPECT_EQ(run_process(digest_), made);
}

TEST_F(Prepared, VerifyingTheCacheReadsItWithoutAHit) {
  EXPECT_EQ(run_process(digest_), made);
  change_byte(records()[0], -1000);
  const std::unique_ptr<Process> process = start();
  const auto ask = [&](std::string_view verb) {
    kiln_report *answer = nullptr;
    EXPECT_OK(kiln_cache_command(process->context.get(), verb.data(), verb.size(), nullptr, &answer));
    return host::Report(answer);
  };
  const host::Report found = ask("verify");
  uint64_t problems = 0;
  EXPECT_OK(kiln_report_count(found.get(), "problems", 8, &problems));
  EXPECT_EQ(problems, 1);
  EXPECT_EQ(host::text(found, "problems.0.what"), "the record is damaged: block 0 has a wrong checksum");
  EXPECT_EQ(host::i64(ask("stats"), "prepared.entries"), 2);
  (void)ask("clear");
  EXPECT_EQ(host::i64(ask("stats"), "prepared.entries"), 0);
  EXPECT_TRUE(records().empty());
}

TEST_F(Prepared, ItsLimitEvictsRecordsOfItsKindAlone) {
  const auto room_for_one = [](kiln_options *options) {
    EXPECT_OK(kiln_options_set_i64(options, "prepared_max_bytes", 18, 30'000));
  };
  EXPECT_EQ(run_process(digest_, room_for_one), made);
  EXPECT_EQ(records().size(), 1);
  const auto hit = [](kiln_options *options) { EXPECT_OK(kiln_options_set_bool(options, "require_hit", 11, 1)); };
  EXPECT_EQ(run_process(digest_, room_for_one, hit).steps, 1);  // the program is there
}

TEST_F(Prepared, TheLimitOfProgramsEvictsNoneOfIt) {
  EXPECT_EQ(run_process(digest_), made);
  kiln_options *options = nullptr;
  ASSERT_OK(kiln_options_create(&options));
  const host::Options owned(options);
  ASSERT_OK(kiln_options_set_text(options, "cache", 5, cache_.data(), cache_.size()));
  ASSERT_OK(kiln_options_set_i64(options, "cache_max_bytes", 15, 30'000));
  kiln_context *context = nullptr;
  ASSERT_OK(kiln_context_create(options, nullptr, &context));
  const host::Context other(context);
  constexpr int graphs = 40;
  for (int factor = 1; factor <= graphs; ++factor)
    (void)host::compile(context, host::parse(context, host::scaled(factor)).get());
  EXPECT_OK(kiln_context_close(context));
  EXPECT_LT(files("/a").size(), graphs);
  EXPECT_EQ(records().size(), 2);
  EXPECT_EQ(run_process(digest_), mapped);
}

TEST_F(Prepared, TwoProcessesMayMakeItAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    const bool right = run_process(digest_).factor == 6;
    _exit(right && !HasFailure() ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(records().size(), 2);
  EXPECT_EQ(run_process(digest_), mapped);
}

TEST_F(Prepared, ARecordThatIsUnlinkedStaysMapped) {
  EXPECT_EQ(run_process(digest_), made);
  const std::unique_ptr<Process> process = start();
  EXPECT_EQ(run_once(*process, digest_), mapped);
  fs::remove_all(cache_);
  EXPECT_EQ(run(*process), mapped);
  kiln_call *clone = nullptr;
  ASSERT_OK(kiln_call_clone(process->call.get(), &clone));
  process->call.reset(clone);
  EXPECT_EQ(run(*process), mapped);
}

TEST_F(Prepared, BindingOneParameterAgainPreparesThatOneAlone) {
  EXPECT_EQ(run_process(digest_), made);
  const std::unique_ptr<Process> process = start();
  EXPECT_EQ(run_once(*process, digest_), mapped);
  const std::string other(32, 'f');
  EXPECT_OK(bind(*process, 2, 0, other));
  EXPECT_EQ(run(*process), (Came{4, 1, {"HIT", "MISS"}, {"hit", "no record"}}));
  EXPECT_OK(bind(*process, 2, 1, digest_));
  EXPECT_EQ(run(*process), mapped);
  // A clone's binding is the clone's alone.
  kiln_call *made_clone = nullptr;
  ASSERT_OK(kiln_call_clone(process->call.get(), &made_clone));
  const auto clone = std::make_unique<Process>();
  clone->call.reset(made_clone);
  EXPECT_OK(bind(*clone, 1, 1, other));
  EXPECT_EQ(run(*clone), (Came{9, 1, {"HIT", "MISS"}, {"hit", "no record"}}));
  EXPECT_EQ(run(*process), mapped);
}

TEST_F(Prepared, WithoutACacheOrAFileTheReasonSaysSo) {
  const auto expect_bypass = [](const Came &came, std::string_view reason) {
    EXPECT_EQ(came.factor, 6);
    EXPECT_EQ(came.steps, 2);
    EXPECT_EQ(came.lookups, (std::vector<std::string>{"BYPASS", "BYPASS"}));
    EXPECT_EQ(came.reasons[0], reason);
  };
  expect_bypass(
      run_process(digest_, [](kiln_options *o) { EXPECT_OK(kiln_options_set_text(o, "cache", 5, "off", 3)); }),
      "the context's cache is off");
  expect_bypass(run_process(digest_, [](kiln_options *o) { EXPECT_OK(kiln_options_set_bool(o, "prepared", 8, 0)); }),
                "the context's option 'prepared' is false");
  EXPECT_TRUE(records().empty());
  const std::unique_ptr<Process> process = start();
  const host::Array a({n, n}, identity(2)), b({n, n}, identity(3));
  EXPECT_OK(kiln_call_bind(process->call.get(), 1, &a.tensor));
  EXPECT_OK(kiln_call_bind(process->call.get(), 2, &b.tensor));
  expect_bypass(run(*process), "parameter 'a': it is bound to memory, not to a file");
}

TEST_F(Prepared, AFolderThatNobodyMayWriteChangesNoResult) {
  EXPECT_EQ(run_process(digest_), made);
  std::ofstream(cache_ + "/prepared/ledger").close();
  fs::remove_all(cache_ + "/prepared/p");
  std::ofstream(cache_ + "/prepared/p").close();  // a file, where the records' folder is to be
  std::unique_ptr<Process> process = start();
  EXPECT_EQ(run_once(*process, digest_).factor, 6);
  EXPECT_FAILS(kiln_context_close(process->context.get()), KILN_IO, "2 saves to the cache failed");
}

TEST_F(Prepared, ADigestIsOf16To64Bytes) {
  const std::unique_ptr<Process> process = start();
  EXPECT_FAILS(bind(*process, 1, 0, std::string(15, 'd')), KILN_INVALID_ARGUMENT,
               "source->digest has 15 bytes, expected 16 to 64");
  EXPECT_FAILS(bind(*process, 1, 0, std::string(65, 'd')), KILN_INVALID_ARGUMENT, "source->digest has 65 bytes");
  EXPECT_OK(bind(*process, 1, 0, std::string(16, 'd')));
  EXPECT_OK(bind(*process, 1, 0, std::string(64, 'd')));
}

}  // namespace
