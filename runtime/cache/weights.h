// The parameters that an artifact's file has behind its program: a table that is read with the program, and the data,
// which is mapped: values as they were bound, and what programs prepare of them. What the numbers speak of is
// exec/weights.h's matter.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jit/base/dtype.h"
#include "jit/base/file.h"
#include "jit/base/hash.h"
#include "jit/base/status.h"
#include "runtime/cache/blocks.h"

namespace kiln {

inline constexpr uint64_t weights_alignment = 64;  // of each in the data, in bytes

struct WeightsTable {
  struct Parameter {
    uint32_t number = 0;      // of the plan's
    bool has_values = false;  // or else only what was prepared of it is there
    DType dtype = DType::f32;
    std::vector<int64_t> dims, strides;  // strides in elements
    uint64_t offset = 0, bytes = 0;      // of its lowest element, in the data; 0 without values
  };
  struct Part {
    Digest name;  // what it is and of which parameters: equal only for equal bytes
    std::vector<uint32_t> parameters;
    uint64_t offset = 0, bytes = 0;
  };
  std::vector<Parameter> parameters;  // by number
  std::vector<Part> parts;
};

// What is to be written.
struct WeightsImage {
  WeightsTable table;
  std::vector<PlacedBytes> pieces;  // the data
  uint64_t size = 0;
  std::vector<std::shared_ptr<const void>> memory = {};  // of the pieces
};
// What a record gets of them: its three last sections; the data is to follow what finish() returns.
void add_weights(RecordWriter &record, const WeightsImage &image);
bool has_weights(ByteSpan artifact);
// The table, and where the data is. code corrupt, with the section and where in it.
Result<WeightsTable> read_weights(ByteSpan artifact, BlocksHead &head);

// Read from an artifact's file, which stays mapped for the object's life. Threads: any.
class Weights : public SummedBytes {
 public:
  // Of a file that is one artifact with weights. As read_weights.
  static Result<std::shared_ptr<const Weights>> open(std::shared_ptr<const MappedFile> file, std::string path);

  const WeightsTable &table() const { return table_; }
  const std::string &path() const { return path_; }  // when it was opened
  // The data did not verify: nobody may use it from now on. False: it was so before.
  bool reject() const { return !is_rejected_.exchange(true); }
  bool is_rejected() const { return is_rejected_; }

 private:
  Weights(std::shared_ptr<const MappedFile> file, std::string path, BlocksHead head, WeightsTable table);

  const std::shared_ptr<const MappedFile> file_;
  const std::string path_;
  const WeightsTable table_;
  mutable std::atomic<bool> is_rejected_ = false;
};

}  // namespace kiln
