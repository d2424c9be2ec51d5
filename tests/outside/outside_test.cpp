// Every sample of every op against the values that other libraries give, on the reference kernels and on `cpu`: what
// our reference and our lowering get wrong in the same way is seen here alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <vector>

#include "runtime/ops/registered.h"
#include "tests/backend/backends.h"
#include "tests/outside/expected.h"
#include "tests/outside/sample_data.h"
#include "tests/paths.h"
#include "tests/soak.h"

namespace kiln::testing {
namespace {

constexpr std::string_view how_to_mend = "; is tests/outside/expected up to date? ./dev outside";

// Samples of one op in one type, and what they should give: one graph, whose outputs follow each other.
struct Checked {
  Case made;
  std::vector<std::pair<std::string, ExpectedOutput>> outputs;  // with the sample's name
};

class CheckedBuilder {
 public:
  CheckedBuilder(const Op &op, const Expected &expected, std::string_view type)
      : op_(op), expected_(expected), type_(type), builder_(op, str_cat(op.name, "/", type)) {}

  Status add(const Sample &symbolic) {
    Sample sample = at_sizes(symbolic);
    const std::vector<TensorData> operands = operands_of(op_, sample);
    const ExpectedCase *found = expected_.find(sample.name, type_);
    if (!found) return invalid("there is no value for ", sample.name, " in ", type_, how_to_mend);
    if (digest_of_inputs(operands) != found->inputs)
      return invalid(sample.name, " in ", type_, ": these are not the operands of the expected values", how_to_mend);
    if (!found->none.empty()) return {};
    for (const ExpectedOutput &output : found->outputs) outputs_.emplace_back(sample.name, output);
    for (size_t k = 0; k < operands.size(); ++k) sample.given.insert_or_assign(k, operands[k]);
    return builder_.add(sample, 0);
  }

  bool empty() const { return outputs_.empty(); }
  Result<Checked> finish() {
    KILN_ASSIGN(Case made, builder_.finish());
    return Checked{std::move(made), std::move(outputs_)};
  }

 private:
  const Op &op_;
  const Expected &expected_;
  std::string type_;
  CaseBuilder builder_;
  std::vector<std::pair<std::string, ExpectedOutput>> outputs_;
};

class Outside : public ::testing::TestWithParam<const Op *> {
 protected:
  void SetUp() override {
    Result<Expected> read = read_expected(*op_);
    ASSERT_TRUE(read.ok()) << read.status().message();
    expected_ = std::move(*read);
    op_->samples(samples_);
  }

  // The samples in `type` in place of f32, or as they are where it is none. Nothing where no sample has a value so.
  std::optional<Checked> checked(DType type) {
    CheckedBuilder builder(*op_, expected_, type == DType::none ? "own" : name_of(type));
    for (const Sample &sample : samples_) {
      const bool has_f32 = is_of(sample, DType::f32);
      const std::optional<Sample> form = type == DType::none ? std::optional(sample)
                                         : has_f32           ? retyped(*op_, sample, type)
                                                             : std::nullopt;
      if (!form) continue;
      const Status added = builder.add(*form);
      EXPECT_TRUE(added.ok()) << added.message();
    }
    if (builder.empty()) return std::nullopt;
    Result<Checked> made = builder.finish();
    EXPECT_TRUE(made.ok()) << made.status().message();
    return made.ok() ? std::optional(std::move(*made)) : std::nullopt;
  }

  std::map<DType, Checked> in_all_types() {
    std::map<DType, Checked> all;
    for (int number = 0; number <= dtype_count; ++number) {
      const auto type = static_cast<DType>(number);
      if (type == DType::f32) continue;
      if (std::optional<Checked> made = checked(type)) all.emplace(type, std::move(*made));
    }
    return all;
  }

  static void expect_values(const Checked &checked, const Result<std::vector<TensorData>> &got) {
    ASSERT_TRUE(got.ok()) << checked.made.name << ": " << got.status().message();
    ASSERT_EQ(got->size(), checked.outputs.size());
    for (size_t k = 0; k < got->size(); ++k)
      EXPECT_EQ(difference((*got)[k], checked.outputs[k].second, checked.made.tolerances[k]), "")
          << checked.made.name << ", sample " << checked.outputs[k].first;
  }

  const Op *op_ = GetParam();
  Expected expected_;
  SampleSink samples_;
};

TEST_P(Outside, TheReferenceAgreesOnEverySampleInEveryType) {
  for (const auto &[type, checked] : in_all_types())
    expect_values(checked, run_on_reference(*checked.made.graph, checked.made.arguments));
}

// In types of their own and the widest float and integer; conformance_test holds the others to the reference.
TEST_P(Outside, TheCpuAgreesOnEverySample) {
  for (const auto &[type, checked] : in_all_types()) {
    if (!test::soak() && type != DType::none && type != DType::f64 && type != DType::i64) continue;
    CompileOptions options;
    options.cpu = "native";
    expect_values(checked, run_compiled(checked.made, options, {{.threads = 2}}));
  }
}

TEST_P(Outside, EveryExpectedValueIsOfASampleThatThereIs) {
  std::set<std::string> names;
  for (const Sample &sample : samples_) {
    EXPECT_TRUE(names.insert(sample.name).second) << sample.name << " names two samples";
    std::set<std::string, std::less<>> types = {"own"};
    for (const DType type : other_types_of(*op_, sample)) types.emplace(name_of(type));
    for (const ExpectedCase &one : expected_.samples[sample.name])
      for (const std::string &type : one.types)
        EXPECT_TRUE(types.contains(type)) << sample.name << " is not taken in " << type << how_to_mend;
  }
  for (const auto &[name, cases] : expected_.samples)
    EXPECT_TRUE(names.contains(name)) << "no sample is named " << name << how_to_mend;
  EXPECT_NE(expected_.peer, "");
}

// Of op token there is nothing to compare.
std::vector<const Op *> ops_with_samples() {
  std::vector<const Op *> ops;
  std::ranges::copy_if(all_ops(), std::back_inserter(ops), [](const Op *op) { return !samples_of(*op).empty(); });
  return ops;
}
INSTANTIATE_TEST_SUITE_P(Ops, Outside, ::testing::ValuesIn(ops_with_samples()),
                         [](const auto &instance) { return std::string(instance.param->name); });

TEST(OutsideFiles, AreOfOpsThatThereAreAndSmall) {
  uintmax_t bytes = 0;
  for (const auto &file : std::filesystem::directory_iterator(test::source_dir + "/tests/outside/expected")) {
    const bool is_of_an_op = find_op(file.path().stem().string()) != nullptr;
    EXPECT_TRUE(is_of_an_op || file.path().filename() == "versions.txt") << file.path();
    bytes += file.file_size();
  }
  EXPECT_LE(bytes, 6'000'000u);
}

}  // namespace
}  // namespace kiln::testing
