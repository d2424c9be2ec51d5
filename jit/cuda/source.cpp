#include "jit/cuda/source.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "jit/cuda/source_body.h"

namespace kiln::cuda {
namespace {

using namespace kernel;

constexpr int64_t thread_local_elements = 64;  // row_local buffers of a thread that runs alone

bool constant_and_small(const Kernel &kernel) {
  int64_t elements = 0;
  for (const Buffer &b : kernel.buffers) {
    if (b.space != Buffer::Space::row_local) continue;
    if (!b.size.is_integer()) return false;
    elements += b.size.integer();
  }
  return elements <= thread_local_elements;
}

// A combination that is exact in any order, of what the device has atomic words for.
bool is_atomic(const Store &store, DType type) {
  const bool exact = !dtype_info(type).is_float || store.mode == Store::Mode::min || store.mode == Store::Mode::max;
  return store.combines() && exact && size_of(type) >= 4;
}

std::string_view name_of(Store::Mode mode) {
  switch (mode) {
    case Store::Mode::add:
      return "kiln_add";
    case Store::Mode::mul:
      return "kiln_mul";
    case Store::Mode::min:
      return "kiln_least";
    case Store::Mode::max:
      return "kiln_greatest";
    case Store::Mode::bit_and:
      return "kiln_and";
    case Store::Mode::bit_or:
      return "kiln_or";
    case Store::Mode::plain:  // combines nothing
      break;
  }
  return "";
}

class SourceEmitter {
 public:
  SourceEmitter(const Kernel &kernel, std::string_view name)
      : kernel_(kernel), name_(name), block_(mapping_of(kernel) == Mapping::block) {
    for (uint32_t id = 0; id < rows(); ++id)
      if (!kernel.parallel[id].extent.is(1)) points_.push_back(id);
    for (const Stage &stage : kernel.stages) {
      for (const Store &store : stage.stores)
        points_in_order_ |= space_of(store) == Buffer::Space::out && needs_order(stage, store, points_);
    }
  }

  std::string run() {
    signature();
    buffers();
    if (block_) shared_memory();
    if (points_in_order_) line(block_ ? "if (blockIdx.x == 0)" : "if (blockIdx.x == 0 && threadIdx.x == 0)");
    line(points_in_order_ ? "for (kiln_i64 point = 0; point < args.points; ++point) {"
         : block_         ? "for (kiln_i64 point = blockIdx.x; point < args.points; point += gridDim.x) {"
                  : "for (kiln_i64 point = blockIdx.x * (kiln_i64)blockDim.x + threadIdx.x; point < args.points; point "
                    "+= (kiln_i64)gridDim.x * blockDim.x) {");
    ++indent_;
    delinearise("point", kernel_.parallel, 0);
    if (!block_) thread_locals();
    for (size_t number = 0; number < kernel_.stages.size(); ++number) {
      const Stage &stage = kernel_.stages[number];
      if (stage.in_blocks() && (number == 0 || !kernel_.stages[number - 1].in_blocks())) {
        line(str_cat(loop_text(rows(), stage.axes[0].extent), " {"));
        ++indent_;
      }
      line("{");
      ++indent_;
      if (stage.contract)
        contraction(stage);
      else if (stage.sort)
        sort(stage);
      else if (stage.scans())
        scan(stage);
      else if (stage.carriers.types.empty())
        map(stage);
      else if (block_)
        block_reduction(stage);
      else
        thread_reduction(stage);
      --indent_;
      line("}");
      if (block_) line("__syncthreads();");
      if (stage.in_blocks() && number + 1 == end_of_blocks(kernel_, number)) {
        --indent_;
        line("}");
      }
    }
    --indent_;
    line("}");
    --indent_;
    line("}");
    return std::move(out_);
  }

 private:
  uint32_t rows() const { return static_cast<uint32_t>(kernel_.parallel.size()); }
  // A stage's own axes: all but a block axis; and the first one's id.
  uint32_t first_axis(const Stage &stage) const { return rows() + (stage.in_blocks() ? 1 : 0); }
  static std::span<const Axis> own_axes(const Stage &stage) {
    return std::span(stage.axes).subspan(stage.in_blocks() ? 1 : 0);
  }
  static std::string loop_text(size_t id, const Expr &extent) {
    return str_cat("for (kiln_i64 i", id, " = 0; i", id, " < ", expr_text(extent), "; ++i", id, ")");
  }
  void line(const std::string &text) { out_ += std::string(static_cast<size_t>(indent_) * 2, ' ') + text + "\n"; }

