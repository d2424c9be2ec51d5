// A stand-in for the CUDA driver's library: records calls, fails when told to, notices misuse, and runs "cubins" that
// the stand-in for NVRTC made. This is how tests get at it: the symbol kiln_standin_driver of the same library.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kiln::standin {

struct Record {
  std::string function;  // "cuLaunchKernel"
  uint64_t stream = 0;   // the handle, if the call has one; 1 and 2 are the default streams
  uint64_t object = 0;   // what it made or destroyed; the destination of a copy; the event
  uint64_t bytes = 0;
  std::string name;  // of a kernel
  uint32_t blocks = 0, threads = 0;
  std::vector<uint8_t> parameter;  // of a launch
};

class DriverControl {
 public:
  struct Settings {
    int devices = 1, major = 9, minor = 0, multiprocessors = 4;
    int max_threads = 8;  // of a block: few, since each is a coroutine
    bool memory_pools = true;
    int push_error = 0;  // of every cuCtxPushCurrent
    int busy = 0;        // so many cuStreamQuery answer that there is still work
  };
  virtual ~DriverControl() = default;
  // Forgets records, misuse and failures to come, and takes `settings`. Nothing may be live.
  virtual void reset(const Settings &settings) = 0;
  virtual std::vector<Record> records() = 0;
  // The call that comes `after` this many others fails with `error`; calls that free or destroy, and making
  // the context current, which they need, are not counted and never fail.
  virtual void fail(uint64_t after, int error) = 0;
  // What is live: "stream 7"; and what was done wrong: "cuMemFree_v2 of 0x10, which is not live".
  virtual std::vector<std::string> live() = 0;
  virtual std::vector<std::string> misuse() = 0;
};
using DriverControlFn = DriverControl *(*)();

}  // namespace kiln::standin
