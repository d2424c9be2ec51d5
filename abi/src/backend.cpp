// Backends of hosts and plugins: a kiln_backend as a Backend, and what its functions call.
#include "runtime/backends/backend.h"
#include "abi/src/convert.h"
#include "abi/src/identity.h"
#include "abi/src/options.h"
#include "abi/src/pass.h"
#include "abi/src/passing.h"
#include "abi/src/run_tensors.h"
#include "runtime/backends/registered.h"

namespace kiln::abi {
namespace {

using BackendCall = Passing<kiln_backend_call>;

// What was registered. Whoever may call it holds a share; the last one to go runs its destroy.
struct Registration {
  kiln_backend def;
  std::string name, plugin_name;
  std::weak_ptr<Context> context;
  std::shared_ptr<PluginInContext> plugin;  // whose code runs; null: the host's
  mutable bool owned = false;               // once it is registered

  Registration(const kiln_backend &in, std::string called, const Context &where, std::shared_ptr<PluginInContext> of)
      : def(in),
        name(std::move(called)),
        plugin_name(of ? of->library.name : ""),
        context(const_cast<Context &>(where).weak_from_this()),
        plugin(std::move(of)) {}
  Registration(const Registration &) = delete;
  Registration &operator=(const Registration &) = delete;
  ~Registration() {
    if (owned && def.destroy) end("destroy", [this] { def.destroy(def.user); });
  }

  Status call(const std::function<kiln_error *()> &callback) const {
    Status status = call_back(callback);
    if (status.ok()) return status;
    if (status.info()->plugin.empty()) status.info()->plugin = plugin_name;
    return std::move(status).with_prefix(str_cat("backend '", name, "': "));
  }
  Status failed(std::string text) const {
    return call([&] { return to_error(error(Code::plugin_failed, std::move(text))); });
  }
  // Runs what ends something that it made.
  void end(std::string_view what, const std::function<void()> &callback) const {
    std::string thrown = thrown_by(callback, str_cat(what, " of backend '", name, "'"));
    if (thrown.empty()) return;
    if (const auto alive = context.lock()) alive->add_end_failure(std::move(thrown));
  }
};
using RegistrationPtr = std::shared_ptr<const Registration>;

class RegisteredRun final : public BackendRun {
 public:
  RegisteredRun(RegistrationPtr registered, std::shared_ptr<const BackendProgram> keep, void *program, void *state)
      : registered_(std::move(registered)), keep_(std::move(keep)), program_(program), state_(state) {}
  ~RegisteredRun() override {
    const kiln_backend &def = registered_->def;
    if (state_ && def.close) registered_->end("close", [&] { def.close(def.user, state_); });
  }
  void resize(std::span<const RunArray> arrays) override { tensors_.resize(arrays); }
  Status run(std::span<void *const> data, void *prepared) override {
    tensors_.place(data);
    return registered_->call([this, prepared] {
      static constexpr kiln_run_options options{.struct_size = sizeof options, .flags = 0, .stream = 0};
      const kiln_backend &def = registered_->def;
      return def.run(def.user, program_, prepared, state_, tensors_.data(), tensors_.size(), &options);
    });
  }

 private:
  const RegistrationPtr registered_;
  const std::shared_ptr<const BackendProgram> keep_;
  void *const program_, *const state_;
  RunTensors tensors_;
};

class Program final : public BackendProgram {
 public:
  Program(RegistrationPtr registered, std::shared_ptr<const Bytes> blob)
      : registered_(std::move(registered)), blob_(std::move(blob)) {}
  ~Program() override {
    const kiln_backend &def = registered_->def;
    if (loaded_ && def.unload) registered_->end("unload", [&] { def.unload(def.user, program_); });
  }
  Status load() {
    const kiln_backend &def = registered_->def;
    KILN_TRY(registered_->call([&] { return def.load(def.user, blob_->data(), blob_->size(), &program_); }));
    loaded_ = true;
    return {};
  }
  bool prepares() const override { return registered_->def.prepare != nullptr; }
  Result<std::shared_ptr<void>> prepare(std::span<const RunArray> parameters,
                                        std::span<void *const> data) const override {
    const kiln_backend &def = registered_->def;
    RunTensors tensors(parameters);
    tensors.place(data);
    void *made = nullptr;
    KILN_TRY(registered_->call([&] { return def.prepare(def.user, program_, tensors.data(), tensors.size(), &made); }));
    return std::shared_ptr<void>(made, [registered = registered_, keep = shared_from_this()](void *prepared) {
      const kiln_backend &of = registered->def;
      if (prepared && of.release) registered->end("release", [&] { of.release(of.user, prepared); });
    });
  }
  Result<std::unique_ptr<BackendRun>> open() const override {
    const kiln_backend &def = registered_->def;
    void *state = nullptr;
    if (def.open) KILN_TRY(registered_->call([&] { return def.open(def.user, program_, &state); }));
    return std::unique_ptr<BackendRun>(
        std::make_unique<RegisteredRun>(registered_, shared_from_this(), program_, state));
  }

