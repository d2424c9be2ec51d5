#include "abi/src/identity.h"

#include <algorithm>

#include "runtime/report/pass_report.h"

namespace kiln::abi {

Status check_identity(const Checks &check, const GivenIdentity &given, bool has_file) {
  const auto &[what, suffices_flag, uuid, uuid_suffices] = given;
  if (uuid_suffices && !uuid)
    return check.fail(what, "->flags: ", suffices_flag, " has no effect without ", what, "->uuid");
  if (!uuid) return {};
  if (std::all_of(uuid, uuid + sizeof(Uuid), [](uint8_t byte) { return byte == 0; }))
    return check.fail(what, "->uuid is all zero");
  if (!uuid_suffices && !has_file)
    return check.fail(what, "->uuid is given, and there is no file to hash: set ", suffices_flag, ", or give no UUID");
  return {};
}

std::string identity_text(const GivenIdentity &given, const std::optional<Digest> &file) {
  if (!given.uuid) return ", without a UUID";
  Uuid uuid;
  std::copy_n(given.uuid, uuid.size(), uuid.begin());
  std::string text = str_cat(", uuid ", text_of(uuid));
  if (file && !given.uuid_suffices) str_append(text, str_cat(", file ", file->hex()));
  return text;
}

}  // namespace kiln::abi
