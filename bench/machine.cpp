#include "machine.h"

#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "figure.h"

namespace kiln::bench {
namespace {

int64_t fma_rounds() { return effort().size<int64_t>(2'000'000, 20'000); }
constexpr int chains = 12;  // independent ones: more than latency times ports of any core

// Each returns a value that depends on every multiply-add, so that none can be dropped.
__attribute__((target("avx512f"))) float fma_avx512() {
  const int64_t rounds = fma_rounds();
  __m512 sums[chains], factor = _mm512_set1_ps(0.999f);
  for (int c = 0; c < chains; ++c) sums[c] = _mm512_set1_ps(static_cast<float>(c));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) sums[c] = _mm512_fmadd_ps(sums[c], factor, factor);
  }
  for (int c = 1; c < chains; ++c) sums[0] = _mm512_add_ps(sums[0], sums[c]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) float fma_avx2() {
  const int64_t rounds = fma_rounds();
  __m256 sums[chains], factor = _mm256_set1_ps(0.999f);
  for (int c = 0; c < chains; ++c) sums[c] = _mm256_set1_ps(static_cast<float>(c));
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) sums[c] = _mm256_fmadd_ps(sums[c], factor, factor);
  }
  for (int c = 1; c < chains; ++c) sums[0] = _mm256_add_ps(sums[0], sums[c]);
  return _mm256_cvtss_f32(sums[0]);
}

// Runs `work(thread)` on `threads` threads at once; returns when all are done.
template <class Work>
void on_threads(int threads, const Work &work) {
  std::vector<std::jthread> running;
  for (int t = 1; t < threads; ++t) running.emplace_back([&work, t] { work(t); });
  work(0);
}

double seconds_of(const std::function<void()> &work) {
  const double begin = now();
  work();
  return now() - begin;
}

}  // namespace

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

Roof fma_roof(int threads) {
  const bool wide = __builtin_cpu_supports("avx512f");
  return {.amount = 2.0 * (wide ? 16 : 8) * chains * static_cast<double>(fma_rounds()) * threads, .run = [=] {
            on_threads(threads, [&](int) { benchmark::DoNotOptimize(wide ? fma_avx512() : fma_avx2()); });
          }};
}

Roof copy_roof() {
  const size_t bytes = effort().size<size_t>(256 << 20, 8 << 20);
  struct Arrays {
    std::vector<char> from, to;
  };
  const auto arrays = std::make_shared<Arrays>(Arrays{std::vector<char>(bytes, 1), std::vector<char>(bytes, 2)});
  return {.amount = 2.0 * static_cast<double>(bytes), .run = [arrays, bytes] {
            const size_t part = bytes / static_cast<size_t>(cores());
            on_threads(cores(), [&](int t) {
              const size_t begin = part * static_cast<size_t>(t);
              std::memcpy(arrays->to.data() + begin, arrays->from.data() + begin, part);
            });
          }};
}

Roof read_roof() {
  constexpr size_t places = 8;
  const size_t words = effort().size<size_t>(512 << 20, 8 << 20) / sizeof(uint64_t);
  const auto array = std::make_shared<std::vector<uint64_t>>(words, 1);
  return {.amount = static_cast<double>(words * sizeof(uint64_t)), .run = [array, words] {
            const size_t part = words / static_cast<size_t>(cores()), step = part / places;
            on_threads(cores(), [&](int t) {
              const uint64_t *from = array->data() + part * static_cast<size_t>(t);
              uint64_t sums[places] = {};
              for (size_t i = 0; i < step; ++i) {
#pragma GCC unroll 8
                for (size_t p = 0; p < places; ++p) sums[p] += from[p * step + i];
              }
              benchmark::DoNotOptimize(sums);
            });
          }};
}

double rate_of(const Roof &roof) { return roof.amount / fastest(10, roof.run); }

double part_of(const Roof &roof, int rounds, double amount, const std::function<void()> &work) {
  roof.run();
  work();
  double roof_seconds = 1e30, work_seconds = 1e30;
  for (int i = 0; i < effort().rounds(rounds); ++i) {
    roof_seconds = std::min(roof_seconds, seconds_of(roof.run));
    work_seconds = std::min(work_seconds, seconds_of(work));
  }
  return (amount / work_seconds) / (roof.amount / roof_seconds);
}

}  // namespace kiln::bench
