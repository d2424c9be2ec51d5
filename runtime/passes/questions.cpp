#include "runtime/passes/questions.h"

#include "jit/base/env.h"
#include "jit/base/hex.h"
#include "jit/base/utf8.h"
#include "runtime/passes/pass.h"

namespace kiln {
namespace {

constexpr std::string_view of_env = "env.", of_file = "file.", of_host = "host.", of_device = "device.",
                           of_compile = "compile.";

Status not_among(const AttrMap &answers, std::string_view question, bool is_of_device) {
  const std::string names = join(answers, ", ", [](const auto &answer) { return answer.first; });
  if (is_of_device) return error(Code::unknown_name, "'", printable(question), "': the device has ", names);
  return error(Code::unknown_name, "'", printable(question), "': the compile has ", names, " and, inside of a run, ",
               question_of_region, ", ", question_of_stage);
}

Result<std::optional<AttrValue>> read_env(std::string_view question) {
  std::optional<std::string> value = env_of_others(std::string(question.substr(of_env.size())));
  if (!value) return std::optional<AttrValue>();
  if (!is_utf8(*value)) return invalid("'", printable(question), "': the value is not UTF-8");
  return std::optional(AttrValue(*std::move(value)));
}

}  // namespace

Result<Questions::Given> Questions::find(std::string_view question) {
  const auto is_of = [&](std::string_view kind) { return question.size() > kind.size() && question.starts_with(kind); };
  Given given;
  if (is_of(of_env)) {
    KILN_ASSIGN(given.value, read_env(question));
  } else if (is_of(of_file)) {
    KILN_ASSIGN(given.file, sources_.files->of(std::string(question.substr(of_file.size()))));
    if (given.file) given.value = given.file->digest.hex();
  } else if (is_of(of_host) || is_of(of_device) || is_of(of_compile)) {
    if (is_of(of_device) && !device_) {
      KILN_ASSIGN(device_, sources_.device ? sources_.device() : AttrMap());
    }
    if (is_of(of_compile) && !compile_) compile_ = sources_.compile ? sources_.compile() : AttrMap();
    const AttrMap &answers = is_of(of_host) ? *sources_.facts : is_of(of_device) ? *device_ : *compile_;
    const auto found = answers.find(question);
    if (found != answers.end()) given.value = found->second;
    if (!given.value && !is_of(of_host)) return not_among(answers, question, is_of(of_device));
  } else {
    return error(Code::unknown_name, "'", printable(question), "' is no question: expected env.NAME, file.PATH, ",
                 "host.NAME, device.NAME or compile.NAME");
  }
  return given;
}

Result<const std::optional<AttrValue> *> Questions::ask(std::string_view question) {
  const auto known = given_.find(question);
  if (known != given_.end()) return &known->second.value;
  KILN_ASSIGN(Given given, find(question));
  return &given_.emplace(question, std::move(given)).first->second.value;
}

Result<Answer> Questions::answer(const std::string &question) {
  KILN_ASSIGN(const std::optional<AttrValue> *value, ask(question));
  ByteWriter bytes;
  bytes.text(question);
  bytes.put(static_cast<uint8_t>(value->has_value()));
  if (*value) write_value(**value, bytes);
  Answer answer{question, digest_of(bytes.bytes()), "none"};
  if (*value && question.starts_with(of_env)) {
    answer.text = str_cat("digest ", hex_of(std::span(answer.digest.bytes).first(8)));
  } else if (*value && question.starts_with(of_file)) {
    answer.text = str_cat("digest ", (*value)->text_value().substr(0, 16));
  } else if (*value) {
    answer.text = (*value)->text();
  }
  return answer;
}

Result<std::vector<Answer>> Questions::answers(const Asked &questions) {
  std::vector<Answer> answers;
  answers.reserve(questions.size());
  for (const std::string &question : questions) {
    KILN_ASSIGN(Answer given, answer(question));
    answers.push_back(std::move(given));
  }
  return answers;
}

std::vector<FileDigests::Known> Questions::settled_files(const Asked &questions) const {
  std::vector<FileDigests::Known> files;
  for (const std::string &question : questions)
    if (const auto given = given_.find(question); given != given_.end())
      if (const auto &file = given->second.file; file && file->is_settled) files.push_back(*file);
  return files;
}

void Questions::answer_compile_by(std::function<AttrMap()> compile) {
  sources_.compile = std::move(compile);
  compile_.reset();
  std::erase_if(given_, [](const auto &given) { return given.first.starts_with(of_compile); });
}

std::string Questions::changed_file(const Asked &questions) const {
  for (const std::string &question : questions) {
    if (!question.starts_with(of_file)) continue;
    const auto given = given_.find(question);
    if (given == given_.end()) continue;
    const std::string path = question.substr(of_file.size());
    const std::optional<FileStamp> now = FileStamp::of(path);
    const std::optional<FileDigests::Known> &was = given->second.file;
    if (now.has_value() != was.has_value() || (now && *now != was->stamp)) return path;
  }
  return "";
}

}  // namespace kiln
