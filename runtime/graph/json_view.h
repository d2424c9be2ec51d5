// For json_values.h and who reads by it: a value of a parsed document with its path ("nodes[3].attrs.dim"), so that
// every error says where. Views live as long as the document.
#pragma once
#include <cjson/cJSON.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/status.h"

namespace kiln::json {

class View {
 public:
  View(const cJSON *item, std::string path, std::string_view op = {}) : item_(item), path_(std::move(path)), op_(op) {}
  // The same, with an op's name in brackets in the errors of it and of what it holds.
  View of_op(std::string_view op) const { return View(item_, path_, op); }

  bool is_text() const { return cJSON_IsString(item_); }
  bool is_number() const { return cJSON_IsNumber(item_); }
  bool is_boolean() const { return cJSON_IsBool(item_); }
  bool is_list() const { return cJSON_IsArray(item_); }
  bool is_object() const { return cJSON_IsObject(item_); }

  // Of the right kind: callers have checked.
  std::string_view text() const { return item_->valuestring; }
  double number() const { return item_->valuedouble; }
  bool boolean() const { return cJSON_IsTrue(item_); }

  Result<std::string_view> as_text() const;
  Result<int64_t> as_integer() const;  // a number without a fraction, or a string of a decimal integer
  Result<std::vector<View>> as_list() const;
  Result<std::vector<View>> as_object() const;  // its members; key() names each
  // Members by name; a member that is none of them is an error.
  Status allow_members(std::initializer_list<std::string_view> names) const;
  std::optional<View> member(std::string_view name) const;  // none of what is no object
  Result<View> required(std::string_view name) const;

  std::string_view key() const { return item_->string; }
  const cJSON *item() const { return item_; }
  const std::string &path() const { return path_; }

  template <class... Parts>
    requires(!std::same_as<Status, Parts> && ...)
  Status fail(const Parts &...parts) const {
    return fail(Code::invalid_argument, parts...);
  }
  template <class... Parts>
  Status fail(Code code, const Parts &...parts) const {
    return error(code, path_.empty() ? "at the top" : path_, ": ", in_brackets(), parts...);
  }
  // "expected WHAT, found 300"
  Status expected(std::string_view what) const;
  // An error of what was read here; that of the whole graph needs no place.
  Status fail(Status status) const {
    return path_.empty() ? status : std::move(status).with_prefix(str_cat(path_, ": ", in_brackets()));
  }

 private:
  std::string path_of(std::string_view member) const {
    return path_.empty() ? std::string(member) : str_cat(path_, ".", member);
  }
  std::string in_brackets() const { return op_.empty() ? std::string() : str_cat("[", op_, "] "); }
  const cJSON *item_;
  std::string path_;
  std::string_view op_;
};

struct Release {
  void operator()(cJSON *item) const { cJSON_Delete(item); }
};
using Document = std::unique_ptr<cJSON, Release>;

// After scan_json() has accepted it.
Result<Document> parse(std::string_view text);

}  // namespace kiln::json
