// Processes of this program, each with a time limit: what happens to one is told,
// and harms no other.
#pragma once
#include <csignal>
#include <string>
#include <vector>

namespace kiln::cli {

struct Spawn {
  std::vector<std::string> words;                      // what comes behind the program's name
  std::vector<std::string> environment = inherited();  // "NAME=VALUE"
  std::string folder = {};                             // where it runs; "": here
  int seconds = 60;
  const volatile std::sig_atomic_t *stop = nullptr;  // it is ended when a signal's handler sets that

  static std::vector<std::string> inherited();
};

struct Ended {
  int code = 0;        // as it exited; -1: it did not, and `how` tells why
  std::string how;     // "it was ended by signal 11 (Segmentation fault)", "it did not end within 60 s"
  std::string output;  // what it wrote to standard output
};
Ended run_process(const Spawn &spawn);

}  // namespace kiln::cli
