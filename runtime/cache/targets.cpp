#include "runtime/cache/targets.h"

#include "runtime/cache/artifact_sections.h"
#include "runtime/cache/record.h"
#include "runtime/plan/expr_table.h"

namespace kiln {

Bytes write_targets(std::span<const Bytes> artifacts) {
  ByteWriter out;
  out.put<uint64_t>(artifacts.size());
  for (const Bytes &artifact : artifacts) out.blob(artifact);
  RecordWriter record;
  record.add(SectionKind::targets, out.take());
  return record.finish(Digest());
}

Result<std::vector<TargetBytes>> read_targets(ByteSpan file) {
  KILN_ASSIGN(const RecordReader record, RecordReader::open(file));
  std::vector<ByteSpan> artifacts = {file};
  if (record.end_of(SectionKind::targets) != 0) {
    KILN_ASSIGN(const ByteSpan section, record.section(SectionKind::targets));
    ByteReader in(section);
    artifacts = read_list<ByteSpan>(in, 8, [&](ByteSpan &artifact) { artifact = in.blob(); });
    if (!in.ok() || !in.at_end() || artifacts.empty())
      return error(Code::corrupt, record.where(SectionKind::targets), ": expected artifacts, and nothing else");
  }
  std::vector<TargetBytes> all;
  for (const ByteSpan artifact : artifacts) {
    KILN_ASSIGN(ArtifactIdentity identity, read_identity(artifact, artifact.size()));
    all.push_back({{std::move(identity.backend), std::move(identity.target)}, artifact});
  }
  return all;
}

}  // namespace kiln
