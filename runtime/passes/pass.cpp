#include "runtime/passes/pass.h"

namespace kiln {

std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::pre_grad:
      return "pre_grad";
    case Stage::post_grad:
      return "post_grad";
    case Stage::lower:
      return "lower";
  }
  return "unknown";
}

void write_value(const AttrValue &value, ByteWriter &out) {
  out.put(static_cast<uint8_t>(value.kind()));
  out.put(static_cast<uint8_t>(value.is_list));
  out.put<uint64_t>(value.size());
  // Texts one by one, so that ["a, b"] and ["a", "b"] differ; of other kinds the printed form is unambiguous.
  if (const auto *texts = std::get_if<std::vector<std::string>>(&value.items)) {
    for (const std::string &text : *texts) out.text(text);
  } else {
    out.text(value.text());
  }
}

std::string described(const Pass &pass) {
  if (pass.built_in()) return str_cat("pass '", pass.name, "'");
  return str_cat("pass '", pass.name, "' of ", pass.plugin);
}

Status blame(const Pass &pass, Code code, std::string_view message, std::shared_ptr<const ErrorInfo> cause) {
  auto info = std::make_shared<ErrorInfo>();
  info->code = code;
  info->message = str_cat(described(pass), ": ", message);
  info->plugin = pass.plugin;
  info->cause = std::move(cause);
  return Status(std::move(info));
}

Status blame_failure(const Pass &pass, std::string_view what, const Status &failure) {
  const Code code = failure.code() == Code::out_of_memory ? Code::out_of_memory : Code::plugin_failed;
  return blame(pass, code, str_cat(what, ": ", failure.message()), failure.info());
}

Status write_identity(const Pass &pass, uint64_t position, Fingerprint &fingerprint) {
  ByteWriter &out = fingerprint.key;
  out.text(pass.name);
  out.text(pass.label);
  out.text(pass.version);
  out.put(static_cast<uint8_t>(pass.stage));
  out.put(static_cast<uint8_t>(pass.early()));
  out.put(static_cast<uint8_t>(pass.top_only));
  out.put(pass.priority);
  out.put(position);
  out.put(static_cast<uint8_t>(pass.uuid.has_value()));
  if (pass.uuid) out.raw(*pass.uuid);
  out.put(static_cast<uint8_t>(pass.file.has_value()));
  if (pass.file) out.raw(pass.file->bytes);
  out.put<uint64_t>(pass.options.size());
  for (const auto &[name, value] : pass.options) {
    out.text(name);
    write_value(value, out);
  }
  if (pass.patterns) {
    out.text("patterns");
    out.raw(pass.patterns->digest.bytes);
  }
  if (!pass.fingerprint) return {};
  const Status status = pass.fingerprint(fingerprint);
  if (status.ok()) return {};
  return blame_failure(pass, "its fingerprint failed", status);
}

}  // namespace kiln
