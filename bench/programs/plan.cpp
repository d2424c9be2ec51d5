// plan GRAPH CACHE fill|time|heap: compiles a graph, kernels aside. Prints the seconds that it took (time), or by how
// many bytes the heap was larger at its peak than when it began (heap). Both find all kernels in CACHE, where `fill`
// put them.
//
// A late pass without identity makes every compile run the passes, fuse and plan, while kernels still come from CACHE.
#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>

#include "../host_pass.h"
#include "session.h"

namespace {

bool counting = false;  // it takes time
std::atomic<int64_t> heap_bytes, heap_peak;

void add(void *memory) {
  if (!counting) return;
  const int64_t now = heap_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  for (int64_t peak = heap_peak; now > peak && !heap_peak.compare_exchange_weak(peak, now);) {
  }
}

void remove(void *memory) {
  if (counting) heap_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
}

void *added(void *memory) {
  add(memory);
  return memory;
}

}  // namespace

// These take the place of the C library's for all that this process loads.
extern "C" {
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

void *malloc(size_t size) { return added(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return added(__libc_calloc(count, size)); }
void *realloc(void *memory, size_t size) {
  remove(memory);
  return added(__libc_realloc(memory, size));
}
void *memalign(size_t alignment, size_t size) { return added(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return added(__libc_memalign(alignment, size)); }
void free(void *memory) {
  remove(memory);
  __libc_free(memory);
}
}

namespace kiln::bench {
namespace {

using namespace cli;

kiln_error *change_nothing(void *, kiln_pass_call *call) { return kiln_pass_done(call, 0); }

void run(const std::string &graph_path, const char *cache, std::string_view what) {
  const bool heap = what == "heap";
  Options settings;
  settings.set("cache", cache);
  settings.set("threads", int64_t{1});
  const Context context = make<Context>(kiln_context_create, settings.get(), nullptr);
  const kiln_pass pass = host_pass("change_nothing", change_nothing, nullptr);
  check(kiln_pass_register(context.get(), &pass, nullptr, nullptr));
  const std::string json = read_file(graph_path);
  const Graph graph = make<Graph>(kiln_graph_parse, context.get(), json.data(), json.size());

  counting = heap;  // from here on: what was there before and is freed counts below 0, but none of it is
  kiln_executable *executable = nullptr;
  kiln_report *report = nullptr;
  check(kiln_compile(context.get(), graph.get(), nullptr, &executable, &report));
  counting = false;
  const Executable owned(executable);
  const Report compiled(report);
  if (what != "fill" && compiled.i64("kernels_compiled") > 0)
    throw std::runtime_error("kernels were compiled, not found");
  const double milliseconds = compiled.f64("total_ms") - compiled.f64("phases.kernels_ms");
  std::printf("%.9g\n", heap ? static_cast<double>(heap_peak) : milliseconds * 1e-3);
}

}  // namespace
}  // namespace kiln::bench

int main(int count, char **words) {
  if (count != 4) return 2;
  try {
    kiln::bench::run(words[1], words[2], words[3]);
    return 0;
  } catch (const std::exception &failure) {
    std::fprintf(stderr, "plan: %s\n", failure.what());
    return 1;
  }
}
