#include "runtime/ops/read_schema.h"

#include <algorithm>
#include <limits>
#include <set>

#include "runtime/graph/json_scan.h"
#include "runtime/graph/json_values.h"
#include "runtime/ops/samples.h"

namespace kiln {
namespace {

using json::View;

class Reader {
 public:
  explicit Reader(RegisteredOp &op) : op_(op) {}

  Status read(const View &v) {
    KILN_TRY(v.allow_members({"name", "doc", "version", "args", "results", "attrs", "samples"}));
    KILN_ASSIGN(op_.name, name_in(v));
    KILN_ASSIGN(op_.doc, text_in(v, "doc"));
    if (const std::optional<View> version = v.member("version")) {
      KILN_ASSIGN(const int64_t number, version->as_integer());
      if (number < 1 || number > std::numeric_limits<uint16_t>::max()) return version->expected("1 to 65535");
      op_.version = static_cast<uint16_t>(number);
    }
    KILN_TRY(each(v, "args", &Reader::read_arg));
    KILN_TRY(each(v, "results", &Reader::read_result));
    KILN_TRY(each(v, "attrs", &Reader::read_attr));
    if (op_.result_names.empty()) return v.fail("the op has no results; 'results' names them");
    return each(v, "samples", &Reader::read_sample);
  }

 private:
  Status each(const View &v, std::string_view name, Status (Reader::*read_one)(const View &)) {
    const std::optional<View> list = v.member(name);
    if (!list) return {};
    KILN_ASSIGN(const std::vector<View> elements, list->as_list());
    for (const View &element : elements) KILN_TRY((this->*read_one)(element));
    return {};
  }

  std::string_view keep(std::string_view text) { return op_.texts.emplace_back(text); }

  // Also of arguments, results and attributes.
  Result<std::string_view> as_name(const View &v) {
    KILN_ASSIGN(const std::string_view name, v.as_text());
    if (const std::string wrong = wrong_with_name(name); !wrong.empty()) return v.fail(wrong);
    return keep(name);
  }
  Result<std::string_view> name_in(const View &v) {
    KILN_ASSIGN(const View name, v.required("name"));
    return as_name(name);
  }
  Result<std::string_view> text_in(const View &v, std::string_view name) {
    const std::optional<View> text = v.member(name);
    if (!text) return std::string_view();
    KILN_ASSIGN(const std::string_view given, text->as_text());
    return keep(given);
  }
  static Result<bool> truth_in(const View &v, std::string_view name, bool fallback) {
    const std::optional<View> truth = v.member(name);
    if (!truth) return fallback;
    if (!truth->is_boolean()) return truth->expected("true or false");
    return truth->boolean();
  }

  Status read_arg(const View &v) {
    KILN_TRY(v.allow_members({"name", "doc", "dtypes", "same_dtype", "arity"}));
    ArgDef arg{};
    KILN_ASSIGN(arg.name, name_in(v));
    if (std::ranges::find(op_.args, arg.name, &ArgDef::name) != op_.args.end())
      return v.fail("'", arg.name, "' is there already");
    KILN_ASSIGN(arg.doc, text_in(v, "doc"));
    KILN_ASSIGN(const View types, v.required("dtypes"));
    KILN_ASSIGN(const std::vector<View> names, types.as_list());
    if (names.empty()) return types.fail("the argument has no dtype");
    for (const View &name : names) {
      KILN_ASSIGN(const DType dtype, json::read_dtype(name, last_dtype));
      arg.dtypes |= dtypes(dtype);
    }
    KILN_ASSIGN(arg.same_dtype, truth_in(v, "same_dtype", arg.dtypes != dtypes(DType::token)));
    if (const std::optional<View> arity = v.member("arity")) {
      KILN_ASSIGN(const std::string_view name, arity->as_text());
      if (name != "one" && name != "optional" && name != "variadic")
        return arity->expected("one, optional or variadic");
      arg.arity = name == "one" ? Arity::one : name == "optional" ? Arity::optional : Arity::variadic;
    }
    if (!op_.args.empty() && op_.args.back().arity != Arity::one && arg.arity != op_.args.back().arity)
      return v.fail("it comes after one that is ", op_.args.back().arity == Arity::variadic ? "variadic" : "optional",
                    "; those are the last");
    if (!op_.args.empty() && op_.args.back().arity == Arity::variadic)
      return v.fail("it comes after one that is variadic, which is the last");
    op_.args.push_back(arg);
    return {};
  }

  Status read_result(const View &v) {
    KILN_ASSIGN(const std::string_view name, as_name(v));
    if (std::ranges::find(op_.result_names, name) != op_.result_names.end())
      return v.fail("'", name, "' is there already");
    op_.result_names.push_back(name);
    return {};
  }

