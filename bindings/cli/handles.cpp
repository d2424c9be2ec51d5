#include "handles.h"

#include <cinttypes>
#include <cstdio>

namespace kiln::cli {
namespace {

std::string described(const kiln_error *error) {
  kiln_text message = {};
  kiln_error_message(error, &message);
  std::string text(view(message));
  if (const kiln_error *cause = kiln_error_cause(error)) {
    const std::string below = described(cause);
    if (!text.ends_with(below)) text += ": " + below;  // Kiln's own messages have their cause in them
  }
  return text;
}

bool succeeded(kiln_error *error) {
  kiln_error_destroy(error);
  return error == nullptr;
}

}  // namespace

void check(kiln_error *error) {
  if (!error) return;
  const Handle<kiln_error, kiln_error_destroy> owned(error);
  throw Failure(described(error), kiln_error_code(error));
}

std::string_view view(const Blob &blob) {
  uint64_t size = 0;
  const void *data = kiln_blob_data(blob.get(), &size);
  return {static_cast<const char *>(data), size};
}

Options::Options() {
  kiln_options *options = nullptr;
  check(kiln_options_create(&options));
  handle_.reset(options);
}

void Options::set(std::string_view name, int64_t value) {
  check(kiln_options_set_i64(handle_.get(), name.data(), name.size(), value));
}

void Options::set(std::string_view name, bool value) {
  check(kiln_options_set_bool(handle_.get(), name.data(), name.size(), value));
}

void Options::set(std::string_view name, std::string_view value) {
  check(kiln_options_set_text(handle_.get(), name.data(), name.size(), value.data(), value.size()));
}

void Options::set(std::string_view name, const std::vector<std::string> &values) {
  std::vector<kiln_text> texts;
  for (const std::string &value : values) texts.push_back({value.data(), value.size()});
  kiln_attr attr = {};
  attr.name = name.data();
  attr.name_size = name.size();
  attr.kind = KILN_ATTR_TEXT | KILN_ATTR_LIST;
  attr.count = texts.size();
  attr.data = texts.data();
  check(kiln_options_set(handle_.get(), &attr));
}

std::string Report::text(std::string_view path) const {
  kiln_text value = {};
  check(kiln_report_get_text(handle_.get(), path.data(), path.size(), &value));
  return std::string(view(value));
}

int64_t Report::i64(std::string_view path) const {
  int64_t value = 0;
  check(kiln_report_get_i64(handle_.get(), path.data(), path.size(), &value));
  return value;
}

double Report::f64(std::string_view path) const {
  double value = 0;
  check(kiln_report_get_f64(handle_.get(), path.data(), path.size(), &value));
  return value;
}

bool Report::boolean(std::string_view path) const {
  uint32_t value = 0;
  check(kiln_report_get_bool(handle_.get(), path.data(), path.size(), &value));
  return value != 0;
}

bool Report::has(std::string_view path) const {
  kiln_text value = {};
  uint64_t elements = 0;
  int64_t number = 0;
  return succeeded(kiln_report_get_i64(handle_.get(), path.data(), path.size(), &number)) ||
         succeeded(kiln_report_get_text(handle_.get(), path.data(), path.size(), &value)) ||
         succeeded(kiln_report_count(handle_.get(), path.data(), path.size(), &elements));
}

bool Report::has_member(std::string_view path, std::string_view key) const {
  for (size_t i = 0; i < count(path); ++i)
    if (this->key(path, i) == key) return true;
  return false;
}

size_t Report::count(std::string_view path) const {
  uint64_t value = 0;
  check(kiln_report_count(handle_.get(), path.data(), path.size(), &value));
  return value;
}

std::string Report::key(std::string_view path, size_t index) const {
  kiln_text value = {};
  check(kiln_report_key(handle_.get(), path.data(), path.size(), index, &value));
  return std::string(view(value));
}

std::string Report::shown(std::string_view path) const {
  int64_t integer = 0;
  if (succeeded(kiln_report_get_i64(handle_.get(), path.data(), path.size(), &integer))) return std::to_string(integer);
  double number = 0;
  if (succeeded(kiln_report_get_f64(handle_.get(), path.data(), path.size(), &number))) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%g", number);
    return buffer;
  }
  uint32_t boolean = 0;
  if (succeeded(kiln_report_get_bool(handle_.get(), path.data(), path.size(), &boolean)))
    return boolean ? "true" : "false";
  return text(path);
}

std::string Report::json() const { return std::string(view(make<Blob>(kiln_report_json, handle_.get()))); }

void bind_all(const Call &call, const Tensors &file) {
  for (uint64_t i = 0; i < kiln_tensors_count(file.get()); ++i) {
    kiln_text name = {};
    const DLTensor *tensor = nullptr;
    uint32_t slot = 0;
    check(kiln_tensors_at(file.get(), i, &name, &tensor));
    check(kiln_call_slot(call.get(), name.data, name.size, &slot));
    check(kiln_call_bind(call.get(), slot, tensor));
  }
}

std::string path_of(std::string_view list, size_t index, std::string_view member) {
  std::string path = std::string(list) + "." + std::to_string(index);
  if (!member.empty()) path.append(".").append(member);
  return path;
}

}  // namespace kiln::cli
