// Artifacts that compiles with one Cache are making, and what waits to be written: artifacts, kernels. A compile of the
// same key takes it instead of making it again. Others, in this process or not, find a record once it is on disk.
// Threads: all methods from any thread.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "jit/base/process.h"
#include "jit/base/status.h"
#include "runtime/plan/artifact.h"

namespace kiln {

class InFlight {
  struct Entry {
    bool over = false;  // made, or given up
    std::shared_ptr<const Artifact> artifact = nullptr;
  };

 public:
  // The duty to make what a key names. Ends with made() or found(); destroyed before, it passes to one who waits.
  class Lead {
   public:
    Lead() = default;  // nobody's
    Lead(Lead &&other) noexcept { std::swap(of_, other.of_), std::swap(key_, other.key_), entry_.swap(other.entry_); }
    Lead &operator=(Lead &&other) noexcept;
    ~Lead() { end(nullptr, false); }
    explicit operator bool() const { return entry_ != nullptr; }
    // Whoever asks for the key from now on is given the artifact, until it is written().
    void made(std::shared_ptr<const Artifact> artifact) { end(std::move(artifact), true); }
    // It was on disk: only those who wait are given it.
    void found(std::shared_ptr<const Artifact> artifact) { end(std::move(artifact), false); }

   private:
    friend class InFlight;
    void end(std::shared_ptr<const Artifact> artifact, bool keep);
    InFlight *of_ = nullptr;
    Digest key_;
    std::shared_ptr<Entry> entry_;
  };

  InFlight() = default;
  InFlight(const InFlight &) = delete;
  InFlight &operator=(const InFlight &) = delete;

  struct Entered {
    std::shared_ptr<const Artifact> artifact = nullptr;  // what another compile made
    Lead lead = {};  // without an artifact: the caller makes it. Nobody's: for itself alone, because it may not wait
  };
  // Waits while another compile makes what `key` names, and asks from time to time whether to go on; its error is
  // returned. What foreign code calls from within a compile never waits (InCallback), for then two could wait for one
  // another, or one for itself.
  // What another made is given to whom it `suits`: passes may have been answered otherwise there. Whom none does makes
  // its own, beside them. Neither function is called with a lock held.
  Result<Entered> enter(const Digest &key, const std::function<Status()> &ask,
                        const std::function<bool(const Artifact &)> &suits);
  // A record of it can be read, or never will be.
  void written(const std::shared_ptr<const Artifact> &artifact);

  // Images that are to be written; whoever asks for one of their keys gets it, until they are.
  void add_kernels(std::span<const Image> images);
  std::optional<Image> find_kernel(const Digest &key);
  void kernels_written(std::span<const Image> images);

 private:
  std::mutex mutex_;  // of all below
  std::condition_variable wake_;
  std::multimap<Digest, std::shared_ptr<Entry>> entries_;  // of a key several, where passes were answered otherwise
  std::map<Digest, Image> kernels_;

  void erase(const Digest &key, const std::function<bool(const Entry &)> &is_it);  // the first such; locked
  void in_forked_child();
  const AtFork at_fork_{{.before = [this] { mutex_.lock(); },
                         .in_parent = [this] { mutex_.unlock(); },
                         .in_child = [this] { in_forked_child(); }}};
};

}  // namespace kiln
