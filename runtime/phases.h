// The phases of one compile: times them for the report, tells the host, and ends the compile when it cancels.
#pragma once
#include <chrono>
#include <string>

#include "runtime/compile.h"

namespace kiln {

class Phases {
 public:
  Phases(const CompileEnvironment &env, CompileReport &report) : env_(env), report_(report) {}
  Phases(const Phases &) = delete;
  Phases &operator=(const Phases &) = delete;
  ~Phases() { end(); }

  // Ends the phase before. Code cancelled when the host says so.
  Status begin(std::string_view name) {
    end();
    report_.phase_ms.emplace_back(name, 0);
    if (env_.progress && env_.progress(name))
      return error(Code::cancelled, "the compile was cancelled before '", name, "'");
    return {};
  }
  // The times in the report are complete after this; it is also done on leaving compile().
  void end() {
    const auto now = Clock::now();
    if (!report_.phase_ms.empty()) report_.phase_ms.back().second += ms(now - phase_start_);
    report_.total_ms = ms(now - start_);
    phase_start_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static double ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }
  const CompileEnvironment &env_;
  CompileReport &report_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point phase_start_ = start_;
};

}  // namespace kiln
