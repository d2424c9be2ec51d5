#include "abi/src/entry.h"

#include "jit/base/utf8.h"

namespace kiln::abi {

namespace {

constexpr uint32_t max_request_bytes = 4096;  // no struct of any version comes near it: a larger size is garbage

}  // namespace

Acting &Acting::here() {
  thread_local Acting acting;
  return acting;
}

Status Checks::no_stack() const {
  return error(Code::out_of_memory, function_,
               ": this thread has less than 512 KiB of stack left, and there is no other");
}

Result<std::string_view> Checks::text(const char *data, uint64_t size, const char *name) const {
  if (!data && size) return fail(name, " is NULL, its size is ", size);
  const std::string_view text(data ? data : "", size);
  for (size_t at = 0; at < text.size();) {
    const size_t length = text[at] ? utf8_sequence(text.substr(at)) : 0;
    if (!length) return fail(name, " is not UTF-8 text, at byte ", at);
    at += length;
  }
  return text;
}

Result<std::string_view> Checks::line(const char *data, uint64_t size, const char *name) const {
  KILN_ASSIGN(const std::string_view text, this->text(data, size, name));
  if (std::string shown = printable(text, SIZE_MAX); shown != text)
    return fail(name, " '", printable(text), "' has control characters");
  return text;
}

Result<std::string> Checks::path(const char *data, uint64_t size, const char *name) const {
  if (!data || !size) return fail(name, " is empty");
  std::string path(data, size);
  if (path.find('\0') != std::string::npos) return fail(name, " has a NUL byte inside");
  return path;
}

Status Checks::copy_request(const void *in, uint32_t in_size, void *out, size_t out_size, const char *name) const {
  if (in_size < 2 * sizeof(uint32_t) || in_size > max_request_bytes)
    return fail(name, "->struct_size is ", in_size, "; set it to the struct's size, ", out_size);
  std::memcpy(out, in, std::min<size_t>(in_size, out_size));
  const auto *bytes = static_cast<const unsigned char *>(in);
  for (size_t i = out_size; i < in_size; i++) {
    if (bytes[i]) return fail(name, " sets a field that this version does not know (byte ", i, " of ", in_size, ")");
  }
  return {};
}

}  // namespace kiln::abi
