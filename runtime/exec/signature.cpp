#include "runtime/exec/signature.h"

#include <algorithm>
#include <set>

#include "runtime/ops/reference.h"

namespace kiln {
namespace {

// Of an array that is not known to have the rank, so that `shape` is read only where it is there.
bool same_dims(const ArrayRef &array, const std::vector<int64_t> &dims) {
  return array.rank == dims.size() &&
         (dims.empty() || (array.shape && std::equal(dims.begin(), dims.end(), array.shape)));
}

int64_t row_major_stride(std::span<const int64_t> dims, size_t d) {
  int64_t stride = 1;
  for (size_t i = d + 1; i < dims.size(); ++i) stride *= dims[i];
  return stride;
}

Status beyond(uint32_t slot, int64_t size, int64_t room) {
  return error(Code::corrupt, "the plan is damaged: slot ", slot, " of ", size, " bytes lies in ", room, " bytes");
}

}  // namespace

Signature::Signature(const Plan &plan)
    : input_count_(static_cast<uint32_t>(plan.inputs.size())),
      parameter_count_(static_cast<uint32_t>(plan.parameters.size())) {
  for (const auto *list : {&plan.inputs, &plan.parameters, &plan.outputs})
    for (const Plan::Argument &a : *list) arguments_.push_back(&a);
}

std::string Signature::describe(uint32_t slot) const {
  const std::string_view kind = inputs().contains(slot)       ? "input"
                                : parameters().contains(slot) ? "parameter"
                                                              : "output";
  return str_cat(kind, " '", argument(slot).name, "'");
}

bool ResolvedArgument::is_of_type(const ArrayRef &array) const {
  return array.dtype == dtype && same_dims(array, dims);
}

bool ResolvedArgument::matches(const ArrayRef &array) const {
  if (!is_of_type(array)) return false;
  if (!array.strides) return row_major || elements <= 1;
  if (elements <= 1) return true;
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != 1 && array.strides[d] != strides[d]) return false;
  return true;
}

ResolvedSizes::ResolvedSizes(const Plan &plan, const Signature &signature, const PlanSizes &sizes)
    : plan_(plan),
      signature_(signature),
      sizes_(sizes),
      symbols_(plan.symbols.size()),
      values_(sizes.sizes.count()),
      known_(plan.symbols.size()),
      arguments_(signature.count()) {
  if (std::ranges::any_of(plan.symbols, &Plan::Symbol::resolved)) ranges_.resize(sizes.sizes.count());
  for (uint32_t slot = 0; slot < signature.count(); ++slot) {
    arguments_[slot].dtype = signature.argument(slot).dtype;
    arguments_[slot].dims.resize(signature.argument(slot).dims.size());
    arguments_[slot].strides.resize(signature.argument(slot).dims.size());
  }
  for (uint32_t i = 0; i < plan.outputs.size(); ++i) arguments_[signature.outputs().begin + i].made = plan.makes(i);
}

Status ResolvedSizes::resolve(std::span<const ArrayRef> inputs) {
  KILN_TRY(bind_symbols(inputs));
  evaluate();
  // What the nodes ask comes before the outputs: it explains an output that would have a negative size.
  const uint32_t first_output = signature_.outputs().begin;
  for (uint32_t slot = 0; slot < first_output; ++slot) KILN_TRY(resolve_argument(slot));
  for (uint32_t slot = 0; slot < inputs.size(); ++slot) KILN_TRY(check(slot, inputs[slot]));
  return check_sizes();
}

Status ResolvedSizes::resolve(std::span<const int64_t> symbols) {
  for (size_t i = 0; i < symbols.size(); ++i)
    if (!plan_.symbols[i].resolved) KILN_TRY(bind(i, symbols[i]));
  evaluate();
  for (uint32_t slot = 0; slot < signature_.outputs().begin; ++slot) KILN_TRY(resolve_argument(slot));
  return check_sizes();
}

Status ResolvedSizes::resolve_parameters() {
  evaluate();
  const SlotRange slots = signature_.parameters();
  for (uint32_t slot = slots.begin; slot < slots.end; ++slot)
    if (is_static(signature_.argument(slot))) KILN_TRY(resolve_argument(slot));
  for (size_t i = 0; i < sizes_.uses.size(); ++i)
    if (const uint32_t slot = sizes_.uses[i].argument; slots.contains(slot) && is_static(signature_.argument(slot)))
      KILN_TRY(check_use(i));
  return {};
}

