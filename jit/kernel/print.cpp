// The kernel for people: `kiln inspect --kernels`, goldens, bug reports.
#include <bit>

#include "jit/kernel/kernel.h"

namespace kiln::kernel {
namespace {

std::string immediate(DType type, uint64_t bits) {
  if (dtype_info(type).is_float) return str_cat(std::bit_cast<double>(bits));
  return str_cat(static_cast<int64_t>(bits));
}

std::string access(const Access &a, DType type) {
  std::string text = str_cat("b", a.buffer, "[", join(a.index, ", ", [](const Expr &e) { return e.text(); }), "]");
  if (a.valid >= 0) text += str_cat(" if v", a.valid, " else ", immediate(type, a.fill));
  return text;
}

std::string print_body(const Body &body, std::string_view indent) {
  std::string out;
  for (size_t i = 0; i < body.values.size(); ++i) {
    const Value &v = body.values[i];
    out += str_cat(indent, "v", i, ": ", name_of(v.type), " = ", core_info(v.op).name);
    for (int a = 0; a < core_info(v.op).operands; ++a) out += str_cat(a ? ", v" : " v", v.args[static_cast<size_t>(a)]);
    if (v.op == Core::constant) out += str_cat(" ", immediate(v.type, v.immediate));
    if (v.op == Core::carrier) out += str_cat(" ", v.immediate);
    if (v.op == Core::load) out += str_cat(" ", access(v.access, v.type));
    if (v.op == Core::index) out += str_cat(" ", v.expr.text());
    if (v.op == Core::search) {
      out += str_cat(v.immediate & search_descending ? " descending" : "", v.immediate & search_upper ? " upper" : "",
                     " in ", v.expr.text(), " of ", access(v.access, v.type));
    }
    out += "\n";
  }
  if (!body.yields.empty())
    out += str_cat(indent, "yield ", join(body.yields, ", ", [](int32_t y) { return str_cat("v", y); }), "\n");
  return out;
}

}  // namespace

std::string print(const Kernel &kernel) {
  constexpr std::string_view spaces[] = {"in", "out", "row_local"},
                             roles[] = {"parallel", "loop", "reduce", "scan", "block"},
                             modes[] = {"=", "+=", "*=", "min=", "max=", "&=", "|="};
  std::string out = "kernel(" + join(kernel.symbols, ", ", [](const std::string &s) { return s; }) + ")\n";
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const Buffer &b = kernel.buffers[i];
    out +=
        str_cat("  b", i, ": ", spaces[static_cast<size_t>(b.space)], " ", name_of(b.type), "[", b.size.text(), "]\n");
  }
  size_t id = 0;
  const Schedule &s = kernel.schedule;
  for (const Axis &axis : kernel.parallel) {
    out += str_cat("  parallel i", id, " < ", axis.extent.text(), " by ", s.tiles[id], "\n");
    ++id;
  }
  out += str_cat("  vector ", s.vector == Schedule::Vector::inner ? "inner" : "parallel", " of ", s.vector_bytes,
                 " bytes");
  constexpr std::string_view products[] = {"", ", dot products", ", products of tiles"};
  if (s.mr) {
    out += str_cat(", microkernel ", s.mr, "x", s.nr, ", kc ", s.kc, products[static_cast<size_t>(s.products)],
                   s.vector_m ? ", epilogue along m" : "");
  }
  out += s.masked_tail ? ", masked tail" : ", scalar tail";
  if (!s.ordered) out += ", sums in any order";
  if (s.stream_bytes) out += str_cat(", outputs of ", s.stream_bytes, " bytes and more past the caches");
  out += '\n';
  for (const Stage &stage : kernel.stages) {
    out += stage.contract                 ? "  contraction\n"
           : stage.sort                   ? "  sort\n"
           : stage.carriers.types.empty() ? "  map\n"
           : stage.scans()                ? "  scan\n"
                                          : "  reduction\n";
    for (size_t a = 0; a < stage.axes.size(); ++a) {
      out += str_cat("    ", roles[static_cast<size_t>(stage.axes[a].role)], " i", id + a, " < ",
                     stage.axes[a].extent.text(), "\n");
    }
    if (stage.contract) {
      out +=
          "    a:\n" + print_body(stage.contract->a, "      ") + "    b:\n" + print_body(stage.contract->b, "      ");
      const Contract &c = *stage.contract;
      if (c.a_type() != c.accumulator || c.b_type() != c.accumulator || c.group != 1) {
        out += str_cat("    panels of ", name_of(c.a_type()), " and ", name_of(c.b_type()), " in groups of ", c.group,
                       "\n");
      }
      if (stage.contract->panel) {
        out += str_cat("    b packed in b", stage.contract->packed_buffer, " by ", stage.contract->panel, " at ",
                       stage.contract->packed_offset.text(), "\n");
      }
      out += "    epilogue:\n";
    }
    out += print_body(stage.body, "    ");
    if (stage.sort) {
      out += str_cat("    ", stage.sort->descending ? "descending" : "ascending", " runs of ", stage.sort->runs.text(),
                     stage.sort->wanted ? ", the first " + stage.sort->wanted->text() : "", ":");
      for (const Sort::Column &column : stage.sort->columns) out += str_cat(" b", column.buffer, " by b", column.spare);
      out += "\n";
    }
    if (!stage.carriers.types.empty()) {
      out += stage.carriers.exclusive ? "    exclusive" : "   ";
      out += stage.carriers.reverse ? " reverse" : "";
      if (stage.carriers.until) out += str_cat(" until ", stage.carriers.until->text());
      out += stage.carriers.in_pairs ? " in pairs" : "";
      out += " combine from ";
      for (size_t c = 0; c < stage.carriers.types.size(); ++c) {
        out += str_cat(c ? ", " : "", immediate(stage.carriers.types[c], stage.carriers.identities[c]));
      }
      out += ":\n" + print_body(stage.carriers.combine, "      ");
    }
    for (const Store &store : stage.stores) {
      const size_t carriers = stage.carriers.types.size(), value = static_cast<size_t>(store.value);
      out += str_cat("    b", store.to.buffer, "[", store.to.index[0].text(), "] ",
                     modes[static_cast<size_t>(store.mode)], value < carriers ? " carrier " : " yield ", value);
      if (store.to.valid >= 0) out += str_cat(" if v", store.to.valid);
      out += "\n";
    }
  }
  return out;
}

}  // namespace kiln::kernel
