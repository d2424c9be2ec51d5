#include "runtime/exec/backend_step.h"

namespace kiln {

Status BackendStep::resize(const Signature &signature, const ResolvedSizes &sizes) {
  arrays_ = arrays_of(signature, sizes);
  inputs_ = signature.inputs().end;
  told_ = false;
  return {};
}

Status BackendStep::run(std::span<void *const> data) {
  if (!run_) {
    KILN_ASSIGN(run_, loaded_.program->open());
  }
  if (!told_) run_->resize(arrays_);
  told_ = true;
  if (prepared_) return run_->run(data, prepared_->get());
  if (loaded_.parameters == 0 || !loaded_.program->prepares()) return run_->run(data, nullptr);
  const uint32_t first = inputs_ - loaded_.parameters;
  KILN_ASSIGN(const std::shared_ptr<void> now,
              loaded_.program->prepare(std::span(arrays_).subspan(first, loaded_.parameters),
                                       data.subspan(first, loaded_.parameters)));
  return run_->run(data, now.get());
}

}  // namespace kiln