// Until they are resolved, symbols are as large as they can be.
void ResolvedSizes::evaluate() {
  if (!ranges_.empty()) {
    std::vector<Sizes::Range> symbols;
    for (size_t i = 0; i < symbols_.size(); ++i) symbols.push_back({symbols_[i], symbols_[i]});
    for (size_t i = 0; i < symbols_.size(); ++i) {
      const Plan::Symbol &s = plan_.symbols[i];
      if (!s.resolved) continue;
      symbols[i] = {};  // its bound speaks of earlier ones alone
      sizes_.sizes.evaluate(symbols, ranges_);
      const int64_t least = std::max<int64_t>(s.min, 0);
      symbols[i] = {least, std::max(least, std::min(s.max, ranges_[sizes_.symbol_bounds[i]].high))};
      symbols_[i] = symbols[i].high;
      known_[i] = false;
    }
    sizes_.sizes.evaluate(symbols, ranges_);
  }
  sizes_.sizes.evaluate(symbols_, values_);
}

Status ResolvedSizes::check_sizes() {
  using Kind = PlanSizes::Late::Kind;
  for (uint32_t i = 0; i < sizes_.checks.size(); ++i)
    if (!sizes_.is_late(Kind::check, i)) KILN_TRY(check_equal(i));
  for (uint32_t slot = signature_.outputs().begin; slot < signature_.count(); ++slot) {
    ResolvedArgument &a = arguments_[slot];
    a.late = sizes_.is_late(Kind::argument, slot);
    if (!a.late) {
      KILN_TRY(resolve_argument(slot));
      continue;
    }
    a.most_bytes = 0;
    for (const PlanSizes::Use &use : sizes_.uses)
      if (use.argument == slot)
        a.most_bytes =
            std::max(a.most_bytes, static_cast<uint64_t>(std::max<int64_t>(most(sizes_.slots[use.plan_slot]), 0)));
  }
  return {};
}

bool ResolvedSizes::is_complete() const {
  for (size_t i = 0; i < plan_.symbols.size(); ++i)
    if (plan_.symbols[i].resolved && !known_[i]) return false;
  return true;
}

Status ResolvedSizes::set(uint32_t symbol, int64_t size) {
  const Plan::Symbol &s = plan_.symbols[symbol];
  const int64_t least = std::max<int64_t>(s.min, 0), largest = std::min(s.max, values_[sizes_.symbol_bounds[symbol]]);
  if (size < least || size > largest || size % s.divisor != 0) {
    Status wrong = error(Code::type_mismatch, resolved_size_error(s.name, size, least, largest, s.divisor));
    return s.node.path.empty() ? wrong : std::move(wrong).at_node(s.node.name);
  }
  symbols_[symbol] = size;
  known_[symbol] = true;
  sizes_.sizes.evaluate(symbols_, values_);
  for (const PlanSizes::Late &item : sizes_.late) {
    const bool is_next = std::ranges::find(item.symbols, symbol) != item.symbols.end() &&
                         std::ranges::all_of(item.symbols, [&](uint32_t other) { return known_[other]; });
    if (!is_next) continue;
    switch (item.kind) {
      case PlanSizes::Late::Kind::check:
        KILN_TRY(check_equal(item.number));
        break;
      case PlanSizes::Late::Kind::bound:
        KILN_TRY(check_bound(item.number));
        break;
      case PlanSizes::Late::Kind::use:
        KILN_TRY(check_use(item.number));
        break;
      case PlanSizes::Late::Kind::argument:
        KILN_TRY(resolve_argument(item.number));
        break;
    }
  }
  return {};
}

Status ResolvedSizes::check_equal(size_t number) const {
  const Plan::Check &c = plan_.checks[number];
  const int64_t left = values_[sizes_.checks[number].left], right = values_[sizes_.checks[number].right];
  if (left == right) return {};
  std::string sizes;
  for (const auto &[size, value] : {std::pair(&c.left, left), std::pair(&c.right, right)})
    if (!size->is_integer()) str_append(sizes, str_cat(sizes.empty() ? "" : ", ", size->text(), " is ", value));
  Status unequal = error(Code::type_mismatch, c.text(), "; ", sizes, " (", origins({c.left, c.right}), ")");
  return c.node.path.empty() ? unequal : std::move(unequal).with_node(c.node.name);
}

std::vector<uint64_t> ResolvedSizes::bytes(std::span<const uint32_t> numbers) const {
  std::vector<uint64_t> bytes;
  for (uint32_t number : numbers) bytes.push_back(static_cast<uint64_t>(std::max<int64_t>(most(number), 0)));
  return bytes;
}

