// kiln pack and kiln unpack: an artifact as one file, or as a folder that a person reads and edits.
#include "commands.h"
#include "session.h"

namespace kiln::cli {
namespace {

constexpr Flag pack_flags[] = {
    {"--output", "PATH", "the file or folder to write", false, "-o"},
    plugin_flag,
    plugin_option_flag,
};

int save(const Args &args, bool packed) {
  const auto output = args.get("--output");
  if (!output) throw Usage(packed ? "give the file to write: -o ARTIFACT" : "give the folder to write: -o FOLDER");
  const Session session(args);
  const std::string &path = args.operands()[0];
  const Subject subject = load(session, path);
  if (subject.graph) throw Usage(path + " is a graph; kiln compile makes an artifact of it");
  const Report description = report_of(kiln_executable_describe, subject.executable.get());
  if (description.has("targets") && description.count("targets") > 1)
    throw Failure(
        path +
            ": it is for several targets, of which only what fits this machine was loaded, and would be kept; "
            "kiln compile makes it in either form",
        KILN_UNIMPLEMENTED);
  Options options;
  options.set("packed", packed);
  check(kiln_executable_save(subject.executable.get(), output->data(), output->size(), options.get()));
  return 0;
}

int pack(const Args &args) { return save(args, true); }
int unpack(const Args &args) { return save(args, false); }

}  // namespace

const Command pack_command{
    "pack",
    "FOLDER -o ARTIFACT",
    "Makes one file of an unpacked artifact. What was edited in it is compiled or checked before.",
    1,
    1,
    pack_flags,
    pack};

const Command unpack_command{
    "unpack", "ARTIFACT -o FOLDER", "Makes a folder of an artifact that can be read and edited.", 1, 1, pack_flags,
    unpack};

}  // namespace kiln::cli
