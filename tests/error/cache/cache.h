// What the cases of the cache share: a folder, a graph that is compiled with it and run, and the record's bytes.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <functional>

#include "tests/abi/host.h"
#include "tests/error/expect.h"
#include "tests/temporary_folder.h"

namespace refused {

// A record's section, as its table tells: see runtime/cache/record.h.
struct Section {
  std::string name;
  uint64_t entry, offset, size;  // where its entry in the table is; where its bytes are
};

// A file of Kiln's (a record of the cache, or a saved artifact), to be damaged.
class File {
 public:
  explicit File(std::filesystem::path path) : path_(std::move(path)), bytes_(read_file(path_)) {}

  std::vector<Section> sections() const {
    static constexpr const char *names[] = {"components", "plan",   "images",    "kernels", "constants",
                                            "graph",      "report", "contracts", "source",  "entries"};
    std::vector<Section> all;
    for (uint32_t i = 0; i < get<uint32_t>(12); i++) {
      const uint64_t entry = header + i * entry_size;
      all.push_back({names[get<uint32_t>(entry) - 1], entry, get<uint64_t>(entry + 8), get<uint64_t>(entry + 16)});
    }
    return all;
  }
  Section section(std::string_view name) const {
    for (const Section &section : sections())
      if (section.name == name) return section;
    ADD_FAILURE() << "no section " << name;
    return {};
  }
  uint64_t size() const { return bytes_.size(); }

  void flip(uint64_t at) {
    bytes_[at] = static_cast<char>(bytes_[at] ^ 0x10);
    write();
  }
  void cut(uint64_t size) {
    bytes_.resize(size);
    write();
  }
  // Overwrites a part of a section and makes the checksums right again: what another build, or another machine, wrote.
  void forge(std::string_view name, std::string_view old_text, std::string_view new_text) {
    const Section at = section(name);
    const size_t found = bytes_.find(old_text, at.offset);
    ASSERT_TRUE(found < at.offset + at.size && old_text.size() == new_text.size());
    bytes_.replace(found, new_text.size(), new_text);
    put(at.entry + 24, XXH3_64bits(bytes_.data() + at.offset, at.size));
    const uint64_t table = get<uint32_t>(12) * entry_size;
    put(checksum, XXH3_64bits((bytes_.substr(0, checksum) + bytes_.substr(header, table)).data(), checksum + table));
    write();
  }
  void write() const { std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes_; }

 private:
  static constexpr uint64_t checksum = 56, header = 64, entry_size = 32;

  template <class T>
  T get(uint64_t at) const {
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return value;
  }
  void put(uint64_t at, uint64_t value) { std::memcpy(bytes_.data() + at, &value, sizeof value); }

