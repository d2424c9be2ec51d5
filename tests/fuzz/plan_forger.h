// Changes a plan somewhere: a number, a size, a step. What bytes alone would seldom hit on.
#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "runtime/plan/plan.h"

namespace kiln::fuzz {

class PlanForger {
 public:
  PlanForger(Plan &plan, uint32_t seed) : plan_(plan), random_(seed) {}

  void forge() {
    for (uint32_t left = 1 + below(3); left > 0; --left) forge_once();
  }

 private:
  using Step = Plan::Step;

  uint32_t below(size_t count) { return count == 0 ? 0 : static_cast<uint32_t>(random_() % count); }
  template <class T>
  T *any(std::vector<T> &items) {
    return items.empty() ? nullptr : &items[below(items.size())];
  }
  // Of a list with `count` items: mostly one that is there.
  uint32_t number(size_t count) { return below(8) == 0 ? static_cast<uint32_t>(random_()) : below(count + 1); }

  Expr size() {
    std::vector<Expr> known = {0, 1, 4, 16, 64, -1, INT64_MAX, INT64_MIN};
    for (const Plan::Symbol &s : plan_.symbols) known.push_back(Expr::symbol(s.name));
    for (const Plan::Slot &s : plan_.slots) known.push_back(s.size_bytes);
    for (const Plan::Storage &s : plan_.arena) known.push_back(s.size_bytes);
    const Expr a = known[below(known.size())], b = known[below(known.size())];
    switch (below(6)) {
      case 0:
        return a + b;
      case 1:
        return a * b;
      case 2:
        return floor_div(a, b);
      case 3:
        return max(a, b) - 4;
      default:
        return a;
    }
  }

  void forge_once() {
    if (Plan *nested = any(plan_.nested); nested && below(3) == 0) {
      PlanForger(*nested, static_cast<uint32_t>(random_())).forge_once();
      return;
    }
    switch (below(12)) {
      case 0:
      case 1:
        if (Plan::Slot *s = any(plan_.slots)) s->size_bytes = size();
        break;
      case 2:
        if (Plan::Slot *s = any(plan_.slots)) {
          s->index = number(4);
          if (below(2)) s->kind = static_cast<Plan::Slot::Kind>(below(8));
        }
        break;
      case 3:
        if (Plan::Storage *s = any(below(2) ? plan_.arena : plan_.prepared)) s->size_bytes = size();
        break;
      case 4:
      case 5:
        forge_step();
        break;
      case 6:
        forge_symbol();
        break;
      case 7:
        if (!plan_.checks.empty()) plan_.checks.pop_back();
        break;
      case 8:
      case 9:
      case 10:
        forge_argument();
        break;
      default:
        plan_.slots.push_back({static_cast<Plan::Slot::Kind>(1 + below(6)), number(2), size()});
    }
  }

  void forge_step() {
    std::vector<Step> &steps = below(4) == 0 ? plan_.prepare : plan_.steps;
    Step *step = any(steps);
    if (!step) return;
    switch (below(9)) {
      case 0:
        step->kernel = number(4);
        break;
      case 7:
        if (Plan::Nested *nested = any(step->nested)) nested->plan = number(plan_.nested.size());
        break;
      case 8:
        if (Plan::Nested *nested = any(step->nested))
          if (Expr *symbol = any(nested->symbols)) *symbol = size();
        break;
      case 1:
      case 2:
        if (uint32_t *slot = any(step->slots)) *slot = number(plan_.slots.size());
        break;
      case 3:
        if (uint32_t *symbol = any(step->symbols)) *symbol = number(plan_.symbols.size());
        break;
      case 4:
        if (below(2))
          step->slots.push_back(number(plan_.slots.size()));
        else
          step->kind = static_cast<Step::Kind>(below(9));
        break;
      case 5:
        steps.push_back(Step(*step));
        break;
      default:
        *step = {.kind = Step::Kind::copy, .slots = {number(plan_.slots.size()), number(plan_.slots.size())}};
    }
  }

  void forge_symbol() {
    Plan::Symbol *s = any(plan_.symbols);
    if (!s) return;
    switch (below(6)) {
      case 0:
        s->min = static_cast<int64_t>(below(4)) - 1;
        break;
      case 4:
        s->resolved = !s->resolved;
        break;
      case 5:
        s->bound = size();
        break;
      case 1:
        s->max = below(2) ? INT64_MAX : below(100);
        break;
      case 2:
        s->divisor = below(5);
        break;
      default:
        s->input = number(plan_.inputs.size());
        s->dim = number(2);
    }
  }

  void forge_argument() {
    std::vector<Plan::Argument> &list = below(3) == 0 ? plan_.inputs : below(2) == 0 ? plan_.parameters : plan_.outputs;
    Plan::Argument *a = any(list);
    if (!a) return;
    const Expr small[] = {0, 1, 2, 5, 1000};
    const Expr e = below(2) ? small[below(5)] : size();
    switch (below(4)) {
      case 0:
        if (Expr *dim = any(a->dims)) *dim = e;
        break;
      case 1:
        if (Expr *stride = any(a->strides)) *stride = e;
        break;
      case 2:
        a->dtype = static_cast<DType>(below(12));
        break;
      default:
        a->dims.push_back(e);
        a->strides.push_back(1);
    }
  }

  Plan &plan_;
  std::mt19937 random_;
};

}  // namespace kiln::fuzz
