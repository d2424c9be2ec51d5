// Whom the cache trusts: records hold code that is run, so nobody but this user and root may have written them.
// Internal to this folder.
#pragma once
#include <string>

struct stat;

namespace kiln {

// Why nothing may be read from the cache's folder, nor written there: the folder, or the way to it, can be changed by
// others. Empty: it is this user's (or root's) own, or is not there yet and would be. Whoever is in the group of a
// folder above it that the group may write is trusted.
std::string reason_to_distrust(const std::string &dir);

// The same of a file that is open. It begins with "it".
std::string reason_to_distrust(const struct stat &file);

}  // namespace kiln
