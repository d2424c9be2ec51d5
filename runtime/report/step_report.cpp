#include "runtime/report/step_report.h"

#include <optional>

#include "jit/kernel/estimate.h"
#include "runtime/plan/piece.h"

namespace kiln {
namespace {

std::string_view name_of(Plan::Step::Kind kind) {
  constexpr std::string_view names[] = {"kernel", "copy", "reference", "call", "branch", "loop", "scan", "resolve"};
  return names[static_cast<size_t>(kind) - 1];
}

std::string_view name_of(Plan::Slot::Kind kind) {
  constexpr std::string_view names[] = {"input", "parameter", "constant", "output", "arena", "prepared"};
  return names[static_cast<size_t>(kind) - 1];
}

class Lister {
 public:
  explicit Lister(const Artifact &artifact) : artifact_(artifact), known_(artifact.kernels.size()) {}

  std::string list() {
    json_.begin_object().key("plans").begin_list();
    add(artifact_.plan, "");
    return json_.end_list().end_object().take();
  }

 private:
  void add(const Plan &plan, const std::string &path) {
    json_.begin_object().member("plan", path).key("slots").begin_list();
    for (const Plan::Slot &slot : plan.slots) {
      json_.begin_object().member("kind", name_of(slot.kind)).member("index", slot.index);
      if (const std::string *name = name_in_signature(plan, slot)) json_.member("name", *name);
      json_.member("bytes", slot.size_bytes.text()).end_object();
    }
    json_.end_list();
    for (const auto &[name, storages] : {std::pair("arena", &plan.arena), std::pair("prepared", &plan.prepared)}) {
      json_.key(name).begin_list();
      for (const Plan::Storage &storage : *storages) json_.value(storage.size_bytes.text());
      json_.end_list();
    }
    for (const auto &[name, steps] : {std::pair("prepare", &plan.prepare), std::pair("steps", &plan.steps)}) {
      json_.key(name).begin_list();
      for (const Plan::Step &step : *steps) add(plan, step);
      json_.end_list();
    }
    json_.end_object();
    for (size_t i = 0; i < plan.nested.size(); ++i)
      add(plan.nested[i], path.empty() ? str_cat(i) : str_cat(path, ".", i));
  }

  void add(const Plan &plan, const Plan::Step &step) {
    json_.begin_object().member("what", text_of(plan, step)).member("kind", name_of(step.kind));
    json_.key("slots").begin_list();
    for (const uint32_t slot : step.slots) json_.value(slot);
    json_.end_list().key("written").begin_list();
    for (const bool written : written_by(step, plan.nested, artifact_.contracts)) json_.value(written);
    json_.end_list();
    if (step.kind == Plan::Step::Kind::launch) {
      json_.member("kernel", step.kernel);
      write_origins(step.origins, json_);
      if (step.kernel < known_.size()) write_estimate(plan, step);
    }
    json_.end_object();
  }

  void write_estimate(const Plan &plan, const Plan::Step &step) {
    std::optional<Known> &known = known_[step.kernel];
    if (!known) {
      known.emplace();
      if (Result<kernel::Kernel> kernel = kernel::parse(artifact_.kernels[step.kernel]); kernel.ok())
        known.emplace(Known{kernel::estimate(*kernel), std::move(kernel->symbols)});
    }
    SymbolMap names;
    for (size_t i = 0; i < known->symbols.size() && i < step.symbols.size(); ++i)
      names.emplace(known->symbols[i], Expr::symbol(plan.symbols[step.symbols[i]].name));
    json_.member("bytes", renamed(known->estimate.bytes, names).text());
    json_.member("flops", renamed(known->estimate.flops, names).text());
  }

  static const std::string *name_in_signature(const Plan &plan, const Plan::Slot &slot) {
    switch (slot.kind) {
      case Plan::Slot::Kind::input:
        return &plan.inputs[slot.index].name;
      case Plan::Slot::Kind::parameter:
        return &plan.parameters[slot.index].name;
      case Plan::Slot::Kind::output:
        return &plan.outputs[slot.index].name;
      default:
        return nullptr;
    }
  }

  struct Known {
    kernel::Estimate estimate;
    std::vector<std::string> symbols;
  };
  const Artifact &artifact_;
  std::vector<std::optional<Known>> known_;  // by kernel
  JsonWriter json_;
};

void collect(const Plan &plan, std::vector<std::vector<Plan::Origin>> &all) {
  for (const auto *steps : {&plan.prepare, &plan.steps})
    for (const Plan::Step &step : *steps) {
      if (step.kind != Plan::Step::Kind::launch || step.kernel >= all.size()) continue;
      std::vector<Plan::Origin> &origins = all[step.kernel];
      origins.insert(origins.end(), step.origins.begin(), step.origins.end());
    }
  for (const Plan &nested : plan.nested) collect(nested, all);
}

}  // namespace

void write_origins(std::span<const Plan::Origin> origins, JsonWriter &json) {
  json.key("nodes").begin_list();
  for (const Plan::Origin &origin : origins) {
    json.begin_object().member("node", origin.node.name).member("op", origin.op);
    if (!origin.node.debug.empty()) json.member("debug", origin.node.debug);
    json.end_object();
  }
  json.end_list();
}

std::vector<std::string> nodes_of_kernels(const Artifact &artifact) {
  std::vector<std::vector<Plan::Origin>> all(artifact.kernels.size());
  collect(artifact.plan, all);
  std::vector<std::string> texts;
  for (const std::vector<Plan::Origin> &origins : all) texts.push_back(text_of(origins));
  return texts;
}

std::string list_steps(const Artifact &artifact) { return Lister(artifact).list(); }

}  // namespace kiln
