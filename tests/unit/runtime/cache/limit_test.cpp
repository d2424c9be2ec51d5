// The cache's limit, with many processes that write at once, some of which are killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/cache/cache.h"
#include "runtime/cache/ledger.h"
#include "tests/soak.h"
#include "tests/temporary_folder.h"
#include "tests/unit/runtime/example_artifact.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

Artifact record_number(int number) {
  Artifact a = example::add(4);
  a.graph_key = digest_of(std::to_string(number));
  return a;
}

constexpr std::chrono::seconds patience(10);

class CacheLimit : public testing::Test {
 protected:
  // All that is there; no writer is at work meanwhile, so that nothing is counted twice.
  uint64_t bytes_there() const {
    const Result<Ledger> ledger = Ledger::lock(root_, patience);
    EXPECT_TRUE(ledger.ok()) << ledger.status().message();
    uint64_t total = 0;
    for (const auto &entry : fs::recursive_directory_iterator(root_))
      if (entry.is_regular_file()) total += entry.file_size();
    return total;
  }

  const test::TemporaryFolder folder_;
  const std::string root_ = folder_.path();
  const uint64_t size_ = write_artifact(record_number(0)).size(), limit_ = 40 * size_;
};

TEST_F(CacheLimit, HoldsForManyProcessesAtAnyTime) {
  const int processes = 16, records = test::soak() ? 1000 : 25;
  std::vector<pid_t> writers;
  for (int p = 0; p < processes; ++p) {
    writers.push_back(fork());
    if (writers.back() != 0) continue;
    Cache cache(root_, limit_);
    for (int i = 0; i < records; ++i) (void)cache.publish(record_number(p * records + i));
    _exit(0);
  }
  uint64_t most = 0;
  for (int left = processes, looks = 0; left > 0; ++looks) {
    most = std::max(most, bytes_there());
    if (looks % 4 == 3 && looks / 4 < processes / 4) kill(writers[static_cast<size_t>(looks / 4)], SIGKILL);
    while (left > 0 && waitpid(-1, nullptr, WNOHANG) > 0) --left;
  }
  const uint64_t at_end = bytes_there();
  EXPECT_LT(static_cast<double>(most), 1.5 * static_cast<double>(limit_));
  EXPECT_LT(static_cast<double>(at_end), 1.1 * static_cast<double>(limit_));
  EXPECT_GT(at_end, limit_ / 2) << "it is used";
  EXPECT_EQ(Cache(root_, limit_).verify()->size(), 0u);
}

TEST_F(CacheLimit, ARecordThatDoesNotFitIsRefusedAndNothingIsEvictedForIt) {
  Cache cache(root_, size_ + size_ / 2);
  ASSERT_TRUE(cache.publish(record_number(0)).ok());
  Artifact large = record_number(1);
  large.report_json.assign(2 * size_, ' ');
  const Status status = cache.publish(large);
  EXPECT_EQ(status.code(), Code::io);
  EXPECT_NE(status.message().find("does not fit into a cache of"), std::string::npos) << status.message();
  EXPECT_EQ(cache.list()->size(), 1u);
}

TEST_F(CacheLimit, HoldsForRecordsThatAreSmallBesideIt) {
  const uint64_t limit = 100 * size_;  // a sixteenth, after which all is counted anew, is six records
  Cache cache(root_, limit);
  for (int i = 0; i < 130; ++i) {
    ASSERT_TRUE(cache.publish(record_number(i)).ok());
    ASSERT_LE(bytes_there(), limit + 1024) << i;
  }
}

TEST_F(CacheLimit, TheLedgerKeepsWhatIsReservedFromOneWriterToTheNext) {
  {
    ASSERT_TRUE(Ledger::lock(root_, patience)->reserve(0).ok());
  }
  uint64_t sum = 0;
  for (const uint64_t bytes : {100, 20, 3}) {
    Result<Ledger> ledger = Ledger::lock(root_, patience);
    ASSERT_TRUE(ledger.ok()) << ledger.status().message();
    EXPECT_EQ(ledger->total(), sum);
    EXPECT_TRUE(ledger->is_current(16 * sum));
    EXPECT_FALSE(sum > 0 && ledger->is_current(16 * sum - 16));
    ASSERT_TRUE(ledger->reserve(bytes).ok());
    sum += bytes;
    EXPECT_EQ(ledger->total(), sum);
  }
  EXPECT_EQ(Ledger::lock(root_, patience)->total(), sum);
}

TEST_F(CacheLimit, ALedgerThatIsDamagedIsCountedAnew) {
  Cache cache(root_, limit_);
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(cache.publish(record_number(i)).ok());
  ASSERT_EQ(truncate((root_ + "/ledger").c_str(), 5), 0);
  for (int i = 40; i < 50; ++i) ASSERT_TRUE(cache.publish(record_number(i)).ok());
  EXPECT_LE(bytes_there(), limit_ + 1024);
}

TEST_F(CacheLimit, AWriterThatIsStoppedDoesNotStopReaders) {
  Cache cache(root_, limit_);
  ASSERT_TRUE(cache.publish(record_number(0)).ok());
  const Result<Ledger> other_writer = Ledger::lock(root_, patience);
  const Artifact a = record_number(0);
  EXPECT_EQ(cache.find(a.graph_key, a.components, example::build, "x86-64").outcome, Outcome::hit);
}

TEST_F(CacheLimit, AWriterThatIsStoppedIsWaitedForOnce) {
  Cache cache(root_, limit_);
  {
    const Result<Ledger> stopped = Ledger::lock(root_, patience);
    const std::string locked = "another writer has kept " + root_ + "/ledger locked for ";
    EXPECT_EQ(cache.publish(record_number(0)).message(), locked + "10000 ms");
    for (int i = 1; i < 4; ++i) EXPECT_EQ(cache.publish(record_number(i)).message(), locked + "0 ms");
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(cache.publish(record_number(i)).ok()) << "it goes on";
}

}  // namespace
}  // namespace kiln
