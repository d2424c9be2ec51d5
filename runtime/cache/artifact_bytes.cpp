#include "runtime/cache/artifact_bytes.h"

#include <algorithm>
#include <map>

#include "jit/base/utf8.h"
#include "runtime/cache/artifact_sections.h"
#include "runtime/cache/record.h"
#include "runtime/cache/weights.h"
#include "runtime/plan/contract_format.h"
#include "runtime/plan/expr_table.h"
#include "runtime/plan/verify_plan.h"

namespace kiln {
Digest get_digest(ByteReader &in) {
  Digest digest;
  const ByteSpan bytes = in.raw(digest.bytes.size());
  std::ranges::copy(bytes, digest.bytes.begin());
  return digest;
}

namespace {

// ---- writing: one function a section

void put_digest(ByteWriter &out, const Digest &digest) { out.raw(digest.bytes); }

ByteSpan bytes_of(std::string_view text) { return {reinterpret_cast<const uint8_t *>(text.data()), text.size()}; }

Bytes write_components(const Artifact &a) {
  ByteWriter out;
  out.text(a.build_id);
  out.text(a.backend);
  out.text(a.target);
  out.put<uint64_t>(a.components.size());
  for (const KeyComponent &c : a.components) {
    out.text(c.name);
    put_digest(out, c.digest);
    out.text(c.text);
  }
  out.put<uint64_t>(a.uses.size());
  for (const Use &use : a.uses) {
    out.text(use.kind);
    out.text(use.name);
    out.text(use.identity);
  }
  return out.take();
}

Bytes write_answers(std::span<const Answer> answers) {
  ByteWriter out;
  out.put<uint64_t>(answers.size());
  for (const Answer &answer : answers) {
    out.text(answer.question);
    put_digest(out, answer.digest);
    out.text(answer.text);
  }
  return out.take();
}

// What the code is for and which inputs it writes stand here, too: they are as little the plan's to say as what the
// code relies on.
Bytes write_contracts(const Artifact &a, std::vector<Expr> &table) {
  ByteWriter out;
  out.text(a.backend);
  out.text(a.target);
  for (const auto *inputs : {&a.plan.written_inputs, &a.plan.donated_inputs}) {
    out.put<uint64_t>(inputs->size());
    for (uint32_t input : *inputs) out.put(input);
  }
  table = serialize(a.contracts, out);
  return out.take();
}

Bytes write_plan(const Plan &plan, std::span<const Expr> table) {
  ByteWriter out;
  serialize(plan, table, out);
  return out.take();
}

constexpr uint32_t kiln_kernel_use::*use_fields[] = {&kiln_kernel_use::group_threads, &kiln_kernel_use::whole_group,
                                                     &kiln_kernel_use::registers, &kiln_kernel_use::spill_bytes,
                                                     &kiln_kernel_use::shared_bytes};

// Each distinct code once, in order of first use; then the images, by numbers of codes.
Bytes write_images(std::span<const Image> images) {
  std::map<const Bytes *, uint64_t> numbers;
  std::vector<const Bytes *> codes;
  for (const Image &image : images)
    if (numbers.try_emplace(image.code.get(), codes.size()).second) codes.push_back(image.code.get());
  ByteWriter out;
  out.put<uint64_t>(codes.size());
  for (const Bytes *code : codes) out.blob(*code);
  out.put<uint64_t>(images.size());
  for (const Image &image : images) {
    put_digest(out, image.kernel_key);
    out.put<uint64_t>(numbers.at(image.code.get()));
    out.put<uint64_t>(image.entry_offset);
    out.text(image.entry);
    for (const auto field : use_fields) out.put(image.use.*field);
    out.text(image.compiler);
  }
  return out.take();
}

Bytes write_kernels(std::span<const Bytes> kernels) {
  ByteWriter out;
  out.put<uint64_t>(kernels.size());
  for (const Bytes &kernel : kernels) out.blob(kernel);
  return out.take();
}

Bytes write_constants(std::span<const TensorData> constants) {
  ByteWriter out;
  out.put<uint64_t>(constants.size());
  for (const TensorData &c : constants) {
    out.put(static_cast<uint8_t>(c.dtype));
    out.put<uint64_t>(c.shape.size());
    for (int64_t dim : c.shape) out.put(dim);
    out.blob(c.bytes);
  }
  return out.take();
}

// With the programs that run some of them.
Bytes write_graphs(const Artifact &a) {
  ByteWriter out;
  out.put<uint64_t>(a.graphs.size());
  for (const std::string &graph : a.graphs) out.text(graph);
  out.put<uint64_t>(a.programs.size());
  for (const auto &[graph, program] : a.programs) {
    out.put(graph);
    out.put(program.parameters);
    out.text(program.backend);
    out.blob(*program.blob);
  }
  return out.take();
}

Bytes write_source(const Source &source) {
  ByteWriter out;
  out.text(source.json);
  out.text(source.mark);
  out.put<uint64_t>(source.names.size());
  for (const Plan::NodeRef &node : source.names) {
    out.put<uint64_t>(node.path.size());
    for (const uint32_t step : node.path) out.put(step);
    out.text(node.name);
  }
  out.raw(write_constants(source.constants));
  return out.take();
}

Bytes write_edited(std::span<const std::string> edited) {
  ByteWriter out;
  out.put<uint64_t>(edited.size());
  for (const std::string &path : edited) out.text(path);
  return out.take();
}

// Each is the bytes of an artifact of its own.
Bytes write_entries(std::span<const Artifact::Entry> entries) {
  ByteWriter out;
  out.put<uint64_t>(entries.size());
  for (const Artifact::Entry &entry : entries) {
    out.text(entry.sizes);
    out.blob(write_artifact(*entry.artifact));
  }
  return out.take();
}

// ---- reading: the same order. A reader that ran past its end is reported once, by read_section.

Status parse_components(ByteReader &in, ArtifactIdentity &out) {
  out.build_id = in.text();
  out.backend = in.text();
  out.target = in.text();
  const uint64_t count = in.count(48);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    KeyComponent &c = out.components.emplace_back();
    c.name = in.text();
    c.digest = get_digest(in);
    c.text = in.text();
  }
  out.uses = read_list<Use>(in, 24, [&](Use &use) {
    use.kind = in.text();
    use.name = in.text();
    use.identity = in.text();
  });
  return {};
}

Status parse_answers(ByteReader &in, std::vector<Answer> &out) {
  out = read_list<Answer>(in, 48, [&](Answer &answer) {
    answer.question = in.text();
    answer.digest = get_digest(in);
    answer.text = in.text();
  });
  for (const Answer &answer : out)
    if (!is_utf8(answer.question) || !is_utf8(answer.text)) return error(Code::corrupt, "the text is not UTF-8");
  return {};
}

Status parse_images(ByteReader &in, std::vector<Image> &out) {
  std::vector<std::shared_ptr<const Bytes>> codes;
  const uint64_t code_count = in.count(8);
  for (uint64_t i = 0; i < code_count && in.ok(); ++i) {
    const ByteSpan code = in.blob();
    codes.push_back(std::make_shared<const Bytes>(code.begin(), code.end()));
  }
  const uint64_t count = in.count(64 + sizeof use_fields / sizeof *use_fields * sizeof(uint32_t));
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    Image &image = out.emplace_back();
    image.kernel_key = get_digest(in);
    const uint64_t code = in.get<uint64_t>();
    image.entry_offset = in.get<uint64_t>();
    image.entry = in.text();
    for (const auto field : use_fields) image.use.*field = in.get<uint32_t>();
    image.compiler = in.text();
    if (!in.ok()) break;
    if (code >= codes.size())
      return error(Code::corrupt, "image ", i, ": code ", code, ", expected below ", codes.size());
    image.code = codes[code];
    if (image.entry_offset >= image.code->size() && !(image.code->empty() && image.entry_offset == 0))
      return error(Code::corrupt, "image ", i, ": the entry is at ", image.entry_offset, ", expected below its size ",
                   image.code->size());
  }
  return {};
}

