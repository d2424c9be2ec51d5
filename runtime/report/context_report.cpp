#include "runtime/context.h"
#include "runtime/report/pass_report.h"

namespace kiln {

std::string Context::report() const {
  std::lock_guard lock(mutex_);
  JsonWriter json;
  json.begin_object().member("threads", pool_->threads());
  json.key("cache");
  if (cache_) {
    json.begin_object().member("dir", cache_->dir()).member("max_bytes", cache_->max_bytes());
    json.member("io_errors", cache_->io_errors()).member("saves", cache_->saves());
    json.member("failed_saves", background_.failures());
    const PreparedRecords &prepared = cache_->prepared();
    json.key("prepared").begin_object().member("dir", prepared.dir()).member("max_bytes", prepared.max_bytes());
    json.member("hits", prepared.hits()).member("misses", prepared.misses()).member("rejects", prepared.rejects());
    json.member("saves", prepared.saves()).member("verified", prepared.verified());
    json.member("io_errors", prepared.io_errors()).end_object().end_object();
  } else {
    json.value("off");
  }
  json.key("compiles").begin_object().member("hits", compiles_.hits).member("misses", compiles_.misses);
  json.member("bypasses", compiles_.bypasses).member("rejects", compiles_.rejects).member("failed", compiles_.failed);
  json.member("kernels_compiled", compiles_.kernels_compiled);
  json.member("kernels_from_cache", compiles_.kernels_from_cache).end_object();
  json.key("passes_run").begin_object().member("rewrote", passes_run_.rewrote);
  json.member("unchanged", passes_run_.unchanged).member("threw", passes_run_.threw);
  json.member("errors", passes_run_.errors).member("over_budget", passes_run_.over_budget);
  json.member("not_done", passes_run_.not_done).member("invariants", passes_run_.invariants);
  json.member("skipped", passes_run_.skipped).end_object();
  json.key("passes").begin_list();
  for (const auto &pass : passes_.all()) write_report(*pass, json);
  json.end_list().key("ops");
  ops_.write_report(json);
  functions_->write_report(json);
  backends_->write_report(json);
  json.key("plugins").begin_list();
  for (const LoadedPlugin &plugin : plugins_) {
    json.begin_object().member("name", plugin.name).member("path", plugin.path);
    json.member("digest", plugin.digest.hex()).end_object();
  }
  json.end_list().key("facts").begin_object();
  for (const auto &[name, value] : *facts_) json.member(name, value.text());
  json.end_object().key("handles").begin_object().member("live", live_.total());
  json.member("graphs", live_.graphs.load()).member("edits", live_.edits.load());
  json.member("executables", live_.executables.load()).member("calls", live_.calls.load());
  json.end_object().end_object();
  return json.take();
}

}  // namespace kiln
