// Puts the stand-ins in the place of NVRTC and the CUDA driver, for this process and those that it starts.
#pragma once
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/paths.h"
#include "tests/standin/driver.h"

namespace kiln::standin {

inline std::string driver_path() { return test::binary_dir + "/lib/libkiln_standin_cuda.so"; }
inline std::string nvrtc_path() { return test::binary_dir + "/lib/libkiln_standin_nvrtc.so"; }

// Whether there is a C++ compiler, which the stand-in for NVRTC needs. Tests that need it say SKIP otherwise.
inline bool has_compiler() {
  static const bool found = std::system("c++ --version > /dev/null 2>&1") == 0;
  return found;
}
inline constexpr const char *no_compiler = "SKIP: no C++ compiler (c++), which stands in for NVRTC";

// Each test begins with the variables that its program was started with, whatever those before it set.
class Variables : public ::testing::EmptyTestEventListener {
 public:
  static bool guard() {
    ::testing::UnitTest::GetInstance()->listeners().Append(new Variables);
    return true;
  }
  void OnTestStart(const ::testing::TestInfo &) override {
    for (Variable &one : all_) {
      const char *value = std::getenv(one.name);
      one.value = value ? std::optional<std::string>(value) : std::nullopt;
    }
  }
  void OnTestEnd(const ::testing::TestInfo &) override {
    for (const Variable &one : all_) one.value ? setenv(one.name, one.value->c_str(), 1) : unsetenv(one.name);
  }

 private:
  struct Variable {
    const char *name;
    std::optional<std::string> value = {};
  };
  Variable all_[2] = {{"KILN_NVRTC"}, {"KILN_LIBCUDA"}};
};
inline const bool variables_are_guarded = Variables::guard();

inline void use_nvrtc() { setenv("KILN_NVRTC", nvrtc_path().c_str(), 1); }

// Null when the library cannot be opened: a mistake of the build.
inline DriverControl *use_driver() {
  setenv("KILN_LIBCUDA", driver_path().c_str(), 1);
  void *library = dlopen(driver_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  auto *control = library ? reinterpret_cast<DriverControlFn>(dlsym(library, "kiln_standin_driver")) : nullptr;
  return control ? control() : nullptr;
}

// Tests that compile and run on the stand-ins; skipped, with their reason, where these cannot be.
class OnStandins : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_compiler()) GTEST_SKIP() << no_compiler;
    use_nvrtc();
    control = use_driver();
    ASSERT_NE(control, nullptr);
    control->reset({});
  }
  bool is_set_up() const { return control && !HasFatalFailure(); }

  DriverControl *control = nullptr;  // null: not on the stand-ins
};

inline std::vector<Record> records_of(DriverControl &driver, std::string_view function) {
  std::vector<Record> all = driver.records();
  std::erase_if(all, [&](const Record &r) { return r.function != function; });
  return all;
}

// Everything that was made is gone, exactly once.
inline void expect_all_given_back(DriverControl &driver) {
  EXPECT_THAT(driver.live(), ::testing::IsEmpty());
  EXPECT_THAT(driver.misuse(), ::testing::IsEmpty());
}

}  // namespace kiln::standin
