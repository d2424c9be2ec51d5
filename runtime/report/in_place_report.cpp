#include <vector>

#include "runtime/report/step_report.h"
#include "runtime/unpacked/names.h"

namespace kiln {
namespace {

class Copies {
 public:
  explicit Copies(const Plan &plan) {
    json_.begin_object().key("copies").begin_list();
    add(plan, {}, "");
    json_.end_list().member("made", made_).member("missed", missed_).member("missed_bytes", bytes_.text());
    json_.end_object();
  }

  std::string take() { return json_.take(); }

 private:
  // `symbols`: what the plan's are over those of the outermost one, as far as they are told there.
  void add(const Plan &plan, const SymbolMap &symbols, const std::string &path) {
    made_ += plan.in_place;
    std::vector<bool> is_told(plan.nested.size());
    for (const auto *steps : {&plan.prepare, &plan.steps})
      for (const Plan::Step &step : *steps) {
        if (step.kind == Plan::Step::Kind::copy) add(plan, step, symbols, path);
        for (const Plan::Nested &nested : step.nested) {
          if (is_told[nested.plan]) continue;
          is_told[nested.plan] = true;
          const Plan &inner = plan.nested[nested.plan];
          SymbolMap inside;
          for (size_t i = 0; i < inner.symbols.size(); ++i)
            if (!inner.symbols[i].resolved) inside.emplace(inner.symbols[i].name, renamed(nested.symbols[i], symbols));
          add(inner, inside, path.empty() ? str_cat(nested.plan) : str_cat(path, ".", nested.plan));
        }
      }
  }

  void add(const Plan &plan, const Plan::Step &copy, const SymbolMap &symbols, const std::string &path) {
    const Expr bytes = renamed(plan.slots[copy.slots[0]].size_bytes, symbols);
    ++missed_;
    bytes_ = bytes_ + bytes;
    json_.begin_object().member("what", text_of(plan, copy)).member("plan", path).member("bytes", bytes.text());
    write_origins(copy.origins, json_);
    json_.member("why", unpacked::text_of(copy.why)).member("reason", why_text(copy)).end_object();
  }

  JsonWriter json_;
  uint64_t made_ = 0, missed_ = 0;
  Expr bytes_ = 0;
};

}  // namespace

std::string in_place_json(const Plan &plan) { return Copies(plan).take(); }

}  // namespace kiln