struct Contracts {
  std::vector<Contract> contracts;
  std::vector<uint32_t> written_inputs, donated_inputs;
  std::vector<Expr> table;  // the plan's expressions go on from it
};

Status parse_contracts_of(const Artifact &a, ByteReader &in, Contracts &out) {
  const std::string backend = in.text(), target = in.text();
  if (in.ok() && (backend != a.backend || target != a.target))
    return error(Code::corrupt, "the code is for ", backend, " and ", target, ", the artifact for ", a.backend, " and ",
                 a.target);
  for (auto *inputs : {&out.written_inputs, &out.donated_inputs})
    *inputs = read_list<uint32_t>(in, 4, [&](uint32_t &input) { input = in.get<uint32_t>(); });
  KILN_ASSIGN(out.contracts, parse_contracts(in, out.table));
  return {};
}

Status parse_kernels(ByteReader &in, std::vector<Bytes> &out) {
  const uint64_t count = in.count(8);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const ByteSpan kernel = in.blob();
    out.emplace_back(kernel.begin(), kernel.end());
  }
  return {};
}

Status parse_constants(ByteReader &in, std::vector<TensorData> &out) {
  const uint64_t count = in.count(17);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    TensorData &c = out.emplace_back();
    const int dtype = in.get<uint8_t>();
    const uint64_t rank = in.count(sizeof(int64_t));
    for (uint64_t d = 0; d < rank; ++d) c.shape.push_back(in.get<int64_t>());
    const ByteSpan bytes = in.blob();
    c.bytes.assign(bytes.begin(), bytes.end());
    if (!in.ok()) break;
    if (dtype < 1 || dtype > dtype_count) return error(Code::corrupt, "constant ", i, ": unknown dtype ", dtype);
    c.dtype = static_cast<DType>(dtype);
    if (dense_bytes(c.dtype, c.shape) != bytes.size())
      return error(Code::corrupt, "constant ", i, ": ", bytes.size(), " bytes do not fit its shape");
  }
  return {};
}

