// What ops, functions and backends of hosts and plugins are told apart by, as their structs say it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "abi/src/entry.h"
#include "jit/base/hash.h"

namespace kiln::abi {

struct GivenIdentity {
  std::string_view what;           // "op": messages speak of op->uuid
  std::string_view suffices_flag;  // "KILN_OP_UUID_SUFFICES"
  const uint8_t *uuid;             // null: it has none
  bool uuid_suffices;
};
// Refuses a flag without effect, a UUID of zeros, and one that would stand for a file where there is none.
Status check_identity(const Checks &check, const GivenIdentity &given, bool has_file);
// What follows the version in an identity: ", uuid 5c01…, file 09ab…", or that there is no UUID. `file`: of its code.
std::string identity_text(const GivenIdentity &given, const std::optional<Digest> &file);

}  // namespace kiln::abi
