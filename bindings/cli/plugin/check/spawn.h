// Processes of this program, each with a time limit: what a plugin does to one is told, and harms no other.
#pragma once
#include <string>
#include <vector>

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

// A folder of its own below the one for temporary files, that goes with all that is in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  const std::string &path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kiln::cli::plugin_check
