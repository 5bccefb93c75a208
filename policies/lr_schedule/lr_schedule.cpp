#include "policies/lr_schedule/lr_schedule.hpp"

#include "policies/lr_schedule/constant.hpp"
#include "policies/lr_schedule/cosine.hpp"
#include "policies/lr_schedule/exponential.hpp"
#include "policies/lr_schedule/linear.hpp"
#include "policies/lr_schedule/one_cycle.hpp"
#include "policies/lr_schedule/step.hpp"
#include "policies/lr_schedule/warmup.hpp"

namespace leeway {

namespace {

struct ScheduleMaker {
  std::unique_ptr<LrSchedule> operator()(const plan::Constant&) const {
    return std::make_unique<ConstantLr>();
  }
  std::unique_ptr<LrSchedule> operator()(const plan::Step& spec) const {
    return std::make_unique<StepLr>(spec);
  }
  std::unique_ptr<LrSchedule> operator()(const plan::Cosine& spec) const {
    return std::make_unique<CosineLr>(spec);
  }
  std::unique_ptr<LrSchedule> operator()(const plan::LinearLr& spec) const {
    return std::make_unique<LinearLr>(spec);
  }
  std::unique_ptr<LrSchedule> operator()(const plan::ExponentialLr& spec) const {
    return std::make_unique<ExponentialLr>(spec);
  }
  std::unique_ptr<LrSchedule> operator()(const plan::OneCycle& spec) const {
    return std::make_unique<OneCycleLr>(spec);
  }
};

}  // namespace

std::unique_ptr<LrSchedule> make_lr_schedule(const plan::LrSchedule& spec) {
  std::unique_ptr<LrSchedule> schedule = std::visit(ScheduleMaker{}, spec.kind);
  if (spec.warmup <= 0) return schedule;
  return std::make_unique<WarmupLr>(spec.warmup, spec.warmup_start, std::move(schedule));
}

}  // namespace leeway
