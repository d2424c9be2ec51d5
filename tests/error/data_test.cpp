// Cases that are data: every file in json/, graph/ and tensors/ that is no expectation is refused as CASE.txt says.
#include <algorithm>

#include "tests/error/expect.h"

namespace refused {
namespace {

std::vector<std::string> cases(const char *family) {
  std::vector<std::string> names;
  for (const auto &file : std::filesystem::directory_iterator(folder() / family))
    if (file.path().extension() != ".txt" && file.path().extension() != ".cpp")
      names.push_back(std::string(family) + "/" + file.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string stem(const std::string &name) { return std::filesystem::path(name).replace_extension().string(); }
std::string test_name(const testing::TestParamInfo<std::string> &at) {
  return std::filesystem::path(at.param).stem().string();
}

// A graph that is no JSON, no graph, or one that breaks a rule: kiln_graph_parse refuses it.
class RefusedText : public testing::TestWithParam<std::string> {};
TEST_P(RefusedText, NamesWhatIsWrongAndWhere) {
  const host::Context context = host::make_context();
  const std::string text = read_file(folder() / GetParam());
  kiln_graph *graph = nullptr;
  expect(host::take(kiln_graph_parse(context.get(), text.data(), text.size(), &graph)), stem(GetParam()));
  EXPECT_EQ(graph, nullptr);
}
INSTANTIATE_TEST_SUITE_P(Json, RefusedText, testing::ValuesIn(cases("json")), test_name);
INSTANTIATE_TEST_SUITE_P(Graph, RefusedText, testing::ValuesIn(cases("graph")), test_name);

// A file of arrays that is damaged, or no such file at all.
class RefusedTensors : public testing::TestWithParam<std::string> {};
TEST_P(RefusedTensors, NamesTheFileTheTensorAndWhatIsWrong) {
  const std::string path = (folder() / GetParam()).string();
  kiln_tensors *tensors = nullptr;
  host::Error error = host::take(kiln_tensors_open(path.data(), path.size(), &tensors));
  EXPECT_EQ(tensors, nullptr);
  ASSERT_TRUE(error.message.starts_with(path)) << error.message;
  error.message.replace(0, path.size(), "FILE");
  expect(error, stem(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(File, RefusedTensors, testing::ValuesIn(cases("tensors")), test_name);

}  // namespace
}  // namespace refused
