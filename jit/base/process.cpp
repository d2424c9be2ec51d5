#include "jit/base/process.h"

#include <atomic>
#include <cerrno>
#include <ctime>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "jit/base/float_environment.h"

namespace kiln {

// All AtFork objects, and the number of the process. Constant at start and never destroyed, because
// threads may use it while the process exits.
struct ForkList {
  std::mutex mutex;
  AtFork *newest = nullptr;
  std::atomic<uint64_t> process_number{1};  // one more in each forked child

  void add(AtFork &entry);
  void remove(AtFork &entry);
  static void before_fork();
  static void after_fork(std::function<void()> AtFork::Hooks::*hook);
  static void after_fork_in_parent();
  static void after_fork_in_child();
};

namespace {

constinit ForkList fork_list;

// Of each thread, whatever the host's limit on stacks, which would be the size otherwise.
constexpr size_t stack_bytes = size_t{8} << 20;

struct ThreadStart {
  const char *name;
  std::function<void()> body;
};

void *thread_main(void *argument) {
  const std::unique_ptr<ThreadStart> start(static_cast<ThreadStart *>(argument));
  pthread_setname_np(pthread_self(), start->name);
  FloatEnvironment::standard().set();  // a thread inherits its starter's
  start->body();
  return nullptr;
}

}  // namespace

void ForkList::add(AtFork &entry) {
  const std::lock_guard lock(mutex);
  entry.older_ = newest;
  if (newest) newest->newer_ = &entry;
  newest = &entry;
}

void ForkList::remove(AtFork &entry) {
  const std::lock_guard lock(mutex);
  (entry.newer_ ? entry.newer_->older_ : newest) = entry.older_;
  if (entry.older_) entry.older_->newer_ = entry.newer_;
}

void ForkList::before_fork() {
  fork_list.mutex.lock();  // until the hooks after the fork have run
  for (AtFork *entry = fork_list.newest; entry; entry = entry->older_)
    if (entry->hooks_.before) entry->hooks_.before();
}

void ForkList::after_fork(std::function<void()> AtFork::Hooks::*hook) {
  AtFork *oldest = fork_list.newest;
  while (oldest && oldest->older_) oldest = oldest->older_;
  for (AtFork *entry = oldest; entry; entry = entry->newer_)
    if (entry->hooks_.*hook) (entry->hooks_.*hook)();
  fork_list.mutex.unlock();
}

void ForkList::after_fork_in_parent() { after_fork(&AtFork::Hooks::in_parent); }

void ForkList::after_fork_in_child() {
  ++fork_list.process_number;
  after_fork(&AtFork::Hooks::in_child);
}

namespace {

// As the library is loaded, when it holds no lock. A failure (no memory) leaves forks as they would be without: nothing
// better can be done.
[[gnu::constructor]] void listen_to_forks() {
  (void)pthread_atfork(ForkList::before_fork, ForkList::after_fork_in_parent, ForkList::after_fork_in_child);
}

}  // namespace

AtFork::AtFork(Hooks hooks) : hooks_(std::move(hooks)) { fork_list.add(*this); }
AtFork::~AtFork() { fork_list.remove(*this); }

Thread Thread::start(const char *name, std::function<void()> body) noexcept {
  Thread thread;
  std::unique_ptr<ThreadStart> start(new (std::nothrow) ThreadStart{name, std::move(body)});
  if (!start) return thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // which the new thread inherits
  if (pthread_create(&thread.handle_, &attributes, thread_main, start.get()) == 0) {
    (void)start.release();
    thread.process_ = fork_list.process_number;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return thread;
}

Thread::Thread(Thread &&other) noexcept : handle_(other.handle_), process_(std::exchange(other.process_, 0)) {}

Thread &Thread::operator=(Thread &&other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(process_, other.process_);
  return *this;
}

Thread::operator bool() const { return process_ == fork_list.process_number; }

void Thread::join() {
  if (*this) pthread_join(handle_, nullptr);
  process_ = 0;
}

WriteSignalsHeld::WriteSignalsHeld() {
  sigset_t pending;
  sigemptyset(&raised_);
  sigpending(&pending);
  for (int number : {SIGXFSZ, SIGPIPE})
    if (!sigismember(&pending, number)) sigaddset(&raised_, number);
  pthread_sigmask(SIG_BLOCK, &raised_, &mask_before_);
}

WriteSignalsHeld::~WriteSignalsHeld() {
  const int number = errno;  // of the write
  constexpr timespec at_once{};
  while (sigtimedwait(&raised_, nullptr, &at_once) > 0 || errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  errno = number;
}

}  // namespace kiln

// Takes the place of __cxa_atexit in Kiln's libraries (jit/CMakeLists.txt): their static objects, LLVM's among them,
// are never destroyed, because exit() may come while threads of Kiln's, or of the host's inside Kiln, still use them.
extern "C" int __wrap___cxa_atexit(void (*)(void *), void *, void *) { return 0; }
