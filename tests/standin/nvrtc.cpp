// A stand-in for NVRTC: its "cubin" is a shared library of this machine, which the system's C++ compiler builds of the
// program under shim.h, and which the stand-in for the driver runs.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace {

constexpr int ok = 0, compilation_failed = 6;

struct Program {
  std::string source, log, code;
};

std::string read(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The entry's parameter is passed by value; whoever launches has its bytes.
std::string wrappers(const std::string &source) {
  static const std::regex entry(R"(extern "C" __global__ void __launch_bounds__\(\d+\) (\w+)\()");
  std::string text;
  for (std::sregex_iterator at(source.begin(), source.end(), entry), end; at != end; ++at) {
    const std::string name = (*at)[1];
    text +=
        "extern \"C\" __attribute__((visibility(\"default"
        "\"))) void call_" +
        name + "(const void *parameter) { " + name + "(*(const " + name + "_args *)parameter); }\n";
  }
  return text;
}

int compile(Program &program) {
  char folder[] = "/tmp/kiln-standin-XXXXXX";
  if (!mkdtemp(folder)) return compilation_failed;
  const std::filesystem::path dir(folder);
  std::ofstream(dir / "kernels.cpp") << "#include \"" KILN_SOURCE_DIR "/tests/standin/shim.h\"\n"
                                     << program.source << wrappers(program.source);
  // A program takes 0.15 s in place of 0.5: kernels run for less than what optimising them takes, and C's <math.h>
  // is short beside C++'s.
  const std::string command = "cd " + dir.string() +
                              " && c++ -std=c++17 -nostdinc++ -O0 -w -fPIC -shared -fvisibility=hidden "
                              "-ffp-contract=off -o kernels.so kernels.cpp 2> log";
  const int failed = std::system(command.c_str());
  program.log = read(dir / "log");
  if (!failed) program.code = read(dir / "kernels.so");
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
  return failed ? compilation_failed : ok;
}

}  // namespace

#define STANDIN extern "C" __attribute__((visibility("default")))

STANDIN int nvrtcVersion(int *major, int *minor) {
  const char *const version = std::getenv("KILN_STANDIN_NVRTC");  // "12.4"
  *major = *minor = 0;
  if (version) std::sscanf(version, "%d.%d", major, minor);
  return ok;
}
STANDIN int nvrtcCreateProgram(Program **program, const char *source, const char *, int, const char *const *,
                               const char *const *) {
  *program = new Program{source, "", ""};
  return ok;
}
STANDIN int nvrtcDestroyProgram(Program **program) {
  delete *program;
  *program = nullptr;
  return ok;
}
STANDIN int nvrtcCompileProgram(Program *program, int, const char *const *) { return compile(*program); }
STANDIN int nvrtcGetProgramLogSize(Program *program, size_t *size) {
  *size = program->log.size() + 1;
  return ok;
}
STANDIN int nvrtcGetProgramLog(Program *program, char *log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return ok;
}
STANDIN int nvrtcGetCUBINSize(Program *program, size_t *size) {
  *size = program->code.size();
  return ok;
}
STANDIN int nvrtcGetCUBIN(Program *program, char *code) {
  std::memcpy(code, program->code.data(), program->code.size());
  return ok;
}
STANDIN const char *nvrtcGetErrorString(int error) {
  return error == compilation_failed ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}
