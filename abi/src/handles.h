// What is behind the opaque handles. Each begins with a magic word of its type, so that a handle of another type is
// refused, and one that was destroyed, too: destruction clears the word, and the memory is kept for a while.
#pragma once
#include <kiln/kiln.h>
#include <kiln/plugin.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "abi/src/acting.h"
#include "abi/src/kept.h"
#include "abi/src/views.h"
#include "jit/base/status.h"
#include "runtime/context.h"
#include "runtime/exec/executable.h"
#include "runtime/graph/edit.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/registered.h"
#include "runtime/passes/pass.h"

struct cJSON;

namespace kiln::abi {

// The first member of every handle.
template <uint64_t magic_word>
class Magic {
 public:
  Magic() = default;
  Magic(const Magic &) = delete;
  Magic &operator=(const Magic &) = delete;
  ~Magic() { word_.store(0, std::memory_order_relaxed); }  // atomic: a store to dying memory, meant to be seen
  bool ok() const { return word_.load(std::memory_order_relaxed) == magic_word; }

 private:
  std::atomic<uint64_t> word_ = magic_word;
};

// Eight letters as a word.
constexpr uint64_t word(const char (&letters)[9]) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | static_cast<unsigned char>(letters[i]);
  return value;
}

// Counts a handle among its context's, from its making to its end.
class Live {
 public:
  Live(std::shared_ptr<Context> context, std::atomic<int64_t> LiveCounts::*kind)
      : context_(std::move(context)), kind_(kind) {
    (context_->live().*kind_)++;
  }
  Live(const Live &) = delete;
  Live &operator=(const Live &) = delete;
  ~Live() { (context_->live().*kind_)--; }
  const std::shared_ptr<Context> &context() const { return context_; }

 private:
  std::shared_ptr<Context> context_;
  std::atomic<int64_t> LiveCounts::*kind_;
};

struct PluginInContext;

// What the patterns of a pass call, one each; null: they have a replacement.
struct PatternCalls {
  std::vector<kiln_error *(*)(void *user, kiln_pass_call *call)> rewrites = {};
  void *user = nullptr;
};
// The match that such a function is rewriting.
struct Match {
  const patterns::Pattern &pattern;
  const patterns::Place &place;
  std::vector<ValueId> by;  // none: it is left
};

}  // namespace kiln::abi

struct kiln_error {
  std::shared_ptr<kiln::ErrorInfo> info;  // null: the one static error, out of memory
  std::unique_ptr<kiln_report> report;
  bool is_cause = false;                              // another error's, as a view
  mutable std::atomic<kiln_error *> cause = nullptr;  // once it was asked for; its own

  // It has no magic word: callbacks return pointers of all sorts, which only a list of those that live tells apart
  // (is_error).
  static void *operator new(size_t bytes);
  static void operator delete(void *at) noexcept;
};

struct kiln_report : kiln::abi::Kept {
  kiln::abi::Magic<kiln::abi::word("kilnrep1")> magic;
  std::unique_ptr<cJSON, void (*)(cJSON *)> root;
  // The elements of long lists, which the tree holds as chains.
  std::unordered_map<const cJSON *, std::vector<const cJSON *>> elements = {};
  bool is_view = false;  // of an error, which it goes with
};

struct kiln_blob : kiln::abi::Kept {
  kiln::abi::Magic<kiln::abi::word("kilnblb1")> magic;
  std::string bytes;
};

struct kiln_options : kiln::abi::Kept {
  kiln::abi::Magic<kiln::abi::word("kilnopt1")> magic;
  kiln::AttrMap values;
};

struct kiln_context : kiln::abi::Kept {
  kiln::abi::Magic<kiln::abi::word("kilnctx1")> magic;
  kiln::Context &context;
  std::shared_ptr<kiln::Context> owner;              // null in the views that plugins and passes get
  kiln::abi::PluginInContext *setting_up = nullptr;  // set while the plugin's setup runs

  const kiln::OpTable *recorded = nullptr;  // in a running pass's: keeps what the pass asks for
  kiln::abi::Callback *callback = nullptr;  // which it is given to

