#include "runtime/report/pass_report.h"

namespace kiln {
// "01234567-89ab-cdef-0123-456789abcdef".
std::string text_of(const Uuid &uuid) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < uuid.size(); i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex[uuid[i] >> 4];
    text += hex[uuid[i] & 15];
  }
  return text;
}

void write_report(const Pass &pass, JsonWriter &json, bool in_full) {
  json.begin_object().member("name", pass.name).member("plugin", pass.plugin).member("stage", name_of(pass.stage));
  json.member("timing", pass.early() ? "early" : "late").member("priority", pass.priority);
  json.member("version", pass.version);
  if (!pass.label.empty()) json.member("label", pass.label);
  if (pass.numerics) json.member("numerics", true);
  if (pass.top_only) json.member("top_only", true);
  if (pass.uuid) json.member("uuid", text_of(*pass.uuid));
  json.member("identity", pass.built_in() ? "build" : !pass.uuid ? "none" : pass.file ? "uuid and file" : "uuid");
  json.key("options").begin_object();
  for (const auto &[name, value] : pass.options) json.member(name, value.text());
  json.end_object().key("option_kinds").begin_list();
  for (const auto &[name, value] : pass.options)
    json.begin_object().member("name", name).member("kind", name_of(value.kind())).end_object();
  json.end_list();
  if (in_full && pass.patterns) {
    json.key("patterns").begin_list();
    for (const std::string &text : pass.patterns->texts) json.raw(text);
    json.end_list();
  }
  json.end_object();
}

}  // namespace kiln
