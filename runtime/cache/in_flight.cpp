#include "runtime/cache/in_flight.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <set>
#include <utility>

#include "jit/base/callback.h"

namespace kiln {

InFlight::Lead &InFlight::Lead::operator=(Lead &&other) noexcept {
  Lead taken(std::move(other));
  std::swap(of_, taken.of_), std::swap(key_, taken.key_), entry_.swap(taken.entry_);
  return *this;
}

void InFlight::Lead::end(std::shared_ptr<const Artifact> artifact, bool keep) {
  if (!entry_) return;
  const std::lock_guard lock(of_->mutex_);
  entry_->over = true;
  entry_->artifact = std::move(artifact);
  // In a forked child it may be gone.
  if (!keep) of_->erase(key_, [&](const Entry &entry) { return &entry == entry_.get(); });
  of_->wake_.notify_all();
  entry_ = nullptr;
}

Result<InFlight::Entered> InFlight::enter(const Digest &key, const std::function<Status()> &ask,
                                          const std::function<bool(const Artifact &)> &suits) {
  constexpr auto between_questions = std::chrono::milliseconds(20);
  std::set<std::shared_ptr<Entry>> unsuited;
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto [begin, end] = entries_.equal_range(key);
    const auto there = std::find_if(begin, end, [&](const auto &entry) { return !unsuited.contains(entry.second); });
    if (there == end) {
      Entered entered;
      entered.lead.entry_ = entries_.emplace(key, std::make_shared<Entry>())->second;
      entered.lead.of_ = this;
      entered.lead.key_ = key;
      return entered;
    }
    const std::shared_ptr<Entry> other = there->second;
    if (!other->over && InCallback::here()) return Entered();
    while (!other->over) {
      wake_.wait_for(lock, between_questions);
      if (other->over) break;
      lock.unlock();
      KILN_TRY(ask());
      lock.lock();
    }
    if (!other->artifact) continue;
    lock.unlock();
    if (suits(*other->artifact)) return Entered{.artifact = other->artifact};
    unsuited.insert(other);
    lock.lock();
  }
}

void InFlight::written(const std::shared_ptr<const Artifact> &artifact) {
  const std::lock_guard lock(mutex_);
  erase(artifact->graph_key, [&](const Entry &entry) { return entry.artifact == artifact; });
}

void InFlight::erase(const Digest &key, const std::function<bool(const Entry &)> &is_it) {
  const auto [begin, end] = entries_.equal_range(key);
  const auto found = std::find_if(begin, end, [&](const auto &entry) { return is_it(*entry.second); });
  if (found != end) entries_.erase(found);
}

void InFlight::add_kernels(std::span<const Image> images) {
  const std::lock_guard lock(mutex_);
  for (const Image &image : images) kernels_.emplace(image.kernel_key, image);
}

std::optional<Image> InFlight::find_kernel(const Digest &key) {
  const std::lock_guard lock(mutex_);
  const auto at = kernels_.find(key);
  return at == kernels_.end() ? std::nullopt : std::optional(at->second);
}

// Of two compiles that made the same kernel at once the first to write it takes it off: it is on disk then.
void InFlight::kernels_written(std::span<const Image> images) {
  const std::lock_guard lock(mutex_);
  for (const Image &image : images) kernels_.erase(image.kernel_key);
}

void InFlight::in_forked_child() {
  kernels_.clear();
  entries_.clear();                      // their makers, and who writes what they made, are not here
  new (&wake_) std::condition_variable;  // whoever waits on the old one is not here: its destructor would wait for it
  mutex_.unlock();
}

}  // namespace kiln
