#include "policies/optimizer/updater_optimizer.hpp"

#include <algorithm>
#include <utility>

#include "core/check.hpp"

namespace leeway {

UpdaterOptimizer::UpdaterOptimizer(const plan::Updater& spec) {
  if (auto found = find_updater(spec.name)) update_ = std::move(*found);
}

kernels::UpdateFormula UpdaterOptimizer::formula(const UpdateSize&) const {
  LW_CHECK(false, "an updater is a function");
}

void UpdaterOptimizer::update(Executor& on, const kernels::UpdateBuffers& buffers,
                              const UpdateSize& size) const {
  LW_CHECK(update_ && on.device().kind != Device::Kind::cuda, name());
  LW_CHECK(size.floats <= buffers.count, size.floats, buffers.count);
  if (buffers.w_out != buffers.w)
    std::copy_n(buffers.w, buffers.count, buffers.w_out);  // with the padding
  const auto floats = static_cast<std::size_t>(size.floats);
  update_({size.parameter, size.first, {buffers.g, floats}, {buffers.w_out, floats}, size.weight});
}

}  // namespace leeway
