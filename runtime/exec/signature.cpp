#include "runtime/exec/signature.h"

#include <algorithm>
#include <set>

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

bool ResolvedArgument::matches(const ArrayRef &array) const {
  if (array.dtype != dtype || !same_dims(array, dims)) return false;
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
      arguments_(signature.count()) {
  for (uint32_t slot = 0; slot < signature.count(); ++slot) {
    arguments_[slot].dtype = signature.argument(slot).dtype;
    arguments_[slot].dims.resize(signature.argument(slot).dims.size());
    arguments_[slot].strides.resize(signature.argument(slot).dims.size());
  }
}

Status ResolvedSizes::resolve(std::span<const ArrayRef> inputs) {
  KILN_TRY(bind_symbols(inputs));
  sizes_.sizes.evaluate(symbols_, values_);
  // What the nodes ask comes before the outputs: it explains an output that would have a negative size.
  const uint32_t first_output = signature_.outputs().begin;
  for (uint32_t slot = 0; slot < first_output; ++slot) KILN_TRY(resolve_argument(slot));
  for (uint32_t slot = 0; slot < inputs.size(); ++slot) KILN_TRY(check(slot, inputs[slot]));
  return check_sizes();
}

Status ResolvedSizes::resolve(std::span<const int64_t> symbols) {
  for (size_t i = 0; i < symbols.size(); ++i) KILN_TRY(bind(i, symbols[i]));
  sizes_.sizes.evaluate(symbols_, values_);
  for (uint32_t slot = 0; slot < signature_.outputs().begin; ++slot) KILN_TRY(resolve_argument(slot));
  return check_sizes();
}

Status ResolvedSizes::check_sizes() {
  for (size_t i = 0; i < sizes_.checks.size(); ++i) KILN_TRY(check_equal(i));
  for (uint32_t slot = signature_.outputs().begin; slot < signature_.count(); ++slot) KILN_TRY(resolve_argument(slot));
  return {};
}

Status ResolvedSizes::check_equal(size_t number) const {
  const Plan::Check &c = plan_.checks[number];
  const int64_t left = values_[sizes_.checks[number].left], right = values_[sizes_.checks[number].right];
  if (left == right) return {};
  std::string sizes;
  for (const auto &[size, value] : {std::pair(&c.left, left), std::pair(&c.right, right)})
    if (!size->is_integer()) str_append(sizes, str_cat(sizes.empty() ? "" : ", ", size->text(), " is ", value));
  return error(Code::type_mismatch, c.text(), "; ", sizes, " (", origins({c.left, c.right}), ")");
}

std::vector<uint64_t> ResolvedSizes::bytes(std::span<const uint32_t> numbers) const {
  std::vector<uint64_t> bytes;
  for (uint32_t number : numbers) bytes.push_back(static_cast<uint64_t>(std::max<int64_t>(values_[number], 0)));
  return bytes;
}

std::vector<uint64_t> ResolvedSizes::bytes(SlotRange slots) const {
  std::vector<uint64_t> bytes;
  for (uint32_t slot = slots.begin; slot < slots.end; ++slot) bytes.push_back(arguments_[slot].span_bytes);
  return bytes;
}

Status ResolvedSizes::bind_symbols(std::span<const ArrayRef> inputs) {
  for (size_t i = 0; i < plan_.symbols.size(); ++i) {
    const Plan::Symbol &s = plan_.symbols[i];
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
  const auto beyond = [](uint32_t slot, int64_t size, int64_t room) {
    return error(Code::corrupt, "the plan is damaged: slot ", slot, " of ", size, " bytes lies in ", room, " bytes");
  };
  for (const PlanSizes::Use &use : sizes_.uses) {
    const int64_t size = values_[sizes_.slots[use.plan_slot]];
    const auto room = static_cast<int64_t>(arguments_[use.argument].span_bytes);
    if (size > room) return beyond(use.plan_slot, size, room);
  }
  for (size_t i = 0; i < sizes_.bounds.size(); ++i) {
    const int64_t size = values_[sizes_.bounds[i].left], room = values_[sizes_.bounds[i].right];
    if (size <= room || (size <= 0 && plan_.bounds[i].slot != Plan::Bound::no_slot)) continue;
    if (plan_.bounds[i].slot != Plan::Bound::no_slot) return beyond(plan_.bounds[i].slot, size, room);
    return error(Code::corrupt, "the plan is damaged: a kernel relies on ", size, " = ", room);
  }
  return {};
}

Status ResolvedSizes::resolve_argument(uint32_t slot) {
  const PlanSizes::Argument &numbers = sizes_.arguments[slot];
  ResolvedArgument &a = arguments_[slot];
  const Plan::Argument &declared = signature_.argument(slot);
  int64_t last = 0;  // offset of the last element
  bool fits = true;
  a.elements = 1;
  bool empty = false;  // counted as 1 in the check, as in dense_bytes()
  for (size_t d = 0; d < a.dims.size(); ++d) {
    a.dims[d] = values_[numbers.dims[d]];
    a.strides[d] = values_[numbers.strides[d]];
    if (a.dims[d] < 0 || a.strides[d] < 0)
      return error(Code::type_mismatch, signature_.describe(slot), ": dim ", d, " would have size ", a.dims[d],
                   " and stride ", a.strides[d], ", expected at least 0", reason(declared.dims[d]));
    int64_t reach = 0;
    empty |= a.dims[d] == 0;
    fits = fits && !__builtin_mul_overflow(a.elements, std::max<int64_t>(a.dims[d], 1), &a.elements) &&
           !__builtin_mul_overflow(std::max<int64_t>(a.dims[d] - 1, 0), a.strides[d], &reach) &&
           !__builtin_add_overflow(last, reach, &last) && last < INT64_MAX;
  }
  if (empty) a.elements = 0, last = -1;
  int64_t span = 0;
  fits = fits && !__builtin_mul_overflow(last + 1, int64_t{size_of(a.dtype)}, &span);
  a.span_bytes = static_cast<uint64_t>(span);
  if (!fits) return error(Code::out_of_memory, signature_.describe(slot), ": more bytes than can be addressed");
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

}  // namespace kiln