  void signature() {
    size_t memory = 0;
    for (const Buffer &b : kernel_.buffers) memory += b.space != Buffer::Space::row_local;
    line(str_cat("struct ", name_, "_args { void *buffers[", std::max<size_t>(memory, 1), "]; kiln_i64 sizes[",
                 std::max<size_t>(kernel_.symbols.size(), 1),
                 "]; kiln_i64 points; unsigned char *scratch; unsigned *error_word; };"));
    line(str_cat("extern \"C\" __global__ void __launch_bounds__(", block_threads, ") ", name_, "(const ", name_,
                 "_args args) {"));
    ++indent_;
    for (size_t i = 0; i < kernel_.symbols.size(); ++i)
      line(str_cat("const kiln_i64 ", kernel_.symbols[i], " = args.sizes[", i, "];"));
  }

  // b0, b1, ...: pointers to memory; in block mode row_local buffers lie in the block's part of the scratch.
  void buffers() {
    const ScratchLayout layout = scratch_layout(kernel_);
    size_t local = 0;
    if (block_ && !layout.row_local.empty()) {
      line(str_cat("unsigned char *scratch = args.scratch + blockIdx.x * (", expr_text(layout.size_bytes), ");"));
    }
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Buffer &b = kernel_.buffers[i];
      const std::string type(memory_type(b.type));
      if (b.space != Buffer::Space::row_local) {
        line(str_cat(b.space == Buffer::Space::in ? "const " : "", type, " *b", i, " = (", type, " *)args.buffers[", i,
                     "];"));
      } else if (block_) {
        line(str_cat(type, " *b", i, " = (", type, " *)(scratch + ", expr_text(layout.row_local[local++]), ");"));
      }
    }
  }

  void thread_locals() {
    for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const Buffer &b = kernel_.buffers[i];
      if (b.space == Buffer::Space::row_local)
        line(str_cat(memory_type(b.type), " b", i, "[", std::max<int64_t>(b.size.integer(), 1), "];"));
    }
  }

  // Axes first_id, ... from the flattened `from`, the last fastest.
  void delinearise(const std::string &from, std::span<const Axis> axes, uint32_t first_id) {
    if (axes.empty()) return;
    line(str_cat("kiln_i64 rest", first_id, " = ", from, ";"));
    for (size_t i = axes.size(); i-- > 0;) {
      const size_t id = first_id + i;
      if (i == 0) {
        line(str_cat("const kiln_i64 i", id, " = rest", first_id, ";"));
      } else {
        const std::string extent = expr_text(axes[i].extent);
        line(str_cat("const kiln_i64 i", id, " = rest", first_id, " % (", extent, "); rest", first_id, " /= (", extent,
                     ");"));
      }
    }
  }
  std::string points_of(std::span<const Axis> axes) {
    Expr points = 1;
    for (const Axis &axis : axes) points *= axis.extent;
    return expr_text(points);
  }

  std::vector<std::string> body(const Body &b, std::string_view prefix, std::span<const std::string> carriers = {}) {
    BodyText text(b, prefix, carriers);
    for (const std::string &statement : text.statements()) line(statement);
    return text.yields();
  }

  Buffer::Space space_of(const Store &store) const { return kernel_.buffers[store.to.buffer].space; }
  DType type_of(const Store &store) const { return kernel_.buffers[store.to.buffer].type; }
  // Whether the order shows in which points of `axes` store: two of them may meet, and not as atoms.
  bool needs_order(const Stage &stage, const Store &store, const std::vector<uint32_t> &axes) const {
    const bool meets = (store.combines() || store.scatters()) && !separates(stage, store, axes);
    return meets && !is_atomic(store, type_of(store));
  }
  // Of a stage at one point.
  bool is_in_order(const Stage &stage) const {
    return std::ranges::any_of(stage.stores, [&](const Store &s) { return needs_order(stage, s, loops_of(stage)); });
  }
  std::vector<uint32_t> loops_of(const Stage &stage) const {
    std::vector<uint32_t> loops;
    for (uint32_t a = 0; a < stage.axes.size(); ++a)
      if (stage.axes[a].role == Axis::Role::loop && !stage.axes[a].extent.is(1)) loops.push_back(rows() + a);
    return loops;
  }

