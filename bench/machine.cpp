#include "machine.h"

#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

#include "figure.h"

namespace kiln::bench {
namespace {

constexpr int64_t fma_rounds = 4'000'000;
constexpr int chains = 12;  // independent ones: more than latency times ports of any core

// Each returns a value that depends on every multiply-add, so that none can be dropped.
__attribute__((target("avx512f"))) float fma_avx512() {
  __m512 sums[chains], factor = _mm512_set1_ps(0.999f);
  for (int c = 0; c < chains; ++c) sums[c] = _mm512_set1_ps(static_cast<float>(c));
  for (int64_t i = 0; i < fma_rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) sums[c] = _mm512_fmadd_ps(sums[c], factor, factor);
  }
  for (int c = 1; c < chains; ++c) sums[0] = _mm512_add_ps(sums[0], sums[c]);
  return _mm512_cvtss_f32(sums[0]);
}

__attribute__((target("avx2,fma"))) float fma_avx2() {
  __m256 sums[chains], factor = _mm256_set1_ps(0.999f);
  for (int c = 0; c < chains; ++c) sums[c] = _mm256_set1_ps(static_cast<float>(c));
  for (int64_t i = 0; i < fma_rounds; ++i) {
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

double measure_fma_peak(int threads) {
  const bool wide = __builtin_cpu_supports("avx512f");
  const double seconds = fastest(
      5, [&] { on_threads(threads, [&](int) { benchmark::DoNotOptimize(wide ? fma_avx512() : fma_avx2()); }); });
  return 2.0 * (wide ? 16 : 8) * chains * static_cast<double>(fma_rounds) * threads / seconds;
}

}  // namespace

int cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

double fma_peak(int threads) {
  static std::map<int, double> measured;
  const auto [found, fresh] = measured.try_emplace(threads, 0);
  if (fresh) found->second = measure_fma_peak(threads);
  return found->second;
}

double copy_bandwidth() {
  static const double measured = [] {
    constexpr size_t bytes = 256 << 20;
    std::vector<char> from(bytes, 1), to(bytes, 2);
    const int threads = cores();
    const size_t part = bytes / static_cast<size_t>(threads);
    const double seconds = fastest(10, [&] {
      on_threads(threads, [&](int t) {
        const size_t begin = part * static_cast<size_t>(t);
        std::copy_n(from.begin() + static_cast<ptrdiff_t>(begin), part, to.begin() + static_cast<ptrdiff_t>(begin));
      });
    });
    return 2.0 * static_cast<double>(bytes) / seconds;
  }();
  return measured;
}

}  // namespace kiln::bench