Result<Artifact> read_alone(const RecordReader &record);

// Entries have none of their own: how deep files nest is not theirs to say.
Result<Artifact> read_entry(ByteSpan bytes) {
  KILN_ASSIGN(const RecordReader record, RecordReader::open(bytes));
  if (record.end_of(SectionKind::entries) != 0) return error(Code::corrupt, "it has entries of its own");
  return read_alone(record);
}

Status parse_entries(ByteReader &in, std::vector<Artifact::Entry> &out) {
  const uint64_t count = in.count(16);
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    std::string sizes = in.text();
    const ByteSpan bytes = in.blob();
    if (!in.ok()) break;
    Result<Artifact> read = read_entry(bytes);
    if (!read.ok()) return read.take_status().with_prefix(str_cat("entry ", i, ": "));
    out.push_back({std::move(sizes), std::make_shared<const Artifact>(std::move(read).value())});
  }
  return {};
}

Status parse_graphs(ByteReader &in, Artifact &out) {
  const uint64_t count = in.count(8);
  for (uint64_t i = 0; i < count && in.ok(); ++i) out.graphs.push_back(in.text());
  const uint64_t programs = in.count(24);
  for (uint64_t i = 0; i < programs && in.ok(); ++i) {
    const auto graph = in.get<uint32_t>(), parameters = in.get<uint32_t>();
    std::string backend = in.text();
    const ByteSpan blob = in.blob();
    if (!in.ok()) break;
    if (graph >= out.graphs.size())
      return error(Code::corrupt, "program ", i, ": graph ", graph, ", expected below ", out.graphs.size());
    out.programs.emplace(
        graph, Program{std::move(backend), std::make_shared<const Bytes>(blob.begin(), blob.end()), parameters});
  }
  return {};
}