  // `results`: what yields or carriers are called.
  void stores(const Stage &stage, std::span<const std::string> results) {
    if (std::ranges::any_of(stage.stores, &Store::scatters)) {
      for (size_t r = 0; r < results.size(); ++r) line(str_cat("const kiln_i64 r", r, " = ", results[r], ";"));
    }
    for (const Store &s : stage.stores) {
      const std::string guard = s.to.valid < 0 ? "" : str_cat("if (", results[static_cast<size_t>(s.to.valid)], ") "),
                        place = str_cat("b", s.to.buffer, "[", expr_text(s.to.index[0], "r"), "]");
      const std::string &value = results[static_cast<size_t>(s.value)];
      if (!s.combines()) {
        line(str_cat(guard, place, " = ", value, ";"));
        continue;
      }
      const bool shared = space_of(s) == Buffer::Space::out || block_;  // by threads
      std::vector<uint32_t> axes = loops_of(stage);
      if (space_of(s) == Buffer::Space::out) axes.insert(axes.end(), points_.begin(), points_.end());
      const bool atomic = shared && is_atomic(s, type_of(s)) && !separates(stage, s, axes);
      line(str_cat(guard, atomic ? "kiln_combine_atomically<" : "kiln_combine<", name_of(s.mode), ">(&", place, ", (",
                   memory_type(type_of(s)), ")", value, ");"));
    }
  }

  // Walks `axes`, whose point is `name`: the threads of a block share them, a thread alone walks them all; so does the
  // first thread of a block, where the order shows.
  void walk(const std::string &name, std::span<const Axis> axes, bool in_order) {
    if (block_ && in_order) line("if (threadIdx.x == 0)");
    const bool shared = block_ && !in_order;
    line(str_cat("for (kiln_i64 ", name, " = ", shared ? "threadIdx.x" : "0", "; ", name, " < ", points_of(axes), "; ",
                 name, " += ", shared ? "blockDim.x" : "1", ") {"));
  }

  void map(const Stage &stage) {
    const std::span<const Axis> axes = own_axes(stage);
    if (axes.empty()) {
      if (block_) line("if (threadIdx.x == 0) {");
    } else {
      walk("at", axes, is_in_order(stage));
    }
    const bool braces = block_ || !axes.empty();
    indent_ += braces;
    delinearise("at", axes, first_axis(stage));
    stores(stage, body(stage.body, "v"));
    indent_ -= braces;
    if (braces) line("}");
  }

  struct Split {
    std::vector<Axis> loops, reduces;
  };
  static Split split(const Stage &stage) {
    Split s;
    for (const Axis &axis : own_axes(stage)) (axis.role == Axis::Role::loop ? s.loops : s.reduces).push_back(axis);
    return s;
  }

  // c0, c1, ...: the carriers, begun with their identities.
  std::vector<std::string> begin_carriers(const Carriers &carriers) {
    std::vector<std::string> names;
    for (size_t c = 0; c < carriers.types.size(); ++c) {
      names.push_back(str_cat("c", c));
      line(str_cat(value_type(carriers.types[c]), " c", c, " = ",
                   immediate_text(carriers.types[c], carriers.identities[c]), ";"));
    }
    return names;
  }
  void reset(const Carriers &carriers, std::span<const std::string> names) {
    for (size_t c = 0; c < names.size(); ++c)
      line(str_cat(names[c], " = ", immediate_text(carriers.types[c], carriers.identities[c]), ";"));
  }
  void combine(const Carriers &carriers, std::span<const std::string> left, std::span<const std::string> right,
               std::span<const std::string> to) {
    std::vector<std::string> both(left.begin(), left.end());
    both.insert(both.end(), right.begin(), right.end());
    line("{");
    ++indent_;
    const std::vector<std::string> results = body(carriers.combine, "m", both);
    for (size_t c = 0; c < results.size(); ++c)
      line(str_cat("const ", value_type(carriers.types[c]), " n", c, " = ", results[c], ";"));
    for (size_t c = 0; c < results.size(); ++c) line(str_cat(to[c], " = n", c, ";"));
    --indent_;
    line("}");
  }
  void accumulate(const Stage &stage, const Split &axes, std::span<const std::string> names, const std::string &first,
                  const std::string &end, const std::string &step) {
    line(str_cat("for (kiln_i64 at = ", first, "; at < ", end, "; at += ", step, ") {"));
    ++indent_;
    delinearise("at", axes.reduces, first_axis(stage) + static_cast<uint32_t>(axes.loops.size()));
    combine(stage.carriers, names, body(stage.body, "v"), names);
    --indent_;
    line("}");
  }