 private:
  const RegistrationPtr registered_;
  const std::shared_ptr<const Bytes> blob_;
  void *program_ = nullptr;
  bool loaded_ = false;
};

class RegisteredFunctions final : public BackendFunctions {
 public:
  explicit RegisteredFunctions(RegistrationPtr registered) : registered_(std::move(registered)) {}

  Result<Bytes> target() const override {
    Bytes key;
    if (!registered_->def.target) return key;
    KILN_TRY(ask(nullptr, nullptr, nullptr, [&](const kiln_backend &def, kiln_backend_call *call) {
      call->key = &key;
      return def.target(def.user, call);
    }));
    return key;
  }
  Result<std::optional<std::string>> refusal(const GraphPtr &graph, uint32_t node,
                                             const AttrMap &options) const override {
    uint32_t takes = 0;
    std::string why;
    KILN_TRY(ask(graph, &options, nullptr, [&](const kiln_backend &def, kiln_backend_call *call) {
      call->why = &why;
      return def.takes(def.user, call, &call->graph, node, &takes);
    }));
    if (takes > 1) return registered_->failed(str_cat("takes answered ", takes, ", expected 0 or 1"));
    if (takes == 1 && !why.empty())
      return registered_->failed(str_cat("takes answered 1, and why it does not take the node: ", why));
    if (takes == 1) return std::optional<std::string>();
    return std::optional(why.empty() ? "it says that it does not" : std::move(why));
  }
  Result<Bytes> compile(const GraphPtr &region, const AttrMap &options) const override {
    std::optional<Bytes> blob;
    KILN_TRY(ask(region, &options, &blob, [&](const kiln_backend &def, kiln_backend_call *call) {
      return def.compile(def.user, call, &call->graph);
    }));
    if (!blob) return registered_->failed("compile has given no bytes (kiln_backend_blob)");
    return std::move(*blob);
  }
  Result<std::shared_ptr<const BackendProgram>> load(std::shared_ptr<const Bytes> blob) const override {
    auto program = std::make_shared<Program>(registered_, std::move(blob));
    KILN_TRY(program->load());
    return std::shared_ptr<const BackendProgram>(std::move(program));
  }

 private:
  template <class Callback>
  Status ask(const GraphPtr &graph, const AttrMap *options, std::optional<Bytes> *blob,
             const Callback &callback) const {
    std::shared_ptr<Context> context = registered_->context.lock();
    if (!context) return error(Code::internal, "backend '", registered_->name, "' is asked without a context");
    const BackendCall call(std::move(context), graph, options, blob);
    return registered_->call([&] { return callback(registered_->def, call.get()); });
  }
  const RegistrationPtr registered_;
};

GivenIdentity given_identity(const kiln_backend &in) {
  return {"backend", "KILN_BACKEND_UUID_SUFFICES", in.uuid, (in.flags & KILN_BACKEND_UUID_SUFFICES) != 0};
}

Status check_struct(const Checks &check, const kiln_backend &in, bool of_plugin) {
  if (in.flags & ~(KILN_BACKEND_UUID_SUFFICES | KILN_BACKEND_ANY_THREAD | KILN_BACKEND_SYMBOLIC))
    return check.fail("backend->flags has unknown bits: ", in.flags);
  if (in.reserved0) return check.fail("backend->reserved0 is ", in.reserved0, ", expected 0");
  KILN_TRY(check_identity(check, given_identity(in), of_plugin));
  if (in.device_type != kDLCPU)
    return error(Code::unimplemented, check.function(), ": backend->device_type is ", in.device_type,
                 "; backends that are registered work in the host's memory, 1 (kDLCPU)");
  for (const auto &[given, name] :
       {std::pair(in.takes != nullptr, "takes"), std::pair(in.compile != nullptr, "compile"),
        std::pair(in.load != nullptr, "load"), std::pair(in.run != nullptr, "run")})
    if (!given) return check.fail("backend->", name, " is NULL");
  if (in.close && !in.open) return check.fail("backend->close has no effect without backend->open");
  if (in.release && !in.prepare) return check.fail("backend->release has no effect without backend->prepare");
  return {};
}

Result<std::string> name_of_backend(const Checks &check, const kiln_backend &in) {
  KILN_ASSIGN(const std::string_view name, check.text(in.name, in.name_size, "backend->name"));
  if (const std::string wrong = wrong_with_name(name); !wrong.empty()) return check.fail("backend->name ", wrong);
  if (name.find('.') != std::string_view::npos)
    return check.fail("backend->name '", name, "' has a dot, which ends it in names of options");
  if (find_backend(name).ok()) return check.fail("backend->name '", name, "' is that of one of Kiln's own");
  return std::string(name);
}

// Its `user` stays the caller's until the registration is owned.
Result<std::shared_ptr<Backend>> make_backend(const Checks &check, Context &context, const kiln_backend *given,
                                              std::shared_ptr<PluginInContext> plugin, RegistrationPtr &out) {
  KILN_ASSIGN(const kiln_backend in, check.request(given, "backend"));
  KILN_TRY(check_struct(check, in, plugin != nullptr));
  KILN_ASSIGN(std::string name, name_of_backend(check, in));
  KILN_ASSIGN(const std::string_view version, check.line(in.version, in.version_size, "backend->version"));
  auto backend = std::make_shared<Backend>();
  KILN_ASSIGN(backend->options, read_option_schema(check, context, "backend", in.options, in.option_count));
  for (const auto &[option, value] : backend->options)
    if (option.starts_with("kiln."))
      return check.fail("backend->options: '", option, "': names under kiln. are Kiln's");
  backend->name = name;
  backend->version = version;
  backend->identity = str_cat("version '", version, "'");
  if (plugin) str_append(backend->identity, str_cat(" of plugin ", plugin->library.name));
  const std::optional<Digest> file = plugin ? std::optional(plugin->library.identity()) : std::nullopt;
  str_append(backend->identity, identity_text(given_identity(in), file));
  backend->has_uuid = in.uuid != nullptr;
  backend->any_thread = in.flags & KILN_BACKEND_ANY_THREAD;
  backend->symbolic = in.flags & KILN_BACKEND_SYMBOLIC;
  if (plugin) backend->plugin = plugin->library.name;
  out = std::make_shared<Registration>(in, std::move(name), context, std::move(plugin));
  backend->functions = std::make_unique<RegisteredFunctions>(out);
  return backend;
}

}  // namespace

kiln_error *add_backend(kiln_context *context, const kiln_backend *backend) {
  return entry("add_backend", [&](const Checks &check) -> Status {
    KILN_ASSIGN(PluginInContext * plugin, plugin_in_setup(check, context, "backends"));
    RegistrationPtr registered;
    KILN_ASSIGN(std::shared_ptr<Backend> made,
                make_backend(check, context->context, backend, plugin->shared_from_this(), registered));
    plugin->backends.push_back(std::move(made));
    registered->owned = true;
    return {};
  });
}

}  // namespace kiln::abi