  Status read_attr(const View &v) {
    static constexpr AttrKind kinds[] = {AttrKind::i64,   AttrKind::f64, AttrKind::text,
                                         AttrKind::dtype, AttrKind::dim, AttrKind::boolean};
    KILN_TRY(v.allow_members({"name", "doc", "kind", "list", "required", "default"}));
    AttrDef attr{};
    KILN_ASSIGN(attr.name, name_in(v));
    if (op_.find_attr(attr.name)) return v.fail("'", attr.name, "' is there already");
    KILN_ASSIGN(attr.doc, text_in(v, "doc"));
    KILN_ASSIGN(const View kind_view, v.required("kind"));
    KILN_ASSIGN(const std::string_view kind_name, kind_view.as_text());
    const auto *kind = std::ranges::find(kinds, kind_name, [](AttrKind k) { return name_of(k); });
    if (kind == std::end(kinds)) return kind_view.expected(join(kinds, ", ", [](AttrKind k) { return name_of(k); }));
    attr.kind = *kind;
    KILN_ASSIGN(attr.is_list, truth_in(v, "list", false));
    KILN_ASSIGN(attr.required, truth_in(v, "required", !v.member("default")));
    if (const std::optional<View> given = v.member("default")) {
      if (attr.required) return given->fail("a required attribute has no default");
      KILN_ASSIGN(attr.fallback, json::read_attr(*given, attr.kind, attr.is_list));
    } else if (!attr.required) {
      return v.fail("an attribute that is not required needs a default");
    }
    op_.attrs.push_back(std::move(attr));
    return {};
  }

  static Result<std::pair<double, double>> range_in(const View &v) {
    KILN_ASSIGN(const std::vector<View> ends, v.as_list());
    if (ends.size() != 2 || !ends[0].is_number() || !ends[1].is_number() || !(ends[0].number() < ends[1].number()))
      return v.expected("two numbers, the first below the second");
    return std::pair(ends[0].number(), ends[1].number());
  }

  Status read_sample(const View &v) {
    KILN_TRY(v.allow_members({"name", "inputs", "attrs", "sizes", "range", "integer_range", "tolerance"}));
    Sample sample;
    KILN_ASSIGN(const std::string_view name, name_in(v));
    sample.name = name;
    KILN_ASSIGN(const View inputs, v.required("inputs"));
    KILN_ASSIGN(const std::vector<View> types, inputs.as_list());
    for (const View &type : types) {
      KILN_ASSIGN(sample.inputs.emplace_back(), json::read_type(type));
    }
    if (const std::optional<View> attrs = v.member("attrs")) {
      KILN_ASSIGN(const std::vector<View> members, attrs->as_object());
      for (const View &member : members) {
        const AttrDef *def = op_.find_attr(member.key());
        if (!def) return attrs->fail(Code::unknown_name, "the op has no attribute '", member.key(), "'");
        KILN_ASSIGN(AttrValue value, json::read_attr(member, def->kind, def->is_list));
        sample.attrs.insert_or_assign(std::string(member.key()), std::move(value));
      }
    }
    AttrMap all_attrs = sample.attrs;
    for (const Status &fits : {check_operands(op_, sample.inputs), complete_attrs(op_, all_attrs)})
      if (!fits.ok()) return v.fail(fits.code(), fits.message());
    if (const std::optional<View> sizes = v.member("sizes")) {
      KILN_ASSIGN(const std::vector<View> members, sizes->as_object());
      for (const View &member : members) {
        KILN_ASSIGN(sample.sizes[std::string(member.key())], member.as_integer());
      }
    }
    std::set<std::string> symbols;
    for (const TensorType &type : sample.inputs)
      for (const Dim &dim : type.dims) dim.collect_symbols(symbols);
    for (const std::string &symbol : symbols)
      if (!sample.sizes.contains(symbol))
        return v.fail(Code::invalid_argument, "its inputs have symbol '", symbol,
                      "', of which 'sizes' does not tell the size");
    if (const std::optional<View> range = v.member("range")) {
      KILN_ASSIGN(const auto ends, range_in(*range));
      std::tie(sample.low, sample.high) = ends;
    }
    if (const std::optional<View> range = v.member("integer_range")) {
      KILN_ASSIGN(const auto ends, range_in(*range));
      sample.int_low = static_cast<int64_t>(ends.first);
      sample.int_high = static_cast<int64_t>(ends.second);
    }
    if (const std::optional<View> tolerance = v.member("tolerance")) {
      if (!tolerance->is_number() || !(tolerance->number() >= 0)) return tolerance->expected("a number, 0 or above");
      sample.tolerance = tolerance->number();
    }
    op_.own_samples.push_back(std::move(sample));
    return {};
  }

  RegisteredOp &op_;
};

}  // namespace

Result<std::unique_ptr<RegisteredOp>> read_schema(std::string_view text) {
  KILN_TRY(scan_json(text));
  KILN_ASSIGN(const json::Document document, json::parse(text));
  auto op = std::make_unique<RegisteredOp>();
  KILN_TRY(Reader(*op).read(View(document.get(), "")));
  return op;
}

}  // namespace kiln