  void thread_reduction(const Stage &stage) {
    const Split axes = split(stage);
    line(str_cat("for (kiln_i64 loop = 0; loop < ", points_of(axes.loops), "; ++loop) {"));
    ++indent_;
    delinearise("loop", axes.loops, first_axis(stage));
    const std::vector<std::string> names = begin_carriers(stage.carriers);
    const bool ordered = is_ordered(kernel_, stage), in_chunks = begin_chunks(stage, axes, ordered);
    if (ordered) {
      thread_sum(stage, axes, names);
    } else {
      if (in_chunks) reset(stage.carriers, names);
      accumulate(stage, axes, names, "begin", "end", "1");
    }
    if (in_chunks) {
      add_chunk(stage, names);
      end_chunks();
    }
    stores(stage, names);
    --indent_;
    line("}");
  }

  // A loop over the chunks of a reduction, from `begin` to `end` each, if it may have several: then what lies in sums0,
  // sums1, ... waits to be added to what is on its right. Where one sum alone goes through a chunk, they are short.
  bool begin_chunks(const Stage &stage, const Split &axes, bool has_partials) {
    const std::string points = stage.carriers.until ? expr_text(*stage.carriers.until) : points_of(axes.reduces);
    int64_t chunk = has_partials ? device_chunk : sum_chunk;
    if (stage.carriers.in_pairs) chunk = block_ ? device_partials : 1;  // a block takes so many at once, in pairs
    const int64_t waiting = waiting_sums(stage, chunk);
    if (waiting == 0) {
      line(str_cat("const kiln_i64 begin = 0, end = ", points, ";"));
      return false;
    }
    for (size_t c = 0; c < stage.carriers.types.size(); ++c)
      line(str_cat(value_type(stage.carriers.types[c]), " sums", c, "[", waiting, "];"));
    line(str_cat("const kiln_i64 all = ", points, ";"));
    line("for (kiln_i64 chunk = 0;; ++chunk) {");
    ++indent_;
    line(str_cat("const kiln_i64 begin = chunk * ", chunk, ", end = kiln_min(begin + ", chunk, ", all);"));
    return true;
  }
  void end_chunks() {
    line("if (end == all) break;");
    --indent_;
    line("}");
  }
  // Sums wait where the number of the chunk has a bit: this one makes pairs with them up to its lowest 0, in the end
  // with all.
  void add_chunk(const Stage &stage, std::span<const std::string> names) {
    std::vector<std::string> waiting;
    for (size_t c = 0; c < names.size(); ++c) waiting.push_back(str_cat("sums", c, "[level]"));
    line("unsigned level = 0;");
    line("for (; end == all ? chunk >> level : chunk >> level & 1; ++level) {");
    ++indent_;
    line("if (chunk >> level & 1)");
    combine(stage.carriers, waiting, names, names);
    --indent_;
    line("}");
    line("if (end < all) {");
    ++indent_;
    for (size_t c = 0; c < names.size(); ++c) line(str_cat(waiting[c], " = ", names[c], ";"));
    --indent_;
    line("}");
  }

  // One thread adds up what the threads of a block would, in the same order: partial results one after the other, the
  // two of a pair next to each other, and pairs as soon as they are complete. Partials without a point are left out.
  void thread_sum(const Stage &stage, const Split &axes, std::span<const std::string> names) {
    const Carriers &carriers = stage.carriers;
    std::vector<std::string> waiting;
    for (size_t c = 0; c < names.size(); ++c) {
      line(str_cat(value_type(carriers.types[c]), " waiting", c, "[", std::bit_width(device_partials), "];"));
      waiting.push_back(str_cat("waiting", c, "[level]"));
    }
    line(str_cat("const unsigned partials = kiln_partials(end - begin, ", device_partials, ");"));
    line("for (unsigned number = 0; number < partials; ++number) {");
    ++indent_;
    reset(carriers, names);
    accumulate(stage, axes, names, "begin + kiln_reversed(number, partials)", "end", std::to_string(device_partials));
    line("unsigned level = 0;");
    line("for (; number >> level & 1; ++level) {");
    ++indent_;
    combine(carriers, waiting, names, names);
    --indent_;
    line("}");
    for (size_t c = 0; c < names.size(); ++c) line(str_cat(waiting[c], " = ", names[c], ";"));
    --indent_;
    line("}");
  }