std::vector<uint64_t> ResolvedSizes::bytes(SlotRange slots) const {
  std::vector<uint64_t> bytes;
  for (uint32_t slot = slots.begin; slot < slots.end; ++slot)
    bytes.push_back(!arguments_[slot].made  ? 0
                    : arguments_[slot].late ? arguments_[slot].most_bytes
                                            : arguments_[slot].span_bytes);
  return bytes;
}

Status ResolvedSizes::bind_symbols(std::span<const ArrayRef> inputs) {
  for (size_t i = 0; i < plan_.symbols.size(); ++i) {
    const Plan::Symbol &s = plan_.symbols[i];
    if (s.resolved) continue;
    const ArrayRef &array = inputs[s.input];
    if (const size_t rank = plan_.inputs[s.input].dims.size(); array.rank != rank || !array.shape)
      return error(Code::type_mismatch, signature_.describe(s.input), ": rank is ", array.rank, ", expected ", rank);
    KILN_TRY(bind(i, array.shape[s.dim]));
  }
  return {};
}

Status ResolvedSizes::bind(size_t symbol, int64_t size) {
  const Plan::Symbol &s = plan_.symbols[symbol];
  const auto fail = [&](std::string_view expected, int64_t bound) {
    return error(Code::type_mismatch, signature_.describe(s.input), ": dim ", s.dim, " is ", size, ", expected ",
                 expected, bound, " (symbol '", s.name, "')");
  };
  if (size < std::max<int64_t>(s.min, 0)) return fail("at least ", std::max<int64_t>(s.min, 0));
  if (size > s.max) return fail("at most ", s.max);
  if (size % s.divisor != 0) return fail("a multiple of ", s.divisor);
  symbols_[symbol] = size;
  return {};
}

Status ResolvedSizes::check_bounds() const {
  using Kind = PlanSizes::Late::Kind;
  for (uint32_t i = 0; i < sizes_.uses.size(); ++i)
    if (!sizes_.is_late(Kind::use, i)) KILN_TRY(check_use(i));
  for (uint32_t i = 0; i < sizes_.bounds.size(); ++i)
    if (!sizes_.is_late(Kind::bound, i)) KILN_TRY(check_bound(i));
  return {};
}

Status ResolvedSizes::check_use(size_t number) const {
  const PlanSizes::Use &use = sizes_.uses[number];
  const int64_t size = values_[sizes_.slots[use.plan_slot]];
  const auto room = static_cast<int64_t>(arguments_[use.argument].span_bytes);
  return size > room ? beyond(use.plan_slot, size, room) : Status();
}

Status ResolvedSizes::check_bound(size_t number) const {
  const Plan::Bound &bound = plan_.bounds[number];
  const int64_t size = values_[sizes_.bounds[number].left], room = values_[sizes_.bounds[number].right];
  if (size <= room || (size <= 0 && bound.slot != Plan::Bound::no_slot)) return {};
  if (bound.slot != Plan::Bound::no_slot) return beyond(bound.slot, size, room);
  return error(Code::corrupt, "the plan is damaged: a kernel relies on ", size, " = ", room);
}

std::optional<ArraySpan> span_of(std::span<const int64_t> dims, std::span<const int64_t> strides) {
  int64_t last = 0, below = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(std::max<int64_t>(dims[d] - 1, 0), strides[d], &reach) || reach == INT64_MIN ||
        __builtin_add_overflow(last, std::abs(reach), &last) || last == INT64_MAX)
      return {};
    below -= std::min<int64_t>(reach, 0);
  }
  return ArraySpan{last + 1, below};
}

bool is_static(const Plan::Argument &argument) {
  return std::ranges::all_of(argument.dims, &Dim::is_integer) &&
         std::ranges::all_of(argument.strides, &Dim::is_integer);
}

std::optional<ArrayExtent> extent_of(const ArrayRef &type) {
  const std::span<const int64_t> dims(type.shape, type.rank);
  const std::optional<uint64_t> dense = dense_bytes(type.dtype, dims);
  if (!dense) return std::nullopt;
  if (!type.strides || *dense == 0) return ArrayExtent{*dense, 0};
  const std::optional<ArraySpan> span = span_of(dims, {type.strides, type.rank});
  uint64_t bytes = 0;
  if (!span || __builtin_mul_overflow(static_cast<uint64_t>(span->elements), size_of(type.dtype), &bytes))
    return std::nullopt;
  return ArrayExtent{bytes, static_cast<uint64_t>(span->below) * size_of(type.dtype)};
}