  explicit kiln_context(kiln::Context &viewed) : context(viewed) {}
  explicit kiln_context(std::shared_ptr<kiln::Context> owned) : context(*owned), owner(std::move(owned)) {}
  const kiln::OpTable &ops() const { return recorded ? *recorded : context.ops(); }
};

struct kiln_graph : kiln::abi::Kept {
  kiln::abi::Magic<kiln::abi::word("kilngra1")> magic;
  std::shared_ptr<kiln::Context> context;
  kiln::GraphPtr graph;  // null: the view of `edit`
  const kiln::Edit *edit = nullptr;
  bool is_part = false;                     // the view of a pass's edit of a part of a graph (graph/verify_part.h)
  kiln::abi::Callback *callback = nullptr;  // whose edit it is the view of
  std::unique_ptr<kiln::abi::Live> live;    // none in views
  mutable kiln::abi::Views views;

  kiln_graph(std::shared_ptr<kiln::Context> in, kiln::GraphPtr of) : context(std::move(in)), graph(std::move(of)) {}
  kiln_graph(std::shared_ptr<kiln::Context> in, const kiln::Edit *of) : context(std::move(in)), edit(of) {}
  const kiln::Graph &get() const { return graph ? *graph : edit->view(); }
};

struct kiln_edit : kiln::abi::Kept {
  kiln::abi::Magic<kiln::abi::word("kilnedi1")> magic;
  std::shared_ptr<kiln::Context> context;
  std::unique_ptr<kiln::Edit> owned;  // null: a pass's
  kiln::Edit &edit;
  std::unique_ptr<kiln::abi::Live> live;
  kiln_graph view;
  bool is_part = false;                     // begun from such a view
  kiln::abi::Callback *callback = nullptr;  // whose it is
  std::atomic<bool> changing = false;

  kiln_edit(std::shared_ptr<kiln::Context> in, std::unique_ptr<kiln::Edit> own)
      : context(std::move(in)),
        owned(std::move(own)),
        edit(*owned),
        live(std::make_unique<kiln::abi::Live>(context, &kiln::LiveCounts::edits)),
        view(context, &edit) {}
  kiln_edit(std::shared_ptr<kiln::Context> in, kiln::Edit &host_owned, kiln::abi::Callback *of)
      : context(std::move(in)), edit(host_owned), view(context, &edit), callback(of) {
    view.callback = of;
  }
};

struct kiln_executable : kiln::abi::Kept {
  kiln::abi::Magic<kiln::abi::word("kilnexe1")> magic;
  kiln::abi::Live live;
  std::shared_ptr<const kiln::Executable> executable;
  std::vector<std::shared_ptr<const kiln::Executable>> joined;  // it, and those for other targets; empty: it alone
  std::vector<std::string> targets;                             // of all that it was joined or opened with; likewise
};

struct kiln_call : kiln::abi::Kept {
  kiln::abi::Magic<kiln::abi::word("kilncal1")> magic;
  kiln::abi::Live live;
  std::unique_ptr<kiln::Call> call;
  std::vector<kiln::ArrayRef> args;                   // of the run in progress; its memory is kept
  mutable std::map<uint32_t, DLTensor> outputs = {};  // that were asked for, by slot
};

struct kiln_pass_call {
  kiln::abi::Magic<kiln::abi::word("kilnpas1")> magic;
  kiln::abi::Callback callback;
  kiln_context context;
  const kiln::AttrMap &options;
  kiln::PassContext *pass = nullptr;                            // null inside fingerprint
  std::optional<kiln_edit> edit;                                // of pass
  kiln::Fingerprint *fingerprint = nullptr;                     // null inside run
  kiln::Questions *questions = nullptr;                         // null: nothing can be asked
  std::deque<std::optional<kiln::AttrValue>> own_answers = {};  // of this run alone
  const kiln::abi::PatternCalls *patterns = nullptr;
  kiln::abi::Match *match = nullptr;  // null outside of a rewrite of one
  kiln::abi::Views views;