  // The scan axis goes in order, at each point of the loop axes.
  void scan(const Stage &stage) {
    const Split axes = split(stage);
    const size_t id = first_axis(stage) + axes.loops.size();
    walk("loop", axes.loops, is_in_order(stage));
    ++indent_;
    delinearise("loop", axes.loops, first_axis(stage));
    const std::vector<std::string> names = begin_carriers(stage.carriers);
    const std::string extent = expr_text(stage.axes.back().extent);
    line(str_cat("for (kiln_i64 at = 0; at < ", extent, "; ++at) {"));
    ++indent_;
    line(str_cat("const kiln_i64 i", id, " = ", stage.carriers.reverse ? str_cat("(", extent, ") - 1 - at") : "at",
                 ";"));
    const std::vector<std::string> yields = body(stage.body, "v");
    std::vector<std::string> results = names;
    for (size_t c = 0; stage.carriers.exclusive && c < names.size(); ++c) {
      line(str_cat("const ", value_type(stage.carriers.types[c]), " before", c, " = ", names[c], ";"));
      results[c] = str_cat("before", c);
    }
    const auto further = yields.begin() + static_cast<ptrdiff_t>(names.size());
    combine(stage.carriers, names, {yields.begin(), further}, names);
    results.insert(results.end(), further, yields.end());
    stores(stage, results);
    --indent_;
    line("}");
    --indent_;
    line("}");
  }

  // Runs merge in pairs; each element finds its own place, by a search in the other run of its pair.
  void sort(const Stage &stage) {
    const Sort &s = *stage.sort;
    const std::string count = expr_text(stage.axes.back().extent);
    const uint16_t keys = s.columns[0].buffer;
    line(str_cat("for (kiln_i64 length = ", expr_text(s.runs), "; length < ", count, "; length *= 2) {"));
    ++indent_;
    for (bool back : {false, true}) {
      walk("at", own_axes(stage), false);
      ++indent_;
      if (!back) {
        line(str_cat("const kiln_i64 to = kiln_merged<", order_text(kernel_.buffers[keys].type, s.descending), ">(b",
                     keys, ", at, length, ", count, ");"));
      }
      for (const Sort::Column &c : s.columns)
        line(back ? str_cat("b", c.buffer, "[at] = b", c.spare, "[at];")
                  : str_cat("b", c.spare, "[to] = b", c.buffer, "[at];"));
      --indent_;
      line("}");
      if (block_) line("__syncthreads();");
    }
    --indent_;
    line("}");
  }

  // Of a value for each thread of a block, in shared memory.
  static size_t shared_words(DType type) { return std::max<size_t>(size_of(type), sizeof(float)) * block_threads / 8; }

  static_assert(block_threads == device_partials);

  // The stages use it one after the other.
  void shared_memory() {
    size_t most = 0;
    for (const Stage &stage : kernel_.stages) {
      size_t words = 0;
      for (DType type : stage.carriers.types) words += shared_words(type);
      most = std::max(most, words);
    }
    if (most > 0) line(str_cat("__shared__ kiln_i64 shared[", most, "];"));
  }