Status ResolvedSizes::resolve_argument(uint32_t slot) {
  const PlanSizes::Argument &numbers = sizes_.arguments[slot];
  ResolvedArgument &a = arguments_[slot];
  const Plan::Argument &declared = signature_.argument(slot);
  bool fits = true;
  a.elements = 1;
  bool empty = false;  // counted as 1 in the check, as in dense_bytes()
  for (size_t d = 0; d < a.dims.size(); ++d) {
    a.dims[d] = values_[numbers.dims[d]];
    a.strides[d] = values_[numbers.strides[d]];
    if (a.dims[d] < 0)
      return error(Code::type_mismatch, signature_.describe(slot), ": dim ", d, " would have size ", a.dims[d],
                   ", expected at least 0", reason(declared.dims[d]));
    empty |= a.dims[d] == 0;
    fits = fits && !__builtin_mul_overflow(a.elements, std::max<int64_t>(a.dims[d], 1), &a.elements);
  }
  std::optional<ArraySpan> span = span_of(a.dims, a.strides);
  if (empty) a.elements = 0;
  if (empty && span) span = ArraySpan();
  int64_t bytes = 0;
  fits = fits && span && !__builtin_mul_overflow(span->elements, int64_t{size_of(a.dtype)}, &bytes);
  if (!fits) return error(Code::out_of_memory, signature_.describe(slot), ": more bytes than can be addressed");
  a.span_bytes = static_cast<uint64_t>(bytes);
  a.below_bytes = static_cast<uint64_t>(span->below) * size_of(a.dtype);
  a.row_major = true;
  for (size_t d = 0; d < a.dims.size() && a.elements > 1; ++d)
    if (a.dims[d] != 1 && a.strides[d] != row_major_stride(a.dims, d)) a.row_major = false;
  return {};
}

// "symbol 'n', bound by input 'x' dim 0; symbol ..."
std::string ResolvedSizes::origins(std::initializer_list<Expr> sizes) const {
  std::set<std::string> used;
  for (const Expr &size : sizes) size.collect_symbols(used);
  return join(used, "; ", [&](const std::string &name) {
    const auto s = std::ranges::find(plan_.symbols, name, &Plan::Symbol::name);
    if (s->resolved) return str_cat("symbol '", name, "', resolved by node '", s->node.name, "'");
    return str_cat("symbol '", name, "', bound by ", signature_.describe(s->input), " dim ", s->dim);
  });
}

// " (2*n; symbol 'n', bound by input 'x' dim 0)", or "" for a plain number.
std::string ResolvedSizes::reason(const Expr &size) const {
  if (size.is_integer()) return "";
  const std::string term = size.kind() == Expr::Kind::symbol ? "" : str_cat(size.text(), "; ");
  return str_cat(" (", term, origins({size}), ")");
}

Status ResolvedSizes::check(uint32_t slot, const ArrayRef &array) const {
  const ResolvedArgument &expected = arguments_[slot];
  if (expected.matches(array)) return {};
  const auto fail = [&](const auto &...what) {
    return error(Code::type_mismatch, signature_.describe(slot), ": ", what...);
  };
  if (array.dtype != expected.dtype)
    return fail("dtype is ", name_of(array.dtype), ", expected ", name_of(expected.dtype));
  if (array.rank != expected.dims.size() || (array.rank && !array.shape))
    return fail("rank is ", array.rank, ", expected ", expected.dims.size());
  for (size_t d = 0; d < expected.dims.size(); ++d)
    if (array.shape[d] != expected.dims[d])
      return fail("dim ", d, " is ", array.shape[d], ", expected ", expected.dims[d],
                  reason(signature_.argument(slot).dims[d]));
  const std::string_view remedy =
      expected.row_major ? "; make the array contiguous" : "; copy it to the declared layout";
  for (size_t d = 0; d < expected.dims.size(); ++d) {
    const int64_t stride = array.strides ? array.strides[d] : row_major_stride(expected.dims, d);
    if (expected.dims[d] != 1 && stride != expected.strides[d])
      return fail("stride of dim ", d, " is ", stride, ", expected ", expected.strides[d], " elements", remedy);
  }
  return {};
}

Status ResolvedSizes::check_written(uint32_t slot, std::span<const int64_t> strides) const {
  const Status written = kiln::check_written(arguments_[slot].dims, strides);
  return written.ok() ? written : error(Code::type_mismatch, signature_.describe(slot), ": ", written.message());
}

}  // namespace kiln