// Reads one section whole. Whatever is wrong in it is damage: the message says where.
template <class Parse>
Status read_section(const RecordReader &record, SectionKind kind, Parse parse) {
  KILN_ASSIGN(const ByteSpan bytes, record.section(kind));
  ByteReader in(bytes);
  Status status = parse(in);
  if (status.ok() && !in.ok()) status = error(Code::corrupt, "ends too early");
  if (status.ok() && !in.at_end()) status = error(Code::corrupt, "has bytes left at its end");
  return status.ok() ? Status() : error(Code::corrupt, record.where(kind), ": ", status.message());
}

Result<ArtifactIdentity> identity_of(const RecordReader &record) {
  ArtifactIdentity identity;
  identity.graph_key = record.key();
  KILN_TRY(
      read_section(record, SectionKind::components, [&](ByteReader &in) { return parse_components(in, identity); }));
  if (record.end_of(SectionKind::answers) != 0)
    KILN_TRY(read_section(record, SectionKind::answers,
                          [&](ByteReader &in) { return parse_answers(in, identity.answers); }));
  return identity;
}

Status read_text(const RecordReader &record, SectionKind kind, std::string &out) {
  KILN_ASSIGN(const ByteSpan bytes, record.section(kind));
  out.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  return {};
}

// Texts that reports have.
Status parse_edited(ByteReader &in, std::vector<std::string> &out) {
  out = read_list<std::string>(in, 8, [&](std::string &path) { path = in.text(); });
  for (const std::string &path : out)
    if (!is_utf8(path)) return error(Code::corrupt, "the text is not UTF-8");
  return {};
}

// Without its entries.
Result<Artifact> read_alone(const RecordReader &record) {
  KILN_ASSIGN(ArtifactIdentity identity, identity_of(record));
  Artifact a;
  a.graph_key = identity.graph_key;
  a.components = std::move(identity.components);
  a.uses = std::move(identity.uses);
  a.answers = std::move(identity.answers);
  a.build_id = std::move(identity.build_id);
  a.backend = std::move(identity.backend);
  a.target = std::move(identity.target);
  // The plan comes after what its numbers count.
  KILN_TRY(read_section(record, SectionKind::images, [&](ByteReader &in) { return parse_images(in, a.images); }));
  KILN_TRY(read_section(record, SectionKind::kernels, [&](ByteReader &in) { return parse_kernels(in, a.kernels); }));
  Contracts contracts;
  KILN_TRY(read_section(record, SectionKind::contracts,
                        [&](ByteReader &in) { return parse_contracts_of(a, in, contracts); }));
  a.contracts = std::move(contracts.contracts);
  if (a.kernels.size() != a.images.size())
    return error(Code::corrupt, record.where(SectionKind::kernels), ": ", a.kernels.size(), " kernels for ",
                 a.images.size(), " images");
  if (a.contracts.size() != a.images.size())
    return error(Code::corrupt, record.where(SectionKind::contracts), ": ", a.contracts.size(), " contracts for ",
                 a.images.size(), " images");
  KILN_TRY(
      read_section(record, SectionKind::constants, [&](ByteReader &in) { return parse_constants(in, a.constants); }));
  KILN_TRY(read_section(record, SectionKind::plan, [&](ByteReader &in) -> Status {
    KILN_ASSIGN(a.plan, parse_plan(in, contracts.table));
    a.plan.written_inputs = std::move(contracts.written_inputs);
    a.plan.donated_inputs = std::move(contracts.donated_inputs);
    return verify_plan(a.plan, a.contracts, a.constants);
  }));
  KILN_TRY(read_section(record, SectionKind::graph, [&](ByteReader &in) { return parse_graphs(in, a); }));
  KILN_TRY(read_text(record, SectionKind::report, a.report_json));
  // It is handed on as it is; whoever wants the graph parses it.
  if (!is_utf8(a.report_json))
    return error(Code::corrupt, record.where(SectionKind::report), ": the text is not UTF-8");
  KILN_TRY(read_section(record, SectionKind::source, [&](ByteReader &in) {
    a.source.json = in.text();
    a.source.mark = in.text();
    a.source.names = read_list<Plan::NodeRef>(in, 16, [&](Plan::NodeRef &node) {
      node.path = read_list<uint32_t>(in, 4, [&](uint32_t &step) { step = in.get<uint32_t>(); });
      node.name = in.text();
    });
    return parse_constants(in, a.source.constants);
  }));
  if (record.end_of(SectionKind::edited) != 0)
    KILN_TRY(read_section(record, SectionKind::edited, [&](ByteReader &in) { return parse_edited(in, a.edited); }));
  return a;
}

}  // namespace

