// safetensors: the header's length (8 bytes), the header (JSON: name -> dtype, shape, first and last byte), the bytes.
#include <cjson/cJSON.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "jit/base/json_writer.h"
#include "runtime/graph/json_scan.h"
#include "runtime/graph/type.h"
#include "runtime/io/corrupt.h"
#include "runtime/io/tensor_file.h"

namespace kiln {

namespace {

constexpr uint64_t max_header_bytes = 100'000'000;  // the format's own limit
constexpr std::string_view metadata = "__metadata__";

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr std::array dtype_names = {
    DTypeName{"F64", DType::f64},         DTypeName{"F32", DType::f32},
    DTypeName{"F16", DType::f16},         DTypeName{"BF16", DType::bf16},
    DTypeName{"I64", DType::i64},         DTypeName{"I32", DType::i32},
    DTypeName{"I16", DType::i16},         DTypeName{"I8", DType::i8},
    DTypeName{"U8", DType::u8},           DTypeName{"U16", DType::u16},
    DTypeName{"U32", DType::u32},         DTypeName{"U64", DType::u64},
    DTypeName{"BOOL", DType::boolean},    DTypeName{"F8_E4M3", DType::f8_e4m3fn},
    DTypeName{"F8_E5M2", DType::f8_e5m2},
};

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeName &known : dtype_names)
    if (known.name == name) return known.dtype;
  return std::nullopt;
}

// A list of integers that are not negative and that a double holds.
std::optional<std::vector<int64_t>> counts(const cJSON *list) {
  if (!cJSON_IsArray(list)) return std::nullopt;
  std::vector<int64_t> values;
  for (const cJSON *item = list->child; item; item = item->next) {
    if (!cJSON_IsNumber(item) || item->valuedouble < 0 || item->valuedouble > 0x1p53) return std::nullopt;
    const auto value = static_cast<int64_t>(item->valuedouble);
    if (static_cast<double>(value) != item->valuedouble) return std::nullopt;
    values.push_back(value);
  }
  return values;
}

Result<StoredTensor> read_tensor(const cJSON *item, ByteSpan data) {
  StoredTensor tensor;
  tensor.name = item->string;
  const std::string where = str_cat("tensor '", tensor.name, "': ");
  if (!cJSON_IsObject(item)) return corrupt(where, "expected an object with dtype, shape and data_offsets");
  const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(item, "dtype");
  if (!cJSON_IsString(dtype)) return corrupt(where, "has no dtype");
  const std::optional<DType> known = dtype_named(dtype->valuestring);
  if (!known) return corrupt(where, "dtype '", dtype->valuestring, "' is not one that Kiln has");
  tensor.dtype = *known;
  std::optional<std::vector<int64_t>> shape = counts(cJSON_GetObjectItemCaseSensitive(item, "shape"));
  if (!shape) return corrupt(where, "shape is no list of sizes");
  tensor.shape = std::move(*shape);
  if (tensor.shape.size() > max_rank)
    return corrupt(where, "shape has ", tensor.shape.size(), " dims; the most is ", max_rank);
  const std::optional<std::vector<int64_t>> range = counts(cJSON_GetObjectItemCaseSensitive(item, "data_offsets"));
  if (!range || range->size() != 2) return corrupt(where, "data_offsets is no pair of offsets");
  const auto begin = static_cast<uint64_t>((*range)[0]), end = static_cast<uint64_t>((*range)[1]);
  if (begin > end || end > data.size())
    return corrupt(where, "its bytes ", begin, " to ", end, " are not within the ", data.size(), " of the file");
  const std::optional<uint64_t> needed = dense_bytes(tensor.dtype, tensor.shape);
  if (!needed || *needed != end - begin)
    return corrupt(where, "has ", end - begin, " bytes; its dtype and shape need ",
                   needed ? str_cat(*needed) : "more than there can be");
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

// The format wants the bytes of all tensors to follow each other without a gap: nothing hides in a file.
Status check_cover(const std::vector<StoredTensor> &tensors, ByteSpan data) {
  std::vector<const StoredTensor *> by_place;
  for (const StoredTensor &tensor : tensors) by_place.push_back(&tensor);
  std::stable_sort(by_place.begin(), by_place.end(), [](const StoredTensor *a, const StoredTensor *b) {
    return std::pair(a->bytes.data(), a->bytes.size()) < std::pair(b->bytes.data(), b->bytes.size());
  });
  const uint8_t *at = data.data();
  for (const StoredTensor *tensor : by_place) {
    if (tensor->bytes.data() != at)
      return corrupt("tensor '", tensor->name, "': its bytes ",
                     tensor->bytes.data() < at ? "overlap" : "leave a gap after", " those of the one before");
    at += tensor->bytes.size();
  }
  if (at != data.data() + data.size())
    return corrupt(data.data() + data.size() - at, " bytes at the end belong to no tensor");
  return {};
}

}  // namespace

Result<std::vector<StoredTensor>> parse_safetensors(ByteSpan file) {
  ByteReader reader(file);
  const auto header_bytes = reader.get<uint64_t>();
  if (!reader.ok()) return corrupt("too short for safetensors: ", file.size(), " bytes");
  if (header_bytes > max_header_bytes || header_bytes > file.size() - sizeof header_bytes)
    return corrupt("its header should have ", header_bytes, " bytes; the file has ", file.size());
  const ByteSpan header = reader.raw(header_bytes);
  const ByteSpan data = file.subspan(sizeof header_bytes + header_bytes);
  const std::string_view text(reinterpret_cast<const char *>(header.data()), header.size());
  if (Status status = scan_json(text); !status.ok()) return corrupt("header: ", status.message());
  const std::unique_ptr<cJSON, void (*)(cJSON *)> root(cJSON_ParseWithLength(text.data(), text.size()), cJSON_Delete);
  if (!root) return error(Code::out_of_memory, "header: out of memory");  // the scan has left no other reason
  if (!cJSON_IsObject(root.get())) return corrupt("header: expected an object");
  std::vector<StoredTensor> tensors;
  for (const cJSON *item = root->child; item; item = item->next) {
    if (item->string == metadata) {
      if (!cJSON_IsObject(item)) return corrupt("header: ", metadata, " is no object");
      continue;
    }
    KILN_ASSIGN(StoredTensor tensor, read_tensor(item, data));
    tensors.push_back(std::move(tensor));
  }
  KILN_TRY(check_cover(tensors, data));
  return tensors;
}

Result<Bytes> write_safetensors(std::span<const StoredTensor> tensors) {
  std::set<std::string_view> names;
  JsonWriter json;
  json.begin_object();
  uint64_t at = 0;
  for (const StoredTensor &tensor : tensors) {
    if (tensor.name == metadata) return invalid("a tensor cannot be named '", metadata, "'");
    if (!names.insert(tensor.name).second) return invalid("two tensors are named '", tensor.name, "'");
    const auto known = std::find_if(dtype_names.begin(), dtype_names.end(),
                                    [&](const DTypeName &name) { return name.dtype == tensor.dtype; });
    json.key(tensor.name).begin_object().member("dtype", known->name).key("shape").begin_list();
    for (int64_t dim : tensor.shape) json.value(dim);
    json.end_list().key("data_offsets").begin_list().value(at).value(at + tensor.bytes.size()).end_list().end_object();
    at += tensor.bytes.size();
  }
  json.end_object();
  std::string header = json.take();
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that the first tensor is aligned
  ByteWriter out;
  out.text(header);
  for (const StoredTensor &tensor : tensors) out.raw(tensor.bytes);
  return out.take();
}

}  // namespace kiln
