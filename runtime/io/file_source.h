// Which bytes of which file an array is: what names its values without reading them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "jit/base/file.h"
#include "jit/base/hash.h"

namespace kiln {

struct FileSource {
  FileStamp stamp;  // when it was mapped
  std::string path;
  uint64_t offset = 0;                // of the array's element 0, 0, ...
  bool is_settled = false;            // FileStamp's, when it was mapped
  std::optional<Digest> digest = {};  // of what somebody says that it holds: counts in place of the stamp

  Digest name() const;                     // equal only for equal values, of arrays of one type
  std::string reason_not_to_keep() const;  // what is made of it; empty: there is none
  bool is_as_it_was() const;               // the file, when it was mapped
};

// The source of an array in one of the files that are shared below; none: it lies elsewhere. Threads: any.
std::optional<FileSource> source_of(const void *data);

// Makes the arrays of a mapped file known to source_of, for the object's life.
class SharedSource {
 public:
  SharedSource() = default;
  SharedSource(const MappedFile &file, std::string path);

 private:
  struct Forget {
    void operator()(const uint8_t *begin) const;
  };
  std::unique_ptr<const uint8_t, Forget> entry_;
};

}  // namespace kiln
