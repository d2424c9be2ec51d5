// A path of a report that is not there, is of another type, or beyond the end; a format that there is not.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, QuestionsWithoutAnAnswer) {
  const host::Context context = host::make_context();
  const host::Graph graph = host::parse(context.get(), host::small_graph);
  const host::Report report = host::context_report(context.get());
  int64_t number = 7;
  kiln_text text{};
  kiln_blob *blob = nullptr;
  const auto refused = [](kiln_error *error, const char *code, const char *message) {
    EXPECT_REFUSED(host::take(error), code, message);
  };
  refused(kiln_report_get_i64(report.get(), "handles.pets", 12, &number), "UNKNOWN_NAME",
          "the report has no 'handles.pets'");
  refused(kiln_report_get_i64(report.get(), "cache", 5, &number), "TYPE_MISMATCH",
          "'cache' of the report is no integer");
  refused(kiln_report_get_text(report.get(), "threads", 7, &text), "TYPE_MISMATCH",
          "'threads' of the report is no text");
  refused(kiln_report_key(report.get(), "handles", 7, 99, &text), "OUT_OF_RANGE", "member 99 of 5");
  refused(kiln_graph_write(graph.get(), "yaml", 4, &blob), "UNKNOWN_NAME",
          "no graph format is named 'yaml'; there are: json, text, dot");
  EXPECT_EQ(number, 7);
}

}  // namespace refused