  kiln_pass_call(kiln::Context &in, kiln::PassContext &running)
      : callback{.what = "pass", .pass = &running}, context(in), options(running.options), pass(&running) {
    context.recorded = &running.ops;
    context.callback = &callback;
    edit.emplace(in.shared_from_this(), running.edit, &callback);
    edit->view.is_part = running.is_part;
    if (running.host) questions = running.host->questions;
  }
  kiln_pass_call(kiln::Context &in, const kiln::AttrMap &given, kiln::Fingerprint &key)
      : callback{.what = "pass"}, context(in), options(given), fingerprint(&key), questions(key.questions) {
    context.callback = &callback;
  }
};

// What a function of a registered op asks its host by.
struct kiln_op_call {
  kiln::abi::Magic<kiln::abi::word("kilnopc1")> magic;
  kiln::abi::Callback callback{.what = "function"};
  kiln_context context;
  const kiln::RegisteredOp &op;
  // What there is depends on the function; `attrs` always.
  const kiln::AttrMap &attrs;
  kiln::InferContext *infer = nullptr;
  std::set<uint32_t> told = {};  // of infer: the results whose types were
  kiln::DecomposeContext *decompose = nullptr;
  std::vector<kiln::TensorType> operands = {};
  std::optional<kiln_edit> edit = {};  // of decompose
  kiln::abi::Views views = {};

  kiln_op_call(kiln::Context &in, const kiln::RegisteredOp &of, kiln::InferContext &c)
      : kiln_op_call(in, of, c.attrs, {c.inputs.begin(), c.inputs.end()}) {
    infer = &c;
  }
  kiln_op_call(kiln::Context &in, const kiln::RegisteredOp &of, kiln::DecomposeContext &c)
      : kiln_op_call(in, of, c.node.attrs, {}) {
    decompose = &c;
    callback.only_adds = true;
    context.recorded = &c.ops;
    for (const kiln::ValueId input : c.node.inputs) operands.push_back(c.type(input));
    edit.emplace(in.shared_from_this(), c.edit, &callback);
  }
  kiln_op_call(kiln::Context &in, const kiln::RegisteredOp &of, const kiln::AttrMap &given,
               std::vector<kiln::TensorType> types)
      : context(in), op(of), attrs(given), operands(std::move(types)) {
    context.callback = &callback;
  }
};

// What target, takes and compile of a registered backend ask their host by.
struct kiln_backend_call {
  kiln::abi::Magic<kiln::abi::word("kilnbac1")> magic;
  kiln::abi::Callback callback{.what = "backend"};
  kiln_context context;
  kiln_graph graph;                  // without one, inside target
  const kiln::AttrMap *options;      // null inside target
  std::optional<kiln::Bytes> *blob;  // null outside of compile
  kiln::Bytes *key = nullptr;        // null outside of target
  std::string *why = nullptr;        // null outside of takes
  kiln::abi::Views views = {};

  kiln_backend_call(std::shared_ptr<kiln::Context> in, kiln::GraphPtr of, const kiln::AttrMap *given,
                    std::optional<kiln::Bytes> *out)
      : context(*in), graph(std::move(in), std::move(of)), options(given), blob(out) {
    context.callback = graph.callback = &callback;
  }
};

namespace kiln::abi {

// For the accessors that answer without an error: whether the graph may be read, here and now.
inline bool is_usable(const kiln_graph *graph) {
  return graph && graph->magic.ok() &&
         (!graph->callback || (graph->callback->is_here() && !graph->callback->is_cancelled()));
}

// New handles; each result is the caller's. `json` is well-formed: Kiln wrote it.
std::unique_ptr<kiln_report> make_report(std::string_view json);
kiln_blob *make_blob(std::string bytes);
kiln_graph *make_graph(const std::shared_ptr<Context> &context, GraphPtr graph);

// A context handle (the host's, or a view) as a shared owner.
inline std::shared_ptr<Context> share(const kiln_context *context) { return context->context.shared_from_this(); }

}  // namespace kiln::abi
