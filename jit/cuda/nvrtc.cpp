#include "jit/cuda/nvrtc.h"

#include <array>
#include <utility>

#include "jit/base/dynamic_library.h"
#include "jit/base/env.h"
#include "jit/base/json_writer.h"

namespace kiln::cuda {

// Declared here from NVRTC's documented C API, since its header may not be there: every function returns 0 on success.
struct Nvrtc::Functions {
  using Program = struct nvrtc_program *;
  int (*version)(int *, int *);
  int (*create)(Program *, const char *source, const char *name, int headers, const char *const *, const char *const *);
  int (*destroy)(Program *);
  int (*compile)(Program, int options, const char *const *);
  int (*log_size)(Program, size_t *);
  int (*log)(Program, char *);
  int (*cubin_size)(Program, size_t *);
  int (*cubin)(Program, char *);
  const char *(*error_text)(int);
};

namespace {

std::vector<std::string> candidates() {
  if (const auto given = env_text(Env::KILN_NVRTC)) return {*given};
  const std::array names = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  std::vector<std::string> paths(names.begin(), names.end());
  for (const std::string &root :
       {env_text(Env::CUDA_HOME).value_or(""), env_text(Env::CUDA_PATH).value_or(""), std::string("/usr/local/cuda")}) {
    for (const char *name : names) {
      if (!root.empty()) paths.push_back(root + "/lib64/" + name);
    }
  }
  return paths;
}

// A program, destroyed when it goes out of scope.
struct ProgramHolder {
  int (*destroy)(struct nvrtc_program **);
  struct nvrtc_program *program = nullptr;
  ~ProgramHolder() {
    if (program) destroy(&program);
  }
};

// The first line of the log that tells an error: "kiln.cu(12): error: identifier "x" is undefined".
std::string_view first_error(std::string_view log) {
  for (size_t begin = 0; begin < log.size();) {
    const std::string_view line = log.substr(begin, log.find('\n', begin) - begin);
    if (line.find("error") != std::string_view::npos) return line;
    begin += line.size() + 1;
  }
  return log.substr(0, log.find('\n'));
}

}  // namespace

Result<Nvrtc> Nvrtc::open() {
  std::string reason;  // the loader's words about the first candidate: the others are guesses
  for (const std::string &path : candidates()) {
    Result<DynamicLibrary> library = DynamicLibrary::open(path);
    if (library.status().code() == Code::out_of_memory) return library.take_status();
    if (!library.ok()) {
      if (reason.empty()) reason = library.status().message();
      continue;
    }
    auto functions = std::make_shared<Functions>();
    Status status;
    const auto find = [&]<class F>(F &function, const char *name) {
      Result<F> symbol = library->symbol<F>(name);
      if (symbol.ok())
        function = *symbol;
      else if (status.ok())
        status = symbol.take_status();
    };
    find(functions->version, "nvrtcVersion");
    find(functions->create, "nvrtcCreateProgram");
    find(functions->destroy, "nvrtcDestroyProgram");
    find(functions->compile, "nvrtcCompileProgram");
    find(functions->log_size, "nvrtcGetProgramLogSize");
    find(functions->log, "nvrtcGetProgramLog");
    find(functions->cubin_size, "nvrtcGetCUBINSize");
    find(functions->cubin, "nvrtcGetCUBIN");
    find(functions->error_text, "nvrtcGetErrorString");
    if (!status.ok()) return std::move(status).with_prefix("[nvrtc] " + path + ": ");
    Nvrtc nvrtc;
    functions->version(&nvrtc.major_, &nvrtc.minor_);
    nvrtc.functions_ = std::move(functions);
    return nvrtc;
  }
  return error(Code::unimplemented, "[nvrtc] no NVRTC library was found: ", reason, "; tried ",
               join(candidates(), ", ", [](const std::string &s) { return s; }),
               "; KILN_NVRTC can name the file, CUDA_HOME the toolkit's folder");
}

Result<Cubin> Nvrtc::compile(const std::string &source, std::string_view arch) const {
  const Functions &f = *functions_;
  ProgramHolder holder{f.destroy};
  const std::string arch_option = str_cat("--gpu-architecture=", arch);
  const std::array options = {arch_option.c_str(), "--std=c++17", "--fmad=false", "--ptxas-options=-v"};
  const auto failure = [&](int code, std::string_view log) {
    const std::string_view first = first_error(log);
    Status status = error(Code::internal, "[nvrtc] ", f.error_text(code), " for ", arch, first.empty() ? "" : ": ",
                          first, " (the error's report has log, options and source)");
    JsonWriter report;
    report.begin_object().member("log", log).key("options").begin_list();
    for (const char *option : options) report.value(option);
    report.end_list().member("source", source).end_object();
    status.info()->report = report.take();
    return status;
  };
  if (int code = f.create(&holder.program, source.c_str(), "kiln.cu", 0, nullptr, nullptr)) return failure(code, "");
  const int compiled = f.compile(holder.program, static_cast<int>(options.size()), options.data());
  Cubin cubin;
  size_t size = 0;
  if (f.log_size(holder.program, &size) == 0 && size > 1) {
    cubin.log.resize(size);
    f.log(holder.program, cubin.log.data());
    cubin.log.resize(size - 1);  // the terminator
  }
  if (compiled) return failure(compiled, cubin.log);
  if (int code = f.cubin_size(holder.program, &size)) return failure(code, cubin.log);
  cubin.code.resize(size);
  if (int code = f.cubin(holder.program, reinterpret_cast<char *>(cubin.code.data()))) return failure(code, cubin.log);
  cubin.entries = parse_ptxas_log(cubin.log);
  return cubin;
}

// The lines read: "... Compiling entry function 'NAME' for 'sm_90'", then "... 0 bytes stack frame, 4 bytes spill
// stores, 8 bytes spill loads", then "... Used 32 registers, ... 64 bytes smem ...".
std::vector<EntryUse> parse_ptxas_log(std::string_view log) {
  std::vector<EntryUse> entries;
  const auto number_before = [](std::string_view line, std::string_view words) -> uint32_t {
    const size_t at = line.find(words);
    if (at == std::string_view::npos) return 0;
    size_t begin = at;
    while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
    uint32_t number = 0;
    for (char c : line.substr(begin, at - begin)) number = number * 10 + static_cast<uint32_t>(c - '0');
    return number;
  };
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    constexpr std::string_view head = "Compiling entry function '";
    if (const size_t at = line.find(head); at != std::string_view::npos) {
      const std::string_view name = line.substr(at + head.size());
      entries.push_back({.name = std::string(name.substr(0, name.find('\''))),
                         .registers = 0,
                         .shared_bytes = 0,
                         .spill_store_bytes = 0,
                         .spill_load_bytes = 0});
    } else if (!entries.empty() && line.find(" bytes spill stores") != std::string_view::npos) {
      entries.back().spill_store_bytes = number_before(line, " bytes spill stores");
      entries.back().spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (!entries.empty() && line.find("Used ") != std::string_view::npos) {
      entries.back().registers = number_before(line, " registers");
      entries.back().shared_bytes = number_before(line, " bytes smem");
    }
  }
  return entries;
}

}  // namespace kiln::cuda
