#include "jit/base/json_writer.h"
#include "runtime/compile_options.h"
#include "runtime/context_options.h"
#include "runtime/report/describe.h"

namespace kiln {
namespace {

template <class Options>
void write_rows(std::string_view what, std::span<const OptionRow<Options>> rows, bool (*of_regions)(std::string_view),
                JsonWriter &json) {
  json.key(what).begin_list();
  for (const auto &row : rows) {
    const AttrValue fallback = row.get(Options());
    json.begin_object().member("name", row.name).member("kind", name_of(fallback.kind()));
    json.member("list", fallback.is_list).member("default", fallback.text());
    json.member("keyed", row.unkeyed.empty()).member("unkeyed", row.unkeyed);
    json.member("of_regions", of_regions(row.name));
    json.member("doc", row.doc).end_object();
  }
  json.end_list();
}

}  // namespace

std::string describe_options() {
  JsonWriter json;
  json.begin_object();
  write_rows("context", context_option_rows(), [](std::string_view) { return false; }, json);
  write_rows("compile", compile_option_rows(), is_of_regions, json);
  json.end_object();
  return json.take();
}

}  // namespace kiln
