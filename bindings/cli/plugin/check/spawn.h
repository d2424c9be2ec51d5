// Processes of this program, each with a time limit: what a plugin does to one is told, and harms no other.
#pragma once
#include <string>
#include <vector>

#include "../../temporary_folder.h"

namespace kiln::cli::plugin_check {

struct Spawn {
  std::vector<std::string> words;                      // what comes behind the program's name
  std::vector<std::string> environment = inherited();  // "NAME=VALUE"
  std::string folder = {};                             // where it runs; "": here
  int seconds = 60;

  static std::vector<std::string> inherited();
};

struct Ended {
  int code = 0;        // as it exited; -1: it did not, and `how` tells why
  std::string how;     // "it was ended by signal 11 (Segmentation fault)", "it did not end within 60 s"
  std::string output;  // what it wrote to standard output
};
Ended run(const Spawn &spawn);

}  // namespace kiln::cli::plugin_check
