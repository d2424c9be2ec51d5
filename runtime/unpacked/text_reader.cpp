#include "runtime/unpacked/text_reader.h"

#include <charconv>

namespace kiln::unpacked {

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

std::vector<json::View> TextReader::elements(const json::View &view) {
  if (!status_.ok()) return {};
  Result<std::vector<json::View>> all = view.as_list();
  if (all.ok()) return std::move(all).value();
  status_ = all.take_status();
  return {};
}

void TextReader::get_immediate(const json::View &view, DType type, uint64_t &out) {
  if (!status_.ok()) return;
  Result<uint64_t> bits = json::read_element(view, immediate_type(type));
  if (bits.ok())
    out = *bits;
  else
    status_ = bits.take_status();
}

void TextReader::nested(std::string_view name, Plan &plan, std::vector<Plan> Plan::*member) {
  const auto view = ask(name);
  if (!view) return;
  for (const json::View &element : elements(*view)) {
    uint32_t number = 0;
    get(element, number);
    if (!status_.ok()) return;
    // None is in two, nor, so, in itself.
    if (number >= plans.size() || taken[number]) {
      fail(element.fail("plan ", number, " is not there, or is another's already"));
      return;
    }
    if (depth >= deepest_plan) {
      fail(element.fail("plans are nested deeper than ", deepest_plan));
      return;
    }
    taken[number] = true;
    const json::View inner = plans[number];
    ++depth;
    get(inner, (plan.*member).emplace_back());
    --depth;
  }
}

}  // namespace kiln::unpacked
