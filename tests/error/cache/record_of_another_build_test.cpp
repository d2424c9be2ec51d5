// A record of this key that another build wrote: it is put aside, and a new one made.
#include "tests/error/cache/cache.h"

namespace refused {

TEST_F(CacheCase, RecordOfAnotherBuild) {
  compile();
  const std::string path = record().string();
  kiln_report *made = nullptr;
  ASSERT_OK(kiln_build_report(&made));
  const host::Report build(made);
  const std::string own = host::text(build, "build_id");
  File(path).forge("components", own, std::string(own.size(), 'f'));
  const Outcome again = compile();
  EXPECT_EQ(again.lookup, "MISS");
  EXPECT_EQ(again.reason, "component 'build' differs from the record");
  EXPECT_EQ(files(".bad").size(), 1u);
  EXPECT_EQ(compile().lookup, "HIT");
}

}  // namespace refused