  // Partial results in shared memory, then halves of them, in one order whatever the size of the block.
  void block_reduction(const Stage &stage) {
    const Split axes = split(stage);
    size_t words = 0;
    std::vector<std::string> low, high;
    for (size_t c = 0; c < stage.carriers.types.size(); ++c) {
      const std::string_view type = value_type(stage.carriers.types[c]);
      line(str_cat(type, " *const shared", c, " = (", type, " *)(shared + ", words, ");"));
      words += shared_words(stage.carriers.types[c]);
      low.push_back(str_cat("shared", c, "[partial]"));
      high.push_back(str_cat("shared", c, "[partial + half]"));
    }
    line(str_cat("for (kiln_i64 loop = 0; loop < ", points_of(axes.loops), "; ++loop) {"));
    ++indent_;
    delinearise("loop", axes.loops, first_axis(stage));
    const bool in_chunks = begin_chunks(stage, axes, true);
    line(str_cat("for (unsigned partial = threadIdx.x; partial < ", device_partials, "; partial += blockDim.x) {"));
    ++indent_;
    const std::vector<std::string> names = begin_carriers(stage.carriers);
    accumulate(stage, axes, names, "begin + partial", "end", std::to_string(device_partials));
    for (size_t c = 0; c < names.size(); ++c) line(str_cat(low[c], " = c", c, ";"));
    --indent_;
    line("}");
    if (stage.carriers.in_pairs) {  // each partial has one sum, or none; those of neighbours first
      line(str_cat("for (unsigned half = 1; half < ", device_partials, "; half *= 2) {"));
      ++indent_;
      line("__syncthreads();");
      line(
          "for (unsigned partial = 2 * half * threadIdx.x; begin + partial + half < end; partial += 2 * half * "
          "blockDim.x) {");
    } else {
      line(str_cat("for (unsigned half = ", device_partials / 2, "; half > 0; half /= 2) {"));
      ++indent_;
      line("__syncthreads();");
      line("for (unsigned partial = threadIdx.x; partial < half; partial += blockDim.x) {");
    }
    ++indent_;
    combine(stage.carriers, low, high, low);
    --indent_;
    line("}");
    --indent_;
    line("}");
    line("if (threadIdx.x == 0) {");
    ++indent_;
    line("const unsigned partial = 0;");
    if (in_chunks) {
      add_chunk(stage, low);
      line("if (end == all) {");
      ++indent_;
    }
    stores(stage, low);
    if (in_chunks) {
      --indent_;
      line("}");
    }
    --indent_;
    line("}");
    line("__syncthreads();");
    if (in_chunks) end_chunks();
    --indent_;
    line("}");
  }

  // One thread for each (m, n), which are points or the last loop axes: sums over sum_depth of k, one after the other.
  void contraction(const Stage &stage) {
    const Contract &c = *stage.contract;
    const Split axes = split(stage);
    if (!axes.loops.empty()) {
      walk("loop", axes.loops, is_in_order(stage));
      ++indent_;
      delinearise("loop", axes.loops, first_axis(stage));
    }
    const size_t k = first_axis(stage) + axes.loops.size();
    const std::string extent = expr_text(stage.axes.back().extent);
    // Integers wrap, as unsigned ones do in C++.
    const std::string_view wraps = dtype_info(c.accumulator).is_float ? value_type(c.accumulator)
                                   : size_of(c.accumulator) == 8      ? "kiln_u64"
                                                                      : "unsigned";
    line(str_cat(wraps, " sum = 0;"));
    line(str_cat("for (kiln_i64 begin = 0; begin < ", extent, "; begin += ", sum_depth, ") {"));
    ++indent_;
    line(str_cat(wraps, " part = 0;"));
    line(str_cat("const kiln_i64 end = begin + ", sum_depth, " < ", extent, " ? begin + ", sum_depth, " : ", extent,
                 ";"));
    line(str_cat("for (kiln_i64 i", k, " = begin; i", k, " < end; ++i", k, ") {"));
    ++indent_;
    const std::string a = body(c.a, "a")[0], b = body(c.b, "b_")[0];
    line(str_cat("part += (", wraps, ")", a, " * (", wraps, ")", b, ";"));
    --indent_;
    line("}");
    line("sum += part;");
    --indent_;
    line("}");
    const std::string sum[] = {str_cat("(", value_type(c.accumulator), ")sum")};
    stores(stage, body(stage.body, "v", sum));
    if (axes.loops.empty()) return;
    --indent_;
    line("}");
  }

  const Kernel &kernel_;
  std::string_view name_;
  bool block_;
  std::vector<uint32_t> points_;  // the parallel axes
  bool points_in_order_ = false;  // one block, or thread, takes them one after the other
  std::string out_;
  int indent_ = 0;
};

}  // namespace

Mapping mapping_of(const Kernel &kernel) {
  const bool alone = is_tiled_contraction(kernel) || kernel.schedule.vector == Schedule::Vector::parallel;
  return alone && constant_and_small(kernel) ? Mapping::thread : Mapping::block;
}

Result<std::string> emit_source(const Kernel &kernel, std::string_view name) {
  const size_t parameter = sizeof(uint64_t) * (kernel.buffers.size() + kernel.symbols.size() + 5);
  if (parameter > parameter_bytes)
    return error(Code::unimplemented, "cuda: ", kernel.buffers.size(), " buffers and ", kernel.symbols.size(),
                 " sizes are more than the ", parameter_bytes, " bytes of a kernel's parameter");
  return SourceEmitter(kernel, name).run();
}

}  // namespace kiln::cuda
