#include "runtime/plan/storage.h"

namespace kiln {
namespace {

// How many sizes on either side of the wanted one are compared with it before a new storage is made. The order of
// expressions puts integers first, by value, and products of the same symbols near each other, so few will do.
constexpr int max_compared = 8;

}  // namespace

bool never_above(const Expr &a, const Expr &b) { return (b - a).lower_bound().value_or(-1) >= 0; }

uint32_t StoragePool::take(const Expr &size_bytes) {
  const auto at = free_.lower_bound(size_bytes);
  auto above = at;
  for (int i = 0; i < max_compared && above != free_.end(); ++i, ++above) {
    if (never_above(size_bytes, above->first)) return take_from(above, size_bytes);
  }
  auto below = at;
  for (int i = 0; i < max_compared && below != free_.begin(); ++i) {
    --below;
    if (never_above(size_bytes, below->first) || never_above(below->first, size_bytes))
      return take_from(below, size_bytes);
  }
  storages_.push_back({size_bytes});
  return static_cast<uint32_t>(storages_.size() - 1);
}

void StoragePool::give_back(uint32_t storage) { free_[storages_[storage].size_bytes].push_back(storage); }

uint32_t StoragePool::take_from(FreeBySize::iterator bucket, const Expr &size_bytes) {
  const uint32_t storage = bucket->second.back();
  bucket->second.pop_back();
  if (bucket->second.empty()) free_.erase(bucket);
  Expr &held = storages_[storage].size_bytes;
  if (!never_above(size_bytes, held)) held = size_bytes;
  return storage;
}

}  // namespace kiln
