#include "runtime/backends/registered.h"

#include <algorithm>

#include "jit/base/hash.h"

namespace kiln {

Result<std::string> Backend::whole_identity() const {
  {
    const std::lock_guard lock(mutex_);
    if (!whole_.empty()) return whole_;
  }
  KILN_ASSIGN(const Bytes target, functions->target());  // with no lock held
  const std::lock_guard lock(mutex_);
  if (whole_.empty()) whole_ = target.empty() ? identity : str_cat(identity, ", target ", digest_of(target).hex());
  return whole_;
}

const BackendTable &no_backends() {
  static const BackendTable none;
  return none;
}

BackendPtr BackendTable::find(std::string_view name) const {
  const BackendPtr *const found = backends_.find(name);
  return found ? *found : nullptr;
}

std::string BackendTable::identity(std::string_view name) const {
  const BackendPtr backend = find(name);
  if (!backend) return "";
  const Result<std::string> whole = backend->whole_identity();
  return whole.ok() ? *whole : str_cat(backend->identity, ", whose target failed: ", whole.status().message());
}

bool BackendTable::all_for_any_thread() const {
  return std::ranges::all_of(backends_, [](const auto &b) { return b.second.value->any_thread; });
}

Status BackendTable::add(uint64_t id, BackendPtr backend) {
  if (backends_.add(id, backend->name, backend)) return {};
  return invalid("backend '", backend->name, "': the name is taken by another backend already");
}

Status BackendTable::remove(uint64_t id) {
  return backends_.remove(id) ? Status() : error(Code::out_of_range, "no backend has id ", id);
}

void BackendTable::write_report(JsonWriter &json) const {
  json.key("backends").begin_list();
  for (const auto &[name, known] : backends_) {
    const Backend &backend = *known.value;
    json.begin_object().member("name", name).member("plugin", backend.plugin).member("version", backend.version);
    json.member("identity", backend.identity).key("options").begin_list();
    for (const auto &[option, value] : backend.options) {
      json.begin_object().member("name", option).member("kind", name_of(value.kind()));
      json.member("list", value.is_list).member("default", value.text()).end_object();
    }
    json.end_list().end_object();
  }
  json.end_list();
}

AttrMap ChosenBackend::options_with(const AttrMap &of_region, Rounding rounding) const {
  AttrMap all = of_region;
  all.insert(options.begin(), options.end());
  all.emplace("kiln.rounding", AttrValue(std::string(name_of(rounding))));
  return all;
}

Status check_option(const Backend &backend, std::string_view what, std::string_view name, const AttrValue &value) {
  const auto known = backend.options.find(name);
  if (known == backend.options.end())
    return error(Code::unknown_name, what, ": backend '", backend.name, "' has no option '", name, "'; it has ",
                 backend.options.empty() ? "none" : join(backend.options, ", ", [](const auto &o) { return o.first; }));
  if (known->second.kind() != value.kind() || known->second.is_list != value.is_list)
    return error(Code::type_mismatch, what, " is of kind ", name_of(known->second.kind()),
                 known->second.is_list ? "[]" : "", ", not ", name_of(value.kind()), value.is_list ? "[]" : "");
  return {};
}

Result<ChosenBackends> choose_backends(const BackendTable &table, const std::set<std::string> &names,
                                       const AttrMap &options) {
  ChosenBackends chosen;
  for (const std::string &name : names) {
    const BackendPtr backend = table.find(name);
    if (!backend) return error(Code::unknown_name, "no backend is named '", name, "'", table.known());
    chosen[name] = {backend, backend->options};
  }
  for (const auto &[full, value] : options) {
    const std::string_view rest = std::string_view(full).substr(std::string_view("backend.").size());
    const std::string_view name = rest.substr(0, rest.find('.'));
    const BackendPtr backend = table.find(name);
    if (!backend)
      return error(Code::unknown_name, "option '", full, "': no backend is named '", name, "'", table.known());
    const std::string_view option = rest.substr(std::min(rest.size(), name.size() + 1));
    KILN_TRY(check_option(*backend, str_cat("option '", full, "'"), option, value));
    if (const auto at = chosen.find(name); at != chosen.end()) at->second.options.find(option)->second = value;
  }
  return chosen;
}

}  // namespace kiln