  std::filesystem::path path_;
  std::string bytes_;
};

// A folder of its own, and a graph of which every section of a record has something.
class CacheCase : public testing::Test {
 protected:
  // Compiles with the cache in a context of its own, which saves and is closed; checks what a run gives.
  struct Outcome {
    std::string lookup, reason;
    int64_t kernels_compiled = 0, kernels_from_cache = 0;
    host::Error close;  // what closing the context told: saves that failed
  };
  Outcome compile(const char *backend = "cpu") { return compile_in(folder_.string(), backend); }
  static Outcome compile_in(const std::string &folder, const char *backend = "cpu") {
    const host::Context context = host::make_context(folder);
    const host::Graph graph = host::parse(context.get(), graph_json);
    const host::Compiled compiled = host::compile(context.get(), graph.get(), [&](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "backend", 7, backend, std::strlen(backend)));
    });
    EXPECT_EQ(compiled.error, host::Error());
    if (!compiled.executable) return {};
    expect_right(compiled.executable.get());
    Outcome outcome{host::text(compiled.report, "lookup"),
                    host::text(compiled.report, "reason"),
                    host::i64(compiled.report, "kernels_compiled"),
                    host::i64(compiled.report, "kernels_from_cache"),
                    {}};
    outcome.close = host::take(kiln_context_close(context.get()));
    return outcome;
  }
  static void expect_right(kiln_executable *executable) {
    kiln_call *made = nullptr;
    ASSERT_OK(kiln_call_create(executable, &made));
    const host::Call call(made);
    const host::Array x({1, 2}, {1, -2}), y({1, 2}, {0, 0});
    const DLTensor *args[] = {&x.tensor, &y.tensor};
    ASSERT_OK(kiln_call_run(made, args, 2, nullptr));
    EXPECT_EQ(y.values, (std::vector<float>{9, 22}));
  }

  // Files below the cache's folder that end so.
  std::vector<std::filesystem::path> files(std::string_view ending) const {
    std::vector<std::filesystem::path> found;
    if (!std::filesystem::exists(folder_)) return found;
    for (const auto &file : std::filesystem::recursive_directory_iterator(folder_))
      if (file.is_regular_file() && file.path().extension() == ending) found.push_back(file.path());
    return found;
  }
  std::filesystem::path record() const {
    const std::vector<std::filesystem::path> found = files(".kiln");
    EXPECT_EQ(found.size(), 1u);
    return found.empty() ? std::filesystem::path() : found.front();
  }

  // The damaged record is told of, put aside, made again and saved; the result is right each time.
  void expect_compiled_again(const std::string &reason, const char *backend = "cpu", size_t files_aside = 1) {
    const Outcome again = compile(backend);
    EXPECT_EQ(again.lookup, "REJECT");
    EXPECT_EQ(again.reason, reason);
    EXPECT_EQ(again.close, host::Error());
    EXPECT_EQ(files(".bad").size(), files_aside);
    EXPECT_EQ(compile(backend).lookup, "HIT");
  }

  // The record, taken for an artifact, is refused, and nothing is loaded.
  static void expect_no_artifact(const std::string &path, const std::string &code, const std::string &message) {
    const host::Context context = host::make_context();
    kiln_executable *executable = nullptr;
    EXPECT_REFUSED(host::take(kiln_executable_open(context.get(), path.data(), path.size(), nullptr, &executable)),
                   code, path + ": " + message);
    EXPECT_EQ(executable, nullptr);
  }
  void expect_no_artifact_when_flipped(const std::string &name) {
    compile();
    File file(record());
    const Section section = file.section(name);
    file.flip(section.offset + section.size / 2);
    expect_no_artifact(record().string(), "CORRUPT",
                       "section '" + name + "' at offset " + std::to_string(section.offset) + ": wrong checksum");
  }
  void expect_compiled_again_when_flipped(const std::string &name, const char *backend = "cpu") {
    EXPECT_EQ(compile(backend).lookup, "MISS");
    File file(record());
    const Section section = file.section(name);
    file.flip(section.offset + section.size / 2);
    expect_compiled_again("the record is damaged: section '" + name + "' at offset " + std::to_string(section.offset) +
                              ": wrong checksum",
                          backend);
  }
  void expect_compiled_again_when_cut_in(const std::string &name, const char *backend = "cpu") {
    EXPECT_EQ(compile(backend).lookup, "MISS");
    File file(record());
    const Section section = file.section(name);
    const uint64_t whole = file.size(), left = section.offset + section.size / 2;
    file.cut(left);
    expect_compiled_again("the record is damaged: header at offset 16: " + std::to_string(left) + " bytes, expected " +
                              std::to_string(whole),
                          backend);
  }
  // "target" or "build_id" of the library under test.
  static std::string of_this_build(std::string_view what) {
    kiln_report *made = nullptr;
    EXPECT_OK(kiln_build_report(&made));
    return host::text(host::Report(made), what);
  }

  static constexpr std::string_view graph_json = R"({"kiln": 1,
    "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
    "constants": [{"name": "c", "type": {"dtype": "f32", "shape": [2]}, "data": [10, 20]}],
    "nodes": [{"name": "y", "op": "sub", "inputs": ["c", "x"]}],
    "outputs": [{"name": "y", "value": "y"}]})";
  const kiln::test::TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.file("cache");
};

}  // namespace refused
