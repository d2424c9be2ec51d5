#include "runtime/cache/weights.h"

#include <algorithm>

#include "runtime/plan/expr_table.h"

namespace kiln {
namespace {

void put_numbers(ByteWriter &out, std::span<const int64_t> numbers) {
  out.put<uint64_t>(numbers.size());
  for (const int64_t number : numbers) out.put(number);
}
std::vector<int64_t> get_numbers(ByteReader &in) {
  return read_list<int64_t>(in, sizeof(int64_t), [&](int64_t &number) { number = in.get<int64_t>(); });
}

// Within `size` bytes of data.
Result<WeightsTable> parse_table(ByteReader &in, uint64_t size) {
  Status beyond;
  size_t entry = 0;
  const auto place = [&](auto &item) {
    item.offset = in.get<uint64_t>();
    item.bytes = in.get<uint64_t>();
    if (beyond.ok() && (item.offset % weights_alignment != 0 || item.offset > size || item.bytes > size - item.offset))
      beyond = error(Code::corrupt, "entry ", entry, " has ", item.bytes, " bytes at ", item.offset, " of ", size);
    ++entry;
  };
  WeightsTable table;
  table.parameters = read_list<WeightsTable::Parameter>(in, 38, [&](WeightsTable::Parameter &parameter) {
    parameter.number = in.get<uint32_t>();
    parameter.has_values = in.get<uint8_t>() != 0;
    const auto dtype = in.get<uint8_t>();
    if (dtype < 1 || dtype > dtype_count) in.fail();
    if (in.ok()) parameter.dtype = static_cast<DType>(dtype);
    parameter.dims = get_numbers(in);
    parameter.strides = get_numbers(in);
    if (parameter.dims.size() != parameter.strides.size()) in.fail();
    place(parameter);
  });
  table.parts = read_list<WeightsTable::Part>(in, 56, [&](WeightsTable::Part &part) {
    std::ranges::copy(in.raw(part.name.bytes.size()), part.name.bytes.begin());
    part.parameters = read_list<uint32_t>(in, 4, [&](uint32_t &number) { number = in.get<uint32_t>(); });
    place(part);
  });
  if (!in.ok() || !in.at_end()) return error(Code::corrupt, "expected parameters and parts, and nothing else");
  KILN_TRY(std::move(beyond));
  return table;
}

}  // namespace

void add_weights(RecordWriter &record, const WeightsImage &image) {
  const WeightsTable &table = image.table;
  ByteWriter out;
  out.put<uint64_t>(table.parameters.size());
  for (const WeightsTable::Parameter &parameter : table.parameters) {
    out.put(parameter.number);
    out.put<uint8_t>(parameter.has_values);
    out.put(static_cast<uint8_t>(parameter.dtype));
    put_numbers(out, parameter.dims);
    put_numbers(out, parameter.strides);
    out.put(parameter.offset);
    out.put(parameter.bytes);
  }
  out.put<uint64_t>(table.parts.size());
  for (const WeightsTable::Part &part : table.parts) {
    out.raw(part.name.bytes);
    out.put<uint64_t>(part.parameters.size());
    for (const uint32_t number : part.parameters) out.put(number);
    out.put(part.offset);
    out.put(part.bytes);
  }
  record.add(SectionKind::weights, out.take());
  add_blocks(record, image.pieces, image.size);
}

bool has_weights(ByteSpan artifact) {
  const Result<RecordReader> record = RecordReader::open(artifact);
  return record.ok() && record->end_of(SectionKind::weights) != 0;
}

Weights::Weights(std::shared_ptr<const MappedFile> file, std::string path, BlocksHead head, WeightsTable table)
    : SummedBytes(file->bytes().subspan(head.begin, head.size), std::move(head.sums)),
      file_(std::move(file)),
      path_(std::move(path)),
      table_(std::move(table)) {}

Result<WeightsTable> read_weights(ByteSpan artifact, BlocksHead &head) {
  KILN_ASSIGN(const RecordReader record, RecordReader::open(artifact));
  KILN_ASSIGN(head, read_blocks_head(record));
  KILN_ASSIGN(const ByteSpan section, record.section(SectionKind::weights));
  ByteReader in(section);
  Result<WeightsTable> table = parse_table(in, head.size);
  if (table.ok()) return table;
  return table.take_status().with_prefix(str_cat(record.where(SectionKind::weights), ": "));
}

Result<std::shared_ptr<const Weights>> Weights::open(std::shared_ptr<const MappedFile> file, std::string path) {
  BlocksHead head;
  KILN_ASSIGN(WeightsTable table, read_weights(file->bytes(), head));
  return std::shared_ptr<const Weights>(
      new Weights(std::move(file), std::move(path), std::move(head), std::move(table)));
}

}  // namespace kiln
