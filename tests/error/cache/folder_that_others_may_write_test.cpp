// A cache folder that others may write: what is in it may be anybody's code, so it is not used, and the reason is told.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, FolderThatOthersMayWrite) {
  EXPECT_EQ(compile().lookup, "MISS");
  std::filesystem::permissions(folder_, std::filesystem::perms(0777));
  const std::string reason =
      "cache folder " + folder_.string() + " is not used: " + folder_.string() + " is writable by others";
  const Outcome outcome = compile();
  EXPECT_EQ(outcome.lookup, "BYPASS");
  EXPECT_EQ(outcome.reason, reason);
  EXPECT_EQ(outcome.close, host::Error());

  std::vector<std::string> warnings;
  kiln_event_sink sink{};
  sink.struct_size = sizeof sink;
  sink.user = &warnings;
  sink.kinds = 1U << KILN_EVENT_WARNING;
  sink.event = [](void *user, uint32_t, const char *text, uint64_t size) -> int32_t {
    static_cast<std::vector<std::string> *>(user)->emplace_back(text, size);
    return 0;
  };
  const host::Context context = host::make_context(folder_.string(), &sink);
  const host::Graph graph = host::parse(context.get(), graph_json);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(host::compile(context.get(), graph.get()).error, host::Error());
  EXPECT_EQ(warnings, std::vector<std::string>{reason}) << "once";
}

}  // namespace refused
