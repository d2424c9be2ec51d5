#include "tests/backend/random/checking.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "runtime/graph/json.h"
#include "tests/backend/harness.h"

namespace kiln::testing {
namespace {

constexpr int signals[] = {SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGABRT};
// A handler has no other way to learn of these.
volatile uint64_t running = 0;
const char *running_test = "";
std::array<struct sigaction, NSIG> before;

uint64_t number_in(const char *variable) {
  const char *text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : 0;
}

bool are_same_bits(const TensorData &a, const TensorData &b) {
  if (a == b || !dtype_info(a.dtype).is_float) return a == b;
  const RefTensor x = to_reference(a), y = to_reference(b);
  return std::ranges::equal(x.f, y.f, [](double left, double right) {
    return std::isnan(left) ? std::isnan(right) : std::bit_cast<uint64_t>(left) == std::bit_cast<uint64_t>(right);
  });
}

}  // namespace

bool is_single_seed() { return std::getenv("KILN_TEST_RANDOM_SEED") != nullptr; }

Seeds seeds_of_shard(uint64_t shard, uint64_t count) {
  if (is_single_seed()) {
    const uint64_t only = number_in("KILN_TEST_RANDOM_SEED");
    return {only, only + (shard == 0)};
  }
  const uint64_t first = number_in("KILN_TEST_RANDOM_FIRST");
  return {first + count * shard / shards, first + count * (shard + 1) / shards};
}

std::string command(std::string_view test, uint64_t seed) {
  return str_cat("KILN_TEST_RANDOM_SEED=", seed, " build/lib/kiln_test_backend --gtest_filter='*", test, "*/0'");
}

CrashReport::CrashReport(const char *test) {
  running_test = test;
  struct sigaction tell = {};
  tell.sa_handler = [](int signal) {
    std::fprintf(stderr, "random graph crashed by signal %d; to repeat: %s\n", signal,
                 command(running_test, running).c_str());
    sigaction(signal, &before[static_cast<size_t>(signal)], nullptr);
  };
  for (int signal : signals) sigaction(signal, &tell, &before[static_cast<size_t>(signal)]);
}
CrashReport::~CrashReport() {
  for (int signal : signals) sigaction(signal, &before[static_cast<size_t>(signal)], nullptr);
}
void CrashReport::now_running(uint64_t number) { running = number; }

Result<Expectation> expectation_of(RandomCase made) {
  KILN_ASSIGN(const Oracle oracle, Oracle::of(made.graph));
  Expectation all{std::move(made), {}};
  for (const GraphCall &call : all.made.calls) {
    Result<Expected> result = oracle.expect(call.arguments);
    if (!result.ok()) return Expectation{std::move(all.made), {}};
    all.calls.push_back(std::move(result).value());
  }
  return all;
}

std::string other_bits(const std::vector<Results> &got, const std::vector<Results> &expected, std::string_view how) {
  for (size_t call = 0; call < got.size(); ++call)
    for (size_t r = 0; r < got[call].size(); ++r)
      if (!are_same_bits(got[call][r], expected[call][r]))
        return str_cat("call ", call, ": result ", r, " is not the same bits ", how, ": ",
                       difference(got[call][r], expected[call][r], 0));
  return "";
}

std::string sizes_text(const RandomCase &made) {
  std::string text;
  for (const GraphCall &call : made.calls) {
    str_append(text, text.empty() ? "" : ", then ");
    for (const auto &[symbol, size] : call.sizes) str_append(text, str_cat(symbol, "=", size, " "));
  }
  return text;
}

std::string report(std::string_view test, const RandomCase &made, const std::string &variant, const std::string &wrong,
                   const std::function<std::string(const RandomCase &)> &check) {
  const RandomCase small = shrink(made, [&](const RandomCase &smaller) { return !check(smaller).empty(); });
  return str_cat("seed ", made.seed, ", ", variant, ": ", wrong, "\nto repeat: ", command(test, made.seed),
                 "\nshrunk, at sizes ", sizes_text(small), ": ", check(small), "\n", write_json(*small.graph),
                 "\nwhole, at sizes ", sizes_text(made), ":\n", write_json(*made.graph));
}

}  // namespace kiln::testing
