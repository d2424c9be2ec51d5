// Contexts, and what the library says of itself.
#include "abi/src/convert.h"
#include "abi/src/options.h"
#include "jit/base/build_id.h"
#include "jit/base/cpuid.h"
#include "jit/base/json_writer.h"

using namespace kiln;
using namespace kiln::abi;

namespace {

// The host's sink: its `user` is destroyed with the last copy, but only once the context owns it.
struct Sink {
  kiln_event_sink sink;
  bool owned = false;
  explicit Sink(const kiln_event_sink &given) : sink(given) {}
  Sink(const Sink &) = delete;
  Sink &operator=(const Sink &) = delete;
  ~Sink() {
    // The context closes, and nobody is left to be told what this throws.
    if (owned && sink.destroy) (void)thrown_by([&] { sink.destroy(sink.user); }, "");
  }
  bool operator()(Event event, std::string_view text) const {
    const InCallback in_callback;
    bool ends = true;
    std::string thrown =
        thrown_by([&] { ends = sink.event(sink.user, static_cast<uint32_t>(event), text.data(), text.size()) != 0; },
                  "sink->event of the host");
    if (!thrown.empty()) note_sink_failure(std::move(thrown));
    return ends;
  }
};

}  // namespace

uint32_t kiln_version(void) { return KILN_ABI_MAJOR << 16 | KILN_ABI_MINOR; }

kiln_error *kiln_build_report(kiln_report **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.pointer(out, "out"));
    JsonWriter json;
    json.begin_object().member("version", KILN_VERSION_TEXT);
    json.key("abi").begin_object().member("major", KILN_ABI_MAJOR).member("minor", KILN_ABI_MINOR).end_object();
    json.member("build_id", build_id_text).member("compiler", __VERSION__);
    const Caches caches = Caches::of_host();
    json.member("target", Target::host().name()).key("caches").begin_object();
    json.member("l1", caches.l1).member("l2", caches.l2).member("l3", caches.l3).end_object().end_object();
    *out = make_report(json.text()).release();
    return {};
  });
}

kiln_error *kiln_dtype_info(kiln_dtype dtype, kiln_text *out_name, uint32_t *out_bytes, uint32_t *out_dlpack) {
  return entry(__func__, [&](const Checks &) -> Status {
    if (dtype == 0 || dtype > static_cast<uint32_t>(last_dtype))
      return error(Code::out_of_range, "no dtype has number ", dtype);
    const DTypeInfo &info = dtype_info(static_cast<DType>(dtype));
    if (out_name) *out_name = text_view(info.name);
    if (out_bytes) *out_bytes = info.size_bytes;
    if (out_dlpack) *out_dlpack = uint32_t{info.dlpack_code} | uint32_t{info.dlpack_bits} << 8 | 1u << 16;
    return {};
  });
}

kiln_error *kiln_context_create(const kiln_options *options, const kiln_event_sink *sink, kiln_context **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.optional_handle(options, "options"));
    KILN_TRY(check.pointer(out, "out"));
    KILN_ASSIGN(const ContextOptions checked, context_options(options));
    std::shared_ptr<Sink> receiver;
    if (sink) {
      KILN_ASSIGN(const kiln_event_sink given, check.request(sink, "sink"));
      KILN_TRY(check.pointer(reinterpret_cast<const void *>(given.event), "sink->event"));
      if (given.kinds & ~all_events) return check.fail("sink->kinds has bits of no kind of event: ", given.kinds);
      receiver = std::make_shared<Sink>(given);
    }
    std::optional<EventSink> forward;
    if (receiver) {
      forward.emplace([receiver](Event event, std::string_view text) { return (*receiver)(event, text); });
      if (receiver->sink.kinds) forward->kinds = receiver->sink.kinds;
    }
    auto context = std::make_shared<Context>(checked, std::move(forward));
    *out = new kiln_context(context);
    if (receiver) receiver->owned = true;
    return {};
  });
}

kiln_error *kiln_fact_set(kiln_context *context, const kiln_attr *fact) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_TRY(check.pointer(fact, "fact"));
    KILN_ASSIGN(const std::string_view name, check.line(fact->name, fact->name_size, "fact->name"));
    constexpr std::string_view host = "host.";
    if (!name.starts_with(host) || name == host) return check.fail("fact->name is '", name, "', expected host.NAME");
    if (fact->kind == KILN_ATTR_NONE) return context->context.set_fact(std::string(name), std::nullopt);
    const uint32_t kind = fact->kind & ~KILN_ATTR_LIST;
    if (kind == KILN_ATTR_DIM || kind == KILN_ATTR_GRAPH || kind == KILN_ATTR_TENSOR)
      return check.fail("fact->kind: a fact's kind is i64, f64, text, dtype or bool, not number ", kind);
    KILN_ASSIGN(NamedAttr read, read_attr(check, nullptr, *fact));
    return context->context.set_fact(std::string(name), std::move(read.value));
  });
}

kiln_error *kiln_context_close(kiln_context *context) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    if (!context->owner) return check.fail("context is a view; only the host closes it");
    return share(context)->close();
  });
}

void kiln_context_destroy(kiln_context *context) {
  if (!context || !context->magic.ok() || !context->owner) return;
  answer(0, [&] {
    (void)context->context.let_go();
    return 0;
  });
  delete context;
}

kiln_error *kiln_context_report(kiln_context *context, kiln_report **out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    KILN_TRY(check.pointer(out, "out"));
    *out = make_report(context->context.report()).release();
    return {};
  });
}
