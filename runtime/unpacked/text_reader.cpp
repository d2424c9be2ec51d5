#include "runtime/unpacked/text_reader.h"

#include <algorithm>
#include <charconv>

namespace kiln::unpacked {
namespace {

Status read_digest(const json::View &view, Digest &out) {
  KILN_ASSIGN(const std::string_view text, view.as_text());
  bool is_hex = text.size() == 2 * out.bytes.size();
  for (size_t i = 0; is_hex && i < out.bytes.size(); ++i) {
    const char *digits = text.data() + 2 * i;
    const auto [end, failure] = std::from_chars(digits, digits + 2, out.bytes[i], 16);
    is_hex = failure == std::errc() && end == digits + 2;
  }
  return is_hex ? Status() : view.expected("a digest of 64 hexadecimal digits");
}

// `scope`: null outside of kernels.
Status read_expr(const json::View &view, const std::vector<kernel::Axis> *scope, Expr &out) {
  if (view.is_number()) {
    KILN_ASSIGN(const int64_t integer, view.as_integer());
    out = integer;
    return {};
  }
  if (!view.is_text()) return view.expected("an integer or an expression");
  if (scope) {
    std::optional<Expr> e = kernel::parse_expr(view.text(), *scope);
    if (!e) return view.expected("an expression over the kernel's symbols, values and the axes in scope");
    out = std::move(*e);
    return {};
  }
  Result<Expr> e = Expr::parse(view.text());
  if (!e.ok()) return view.fail(e.status().message());
  out = std::move(e).value();
  return {};
}

Status refuse_unknown(const json::View &object, const std::vector<std::string_view> &known) {
  KILN_ASSIGN(const std::vector<json::View> members, object.as_object());
  for (const json::View &member : members)
    if (std::ranges::find(known, member.key()) == known.end())
      return object.fail("unknown member '", member.key(), "'; known are ",
                         join(known, ", ", [](std::string_view name) { return name; }));
  return {};
}

}  // namespace

void TextReader::read_member(std::string_view name, void *out, ReadOne read_it) {
  if (!status_.ok()) return;
  asked_.push_back(name);
  if (const std::optional<json::View> view = object_->member(name)) (this->*read_it)(*view, out);
}

int64_t TextReader::integer(const json::View &view, int64_t least, int64_t most) {
  const Result<int64_t> number = view.as_integer();
  const bool is_within = number.ok() && *number >= least && *number <= most;
  if (is_within) return *number;
  fail(number.ok() ? view.fail(*number, " is out of its range") : number.status());
  return 0;
}

void TextReader::get(const json::View &view, bool &out) {
  if (!view.is_boolean()) return fail(view.expected("true or false"));
  out = view.boolean();
}
void TextReader::get(const json::View &view, Expr &out) { fail(read_expr(view, in_kernel ? &scope : nullptr, out)); }
void TextReader::get(const json::View &view, Digest &out) { fail(read_digest(view, out)); }
void TextReader::get(const json::View &view, std::string &out) {
  const Result<std::string_view> text = view.as_text();
  if (!text.ok()) return fail(text.status());
  out = *text;
}

int TextReader::enumerator(const json::View &view, std::string_view (*name_of)(int)) {
  std::string known;
  for (int number = 0; number <= UINT8_MAX; ++number) {
    const std::string_view name = name_of(number);
    if (name.empty()) continue;
    if (view.is_text() && view.text() == name) return number;
    str_append(known, str_cat(known.empty() ? "" : ", ", name));
  }
  fail(view.expected(str_cat("one of ", known)));
  return 0;
}

void TextReader::list(const json::View &view, size_t most, void *items, void *(*add)(void *items), ReadOne read_it) {
  const Result<std::vector<json::View>> all = view.as_list();
  if (!all.ok()) return fail(all.status());
  if (all->size() > most) return fail(view.fail(all->size(), " elements, expected at most ", most));
  for (const json::View &element : *all) {
    if (!status_.ok()) return;
    (this->*read_it)(element, add(items));
  }
}

void TextReader::object(const json::View &view, void *item, void (*walk_it)(TextReader &, void *item)) {
  if (!view.is_object()) return fail(view.expected("an object"));
  const json::View *outer = std::exchange(object_, &view);
  std::vector<std::string_view> asked = std::exchange(asked_, {});
  walk_it(*this, item);
  if (status_.ok()) fail(refuse_unknown(view, asked_));
  object_ = outer;
  asked_ = std::move(asked);
}

void TextReader::read_immediate(const json::View &view, void *out) {
  Result<uint64_t> bits = json::read_element(view, immediate_type(types_.empty() ? DType::none : types_.front()));
  if (!bits.ok()) return fail(bits.take_status());
  *static_cast<uint64_t *>(out) = *bits;
}

void TextReader::read_immediates(const json::View &view, void *out) {
  const auto add = [](void *items) -> void * { return &static_cast<std::vector<uint64_t> *>(items)->emplace_back(); };
  const Result<std::vector<json::View>> all = view.as_list();
  if (!all.ok()) return fail(all.status());
  for (const json::View &element : *all) {
    read_immediate(element, add(out));
    if (!types_.empty()) types_ = types_.subspan(1);
  }
}

void TextReader::read_plans(const json::View &view, void *out) {
  const Result<std::vector<json::View>> all = view.as_list();
  if (!all.ok()) return fail(all.status());
  for (const json::View &element : *all) {
    const auto number = static_cast<size_t>(integer(element, 0, UINT32_MAX));
    if (!status_.ok()) return;
    // None is in two, nor, so, in itself.
    if (number >= plans.size() || taken[number])
      return fail(element.fail("plan ", number, " is not there, or is another's already"));
    if (depth_ >= deepest_plan) return fail(element.fail("plans are nested deeper than ", deepest_plan));
    taken[number] = true;
    ++depth_;
    get(json::View(plans[number]), static_cast<std::vector<Plan> *>(out)->emplace_back());
    --depth_;
  }
}

}  // namespace kiln::unpacked