Bytes write_artifact(const Artifact &artifact) { return write_artifact(artifact, artifact.entries); }

namespace {

RecordWriter record_of(const Artifact &artifact, std::span<const Artifact::Entry> entries) {
  RecordWriter record;
  std::vector<Expr> table;
  Bytes contracts = write_contracts(artifact, table);
  // Before the others: a lookup that finds another's reads no more.
  if (!artifact.answers.empty()) record.add(SectionKind::answers, write_answers(artifact.answers));
  record.add(SectionKind::components, write_components(artifact));
  record.add(SectionKind::plan, write_plan(artifact.plan, table));
  record.add(SectionKind::images, write_images(artifact.images));
  record.add(SectionKind::contracts, std::move(contracts));
  record.add(SectionKind::kernels, write_kernels(artifact.kernels));
  record.add(SectionKind::constants, write_constants(artifact.constants));
  record.add(SectionKind::graph, write_graphs(artifact));
  const ByteSpan report = bytes_of(artifact.report_json);
  record.add(SectionKind::report, Bytes(report.begin(), report.end()));
  record.add(SectionKind::source, write_source(artifact.source));
  if (!artifact.edited.empty()) record.add(SectionKind::edited, write_edited(artifact.edited));
  if (!entries.empty()) record.add(SectionKind::entries, write_entries(entries));
  return record;
}

}  // namespace

Bytes write_artifact(const Artifact &artifact, std::span<const Artifact::Entry> entries) {
  return record_of(artifact, entries).finish(artifact.graph_key);
}

Bytes write_artifact(const Artifact &artifact, std::span<const Artifact::Entry> entries, const WeightsImage &weights) {
  RecordWriter record = record_of(artifact, entries);
  add_weights(record, weights);
  return record.finish(artifact.graph_key);
}

Result<ArtifactIdentity> read_identity(ByteSpan first, uint64_t length) {
  KILN_ASSIGN(const RecordReader record, RecordReader::open(first, length));
  return identity_of(record);
}

Result<Artifact> read_artifact(ByteSpan bytes) {
  KILN_ASSIGN(const RecordReader record, RecordReader::open(bytes));
  KILN_ASSIGN(Artifact a, read_alone(record));
  if (record.end_of(SectionKind::entries) != 0)
    KILN_TRY(read_section(record, SectionKind::entries, [&](ByteReader &in) { return parse_entries(in, a.entries); }));
  return a;
}

Bytes write_kernel_images(std::span<const Image> images) {
  RecordWriter record;
  record.add(SectionKind::images, write_images(images));
  return record.finish(images.front().kernel_key);
}

Result<std::vector<Image>> read_kernel_images(ByteSpan bytes) {
  KILN_ASSIGN(const RecordReader record, RecordReader::open(bytes));
  std::vector<Image> images;
  KILN_TRY(read_section(record, SectionKind::images, [&](ByteReader &in) { return parse_images(in, images); }));
  if (images.empty() || images.front().kernel_key != record.key())
    return error(Code::corrupt, record.where(SectionKind::images), ": expected images, the first of the file's key");
  return images;
}

}  // namespace kiln