using namespace kiln;
using namespace kiln::abi;

kiln_error *kiln_backend_register(kiln_context *context, const kiln_backend *backend, uint64_t *out_id) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    RegistrationPtr registered;
    KILN_ASSIGN(std::shared_ptr<Backend> made, make_backend(check, context->context, backend, nullptr, registered));
    registered->owned = true;  // before another thread may find it
    const Result<uint64_t> id = context->context.add_backend(std::move(made));
    registered->owned = id.ok();
    KILN_TRY(id.status());
    if (out_id) *out_id = *id;
    return {};
  });
}

kiln_error *kiln_backend_unregister(kiln_context *context, uint64_t id) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(context, "context"));
    return context->context.remove_backend(id);
  });
}

kiln_context *kiln_backend_context(kiln_backend_call *call) {
  return call && call->magic.ok() && call->callback.is_here() ? &call->context : nullptr;
}

kiln_error *kiln_backend_option(kiln_backend_call *call, const char *name, uint64_t name_size, kiln_attr *out) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!call->options) return check.fail("target is asked for no compile, and has no options");
    return give_attr(check, *call->options, {name, name_size}, "the backend has no option", call->views,
                     share(&call->context), out);
  });
}

kiln_error *kiln_backend_key(kiln_backend_call *call, const void *bytes, uint64_t size) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!call->key) return check.fail("only target tells what a backend depends on");
    KILN_ASSIGN(const auto given, check.array(static_cast<const uint8_t *>(bytes), size, "bytes"));
    ByteWriter sized;  // so that two keys and one of both differ
    sized.blob(given);
    const Bytes added = sized.take();
    call->key->insert(call->key->end(), added.begin(), added.end());
    return {};
  });
}

kiln_error *kiln_backend_blob(kiln_backend_call *call, const void *bytes, uint64_t size) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!call->blob) return check.fail("only compile gives bytes");
    if (*call->blob) return check.fail("the region has its bytes already");
    KILN_ASSIGN(const auto given, check.array(static_cast<const uint8_t *>(bytes), size, "bytes"));
    if (given.empty()) return check.fail("size is 0; a region has one byte at least");
    call->blob->emplace(given.begin(), given.end());
    return {};
  });
}

kiln_error *kiln_backend_refuse(kiln_backend_call *call, const char *why, uint64_t why_size) {
  return entry(__func__, [&](const Checks &check) -> Status {
    KILN_TRY(check.handle(call, "call"));
    if (!call->why) return check.fail("only takes tells why it does not take a node");
    KILN_ASSIGN(const std::string_view given, check.line(why, why_size, "why"));
    if (given.empty()) return check.fail("why is empty");
    *call->why = given;
    return {};
  });
}
