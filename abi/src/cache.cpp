// The cache's upkeep.
#include "abi/src/options.h"
#include "jit/base/json_writer.h"

namespace {

using namespace kiln;

Status list(Cache &cache, JsonWriter &json) {
  KILN_ASSIGN(const std::vector<Cache::Entry> entries, cache.list());
  json.key("entries").begin_list();
  for (const Cache::Entry &entry : entries) {
    json.begin_object().member("path", entry.path).member("kind", entry.kind).member("key", entry.key);
    json.member("bytes", entry.size_bytes).member("modified", entry.modified_seconds).end_object();
  }
  json.end_list();
  return {};
}

Status count(Cache &cache, JsonWriter &json) {
  KILN_ASSIGN(const std::vector<Cache::Entry> entries, cache.list());
  struct Sum {
    uint64_t entries = 0, bytes = 0;
  } prepared, others;
  for (const Cache::Entry &entry : entries) {
    Sum &sum = entry.kind == "prepared" ? prepared : others;
    ++sum.entries;
    sum.bytes += entry.size_bytes;
  }
  json.member("dir", cache.dir()).member("entries", others.entries).member("bytes", others.bytes);
  json.member("max_bytes", cache.max_bytes());
  json.key("prepared").begin_object().member("entries", prepared.entries).member("bytes", prepared.bytes);
  json.member("max_bytes", cache.prepared().max_bytes()).end_object();
  return {};
}

Status clear(Cache &cache, JsonWriter &json) {
  KILN_ASSIGN(const uint64_t removed, cache.clear());
  json.member("removed", removed);
  return {};
}

Status check_records(Cache &cache, JsonWriter &json) {
  KILN_ASSIGN(const std::vector<Cache::Entry> entries, cache.list());
  KILN_ASSIGN(const std::vector<Cache::Problem> problems, cache.verify());
  json.member("entries", entries.size()).key("problems").begin_list();
  for (const Cache::Problem &problem : problems)
    json.begin_object().member("path", problem.path).member("what", problem.what).end_object();
  json.end_list();
  return {};
}

struct Verb {
  std::string_view name;
  Status (*run)(Cache &, JsonWriter &);
};
constexpr Verb verbs[] = {{"ls", list}, {"stats", count}, {"clear", clear}, {"verify", check_records}};

}  // namespace

using namespace kiln::abi;

kiln_error *kiln_cache_command(kiln_context *context, const char *verb, uint64_t verb_size, const kiln_options *options,
                               kiln_report **out) {
  return deep_entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_ASSIGN(const std::string_view wanted, check.text(verb, verb_size, "verb"));
    KILN_TRY(check.optional_handle(options, "options"));
    KILN_TRY(no_options("cache", options));
    KILN_TRY(check.pointer(out, "out"));
    Cache *cache = context->context.cache();
    if (const std::string &refusal = context->context.cache_refusal(); !refusal.empty())
      return error(Code::io, refusal);
    if (!cache) return invalid("the context's cache is off");
    for (const Verb &known : verbs) {
      if (known.name != wanted) continue;
      JsonWriter json;
      json.begin_object();
      KILN_TRY(known.run(*cache, json));
      json.end_object();
      *out = make_report(json.text()).release();
      return {};
    }
    return error(Code::unknown_name, "the cache has no command '", wanted, "'; it has: ls, stats, clear, verify");
  });
}
