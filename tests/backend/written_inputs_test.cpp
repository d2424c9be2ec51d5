// What copy_ writes into inputs, where it is made in their own memory and where it is copied: the same as on the
// reference, bit for bit, with guards around all arrays.
#include <gtest/gtest.h>

#include "tests/backend/cuda_backend.h"
#include "tests/unit/runtime/graphs.h"

namespace kiln::testing {
namespace {

struct Writing {
  const char *name, *nodes, *outputs;
};

// cache and other [2, "n", 5], part [2, 3, 5], row [2, 1, 5], at [3] and one [1] are i64; "begin" is a dim of `begins`.
constexpr Writing writings[] = {
    {"slice", R"({"name":"new","op":"slice_scatter","inputs":["cache","part"],
                  "attrs":{"dim":1,"start":"begin","end":"begin+3"}},
                 {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "new"},
    {"slice_backwards", R"({"name":"new","op":"slice_scatter","inputs":["cache","part"],
                            "attrs":{"dim":1,"start":"begin+4","end":"begin-1","step":-2}},
                           {"name":"y","op":"sum","inputs":["new"],"attrs":{"dims":[1]}},
                           {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "y"},
    {"indices", R"({"name":"new","op":"index_put","inputs":["cache","part","at"],"attrs":{"dim":1}},
                   {"name":"y","op":"sum","inputs":["new"],"attrs":{"dims":[0]}},
                   {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "y"},
    {"sums", R"({"name":"new","op":"index_put_add","inputs":["cache","part","at"],"attrs":{"dim":1}},
                {"name":"w","op":"copy_","inputs":["cache","new"]})",
     ""},
    {"steps", R"({"name":"a","op":"index_put","inputs":["cache","part","at"],"attrs":{"dim":1}},
                 {"name":"b","op":"index_put","inputs":["a","row","one"],"attrs":{"dim":1}},
                 {"name":"new","op":"slice_scatter","inputs":["b","part"],
                  "attrs":{"dim":1,"start":"begin","end":"begin+3"}},
                 {"name":"y","op":"sum","inputs":["new"],"attrs":{"dims":[2]}},
                 {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "y"},
    {"steps_of_which_one_is_read_later",
     R"({"name":"a","op":"index_put","inputs":["cache","part","at"],"attrs":{"dim":1}},
                 {"name":"new","op":"index_put","inputs":["a","row","one"],"attrs":{"dim":1}},
                 {"name":"y","op":"sub","inputs":["new","a"]},
                 {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "y"},
    {"old_read_before", R"({"name":"s","op":"sum","inputs":["cache"],"attrs":{"dims":[1],"keepdim":true}},
                           {"name":"new","op":"index_put","inputs":["cache","s","one"],"attrs":{"dim":1}},
                           {"name":"z","op":"max","inputs":["cache"],"attrs":{"dims":[0]}},
                           {"name":"y","op":"add","inputs":["new","s"]},
                           {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "y z"},
    {"old_read_after", R"({"name":"new","op":"index_put","inputs":["cache","part","at"],"attrs":{"dim":1}},
                          {"name":"y","op":"sub","inputs":["new","cache"]},
                          {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "y"},
    {"moved", R"({"name":"s","op":"slice","inputs":["cache"],"attrs":{"dim":1,"start":1,"end":"n"}},
                 {"name":"new","op":"slice_scatter","inputs":["cache","s"],"attrs":{"dim":1,"start":0,"end":"n-1"}},
                 {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "new"},
    {"changed_where_it_lies",
     R"({"name":"s","op":"slice","inputs":["cache"],"attrs":{"dim":1,"start":"begin","end":"begin+3"}},
                 {"name":"a","op":"mul","inputs":["s","part"]},
                 {"name":"new","op":"slice_scatter","inputs":["cache","a"],"attrs":{"dim":1,"start":"begin","end":"begin+3"}},
                 {"name":"w","op":"copy_","inputs":["cache","new"]})",
     ""},
    {"point_by_point", R"({"name":"a","op":"mul","inputs":["cache","cache"]},
                          {"name":"new","op":"add","inputs":["a","row"]},
                          {"name":"y","op":"sum","inputs":["cache"]},
                          {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "y new"},
    {"row_by_row", R"({"name":"m","op":"max","inputs":["cache"],"attrs":{"dims":[2],"keepdim":true}},
                      {"name":"new","op":"sub","inputs":["cache","m"]},
                      {"name":"w","op":"copy_","inputs":["cache","new"]})",
     ""},
    {"a_later_step_reads_the_old_value",
     R"({"name":"a","op":"index_put","inputs":["cache","part","at"],"attrs":{"dim":1}},
        {"name":"s","op":"slice","inputs":["cache"],"attrs":{"dim":2,"start":0,"end":2}},
        {"name":"new","op":"slice_scatter","inputs":["a","s"],"attrs":{"dim":2,"start":0,"end":2}},
        {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "new"},
    {"two_inputs_of_one_value_that_reads_both",
     R"({"name":"s","op":"slice","inputs":["cache"],"attrs":{"dim":2,"start":0,"end":4,"step":2}},
        {"name":"new","op":"slice_scatter","inputs":["other","s"],"attrs":{"dim":2,"start":0,"end":4,"step":2}},
        {"name":"w","op":"copy_","inputs":["cache","new"]},{"name":"v","op":"copy_","inputs":["other","new"]})",
     ""},
    {"of_another_input_before_the_old_value_is_read",
     R"({"name":"new","op":"index_put","inputs":["other","part","at"],"attrs":{"dim":1}},
        {"name":"m","op":"neg","inputs":["other"]},
        {"name":"y","op":"add","inputs":["cache","m"]},
        {"name":"w","op":"copy_","inputs":["cache","new"]})",
     "y"},
    {"an_input_that_a_later_step_reads_is_another_one",
     R"({"name":"m","op":"neg","inputs":["row"]},
        {"name":"s","op":"slice","inputs":["cache"],"attrs":{"dim":2,"start":1,"end":4,"step":2}},
        {"name":"new","op":"slice_scatter","inputs":["other","s"],"attrs":{"dim":2,"start":0,"end":4,"step":2}},
        {"name":"w","op":"copy_","inputs":["cache","other"]},{"name":"v","op":"copy_","inputs":["other","new"]})",
     "m"},
    {"flipped", R"({"name":"new","op":"flip","inputs":["cache"],"attrs":{"dims":[1]}},
                   {"name":"w","op":"copy_","inputs":["cache","new"]})",
     ""},
};

class WrittenInputs : public OnABackend {};
INSTANTIATE_TEST_SUITE_P(Backends, WrittenInputs, ::testing::Values("cpu", "cuda"),
                         [](const auto &test) { return std::string(test.param); });

TEST_P(WrittenInputs, HoldWhatTheReferenceWritesHoweverItIsMade) {
  const std::vector<Setting> settings = options_.backend == "cpu" ? all_settings() : device_settings();
  CompileOptions reference;
  reference.backend = "reference";
  for (const Writing &w : writings) {
    SCOPED_TRACE(w.name);
    std::string outputs;
    for (std::string_view rest = w.outputs; !rest.empty();) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      outputs += str_cat(outputs.empty() ? "" : ",", R"({"name":")", name, R"(","value":")", name, R"("})");
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
    const GraphPtr graph = test::graph_of(str_cat(R"({"kiln":1,"symbols":{"begin":{"min":1},"n":{"min":2}},"inputs":[
          {"name":"cache","type":{"dtype":"i64","shape":[2,"n",5]}},{"name":"part","type":{"dtype":"i64","shape":[2,3,5]}},
          {"name":"row","type":{"dtype":"i64","shape":[2,1,5]}},{"name":"at","type":{"dtype":"i64","shape":[3]}},
          {"name":"one","type":{"dtype":"i64","shape":[1]}},{"name":"begins","type":{"dtype":"i64","shape":["begin"]}},
          {"name":"other","type":{"dtype":"i64","shape":[2,"n",5]}}],
          "nodes":[)",
                                                  w.nodes, R"(],"outputs":[)", outputs, "]}"));
    std::vector<GraphCall> calls;
    std::mt19937_64 random(3);
    Sample numbers, places;
    places.int_low = 0;
    for (const int64_t n : {9, 33, 300}) {
      places.int_high = n;
      const auto drawn = [&](std::vector<int64_t> shape, const Sample &sample) {
        return random_tensor(DType::i64, shape, sample, random);
      };
      calls.push_back(
          {.sizes = {{"n", n}, {"begin", 4}},
           .arguments = {drawn({2, n, 5}, numbers), drawn({2, 3, 5}, numbers), drawn({2, 1, 5}, numbers),
                         drawn({3}, places), drawn({1}, places), drawn({4}, numbers), drawn({2, n, 5}, numbers)}});
    }
    const Result<std::vector<Results>> expected = run_guarded(graph, calls, reference, device_settings());
    ASSERT_TRUE(expected.ok()) << expected.status().message();
    const std::vector<std::string> puts = {"index_put"}, others = {"slice_scatter", "neg", "slice"};
    for (const auto &[fuse, split_at] :
         {std::pair(true, std::vector<std::string>()), {false, {}}, {true, puts}, {true, others}}) {
      options_.fuse = fuse;
      options_.split_at = split_at;
      const Result<std::vector<Results>> got = run_guarded(graph, calls, options_, settings);
      ASSERT_TRUE(got.ok()) << got.status().message();
      EXPECT_EQ(*got, *expected);
    }
  }
}

// An index that is not there is told; what the others write stays.
TEST(WrittenInputsOfACall, KeepWhatIsInRangeWhenAnIndexIsNot) {
  const GraphPtr graph = test::graph_of(R"({"kiln":1,"inputs":[{"name":"x","type":{"dtype":"i64","shape":[4]}},
      {"name":"s","type":{"dtype":"i64","shape":[2]}},{"name":"i","type":{"dtype":"i64","shape":[2]}}],
      "nodes":[{"name":"y","op":"index_put","inputs":["x","s","i"]},{"name":"w","op":"copy_","inputs":["x","y"]}],
      "outputs":[]})");
  const Result<Compiled> compiled = compile_alone(graph, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const Result<std::unique_ptr<Call>> call = Call::create(compiled->executable);
  std::vector<int64_t> x = {1, 2, 3, 4}, s = {7, 8}, i = {2, 4};
  const std::array<int64_t, 1> four = {4}, two = {2};
  const Status status = (*call)->run(std::vector<ArrayRef>{{x.data(), DType::i64, 1, four.data(), nullptr},
                                                           {s.data(), DType::i64, 1, two.data(), nullptr},
                                                           {i.data(), DType::i64, 1, two.data(), nullptr}});
  EXPECT_EQ(status.code(), Code::out_of_range);
  EXPECT_EQ(x, (std::vector<int64_t>{1, 2, 7, 4}));
}

TEST(WrittenInputsOfACall, LeaveWhatLiesBetweenTheElementsOfTwoThatAreGivenOneValue) {
  const GraphPtr graph = test::graph_of(R"({"kiln":1,"inputs":[
      {"name":"x","type":{"dtype":"i64","shape":[2,2],"strides":[3,1]}},
      {"name":"y","type":{"dtype":"i64","shape":[2,2],"strides":[3,1]}},{"name":"r","type":{"dtype":"i64","shape":[2,1]}}],
      "nodes":[{"name":"v","op":"slice_scatter","inputs":["y","r"],"attrs":{"dim":1,"start":0,"end":1}},
               {"name":"w","op":"copy_","inputs":["x","v"]},{"name":"u","op":"copy_","inputs":["y","v"]}],"outputs":[]})");
  const Result<Compiled> compiled = compile_alone(graph, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const Result<std::unique_ptr<Call>> call = Call::create(compiled->executable);
  std::vector<int64_t> x = {1, 2, -7, 3, 4}, y = {5, 6, -9, 7, 8}, r = {50, 70};
  const std::array<int64_t, 2> shape = {2, 2}, strides = {3, 1}, column = {2, 1};
  const Status status = (*call)->run(std::vector<ArrayRef>{{x.data(), DType::i64, 2, shape.data(), strides.data()},
                                                           {y.data(), DType::i64, 2, shape.data(), strides.data()},
                                                           {r.data(), DType::i64, 2, column.data(), nullptr}});
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(x, (std::vector<int64_t>{50, 6, -7, 70, 8}));
  EXPECT_EQ(y, (std::vector<int64_t>{50, 6, -9, 70, 8}));
}

}  // namespace
}  // namespace kiln::testing
