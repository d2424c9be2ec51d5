// The ops of a context: the built-in ones, and behind them those that plugins and hosts added, for good.
// Threads: all methods from any thread.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/json_writer.h"
#include "runtime/ops/registered.h"

namespace kiln {

class ContextOps final : public OpTable {
 public:
  const OpSchema *find(std::string_view name) const override;
  std::string suggest(std::string_view name) const override;
  std::string identity(std::string_view name) const override;

  // All or none; they get their numbers and stay as long as the table. invalid_argument: a name or a UUID is taken.
  Status add(std::vector<std::unique_ptr<RegisteredOp>> ops);
  // Numbers begin with 1: built-in ops by name, then the others as they came. 0, null: there is none.
  uint32_t count() const;
  const Op *at(uint32_t number) const;
  static uint32_t number_of(const OpSchema &op);
  // Those that were added, as kiln_context_report tells them.
  void write_report(JsonWriter &json) const;

 private:
  const RegisteredOp *find_added(std::string_view name) const;  // the mutex is held

  mutable std::shared_mutex mutex_;
  std::vector<std::unique_ptr<RegisteredOp>> added_;
  std::map<std::string_view, const RegisteredOp *> by_name_;
};

}  // namespace kiln
