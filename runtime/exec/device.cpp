#include "runtime/exec/device.h"

#include "runtime/exec/layout.h"

namespace kiln {
namespace {

// Calls one of the table's functions that can fail.
template <class Function, class... Arguments>
Status call(Function function, Arguments... arguments) {
  kiln_device_error failure{};
  if (function(arguments..., &failure) == 0) return {};
  return Status(static_cast<Code>(failure.code), failure.message);
}

}  // namespace

Result<std::shared_ptr<Device>> Device::open(const kiln_device_table &table, uint32_t index) {
  kiln_device *device = nullptr;
  KILN_TRY(call(table.open, index, &device));
  return std::shared_ptr<Device>(new Device(table, device, index));
}

Result<std::shared_ptr<DeviceQueue>> DeviceQueue::open(std::shared_ptr<Device> device) {
  kiln_device_queue *queue = nullptr;
  KILN_TRY(call(device->table().open_queue, device->handle(), &queue));
  return std::shared_ptr<DeviceQueue>(new DeviceQueue(std::move(device), queue));
}

Status DeviceQueue::copy_in(uint64_t to, const void *from, uint64_t bytes) {
  return bytes ? call(device_->table().copy_in, queue_, to, from, bytes) : Status();
}
Status DeviceQueue::copy_out(void *to, uint64_t from, uint64_t bytes) {
  return bytes ? call(device_->table().copy_out, queue_, to, from, bytes) : Status();
}
Status DeviceQueue::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  return bytes ? call(device_->table().copy, queue_, to, from, bytes) : Status();
}
Status DeviceQueue::launch(const kiln_device_launch &launch) { return call(device_->table().launch, queue_, &launch); }
Status DeviceQueue::follow(const DeviceQueue &first) { return call(device_->table().follow, queue_, first.queue_); }
Status DeviceQueue::enter(uint64_t stream) { return call(device_->table().enter, queue_, stream); }
Status DeviceQueue::leave(uint64_t stream) { return call(device_->table().leave, queue_, stream); }
Result<bool> DeviceQueue::is_over() {
  uint32_t over = 0;
  KILN_TRY(call(device_->table().is_over, queue_, &over));
  return over != 0;
}
Result<uint32_t> DeviceQueue::finish() {
  uint32_t bits = 0;
  KILN_TRY(call(device_->table().finish, queue_, &bits));
  return bits;
}

Status DeviceMemory::grow(uint64_t bytes, std::string_view what) {
  if (bytes <= size_) return {};
  release();  // before the new one: both need not fit
  Status status = call(queue_->device().table().allocate, queue_->handle(), bytes, &address_);
  if (!status.ok()) return std::move(status).with_prefix(str_cat("device memory for the ", what, ": "));
  size_ = bytes;
  return {};
}

void DeviceMemory::release() {
  if (size_) queue_->device().table().free(queue_->handle(), address_);
  address_ = size_ = 0;
}

Result<std::shared_ptr<const DeviceProgram>> DeviceProgram::load(std::shared_ptr<Device> device,
                                                                 const Artifact &artifact) {
  const std::shared_ptr<DeviceProgram> program(new DeviceProgram(std::move(device)));
  Status status = program->load_kernels(artifact.images);
  if (!status.ok())
    return std::move(status).with_prefix(
        str_cat("kernels for ", artifact.target, " on a device of ", program->device_->arch(), ": "));
  KILN_TRY(program->upload_constants(artifact.constants));
  return std::shared_ptr<const DeviceProgram>(program);
}

DeviceProgram::~DeviceProgram() {
  if (program_) device_->table().unload(program_);
}

Status DeviceProgram::load_kernels(std::span<const Image> images) {
  std::vector<kiln_device_kernel> kernels;
  for (const Image &image : images)
    kernels.push_back({image.code->data(), image.code->size(), image.entry.c_str(), image.use});
  return call(device_->table().load, device_->handle(), kernels.data(), uint64_t{kernels.size()}, &program_);
}

Status DeviceProgram::upload_constants(std::span<const TensorData> constants) {
  KILN_ASSIGN(queue_, DeviceQueue::open(device_));
  memory_ = std::make_unique<DeviceMemory>(queue_);
  Layout layout(256);
  for (const TensorData &constant : constants) constants_.push_back(layout.add(constant.bytes.size()));
  KILN_TRY(memory_->grow(layout.size_bytes(), "constants"));
  for (size_t i = 0; i < constants.size(); ++i) {
    constants_[i] += memory_->address();
    KILN_TRY(queue_->copy_in(constants_[i], constants[i].bytes.data(), constants[i].bytes.size()));
  }
  return {};
}

}  // namespace kiln
