#include "policies/schedule/schedule.hpp"

#include "policies/schedule/constant.hpp"
#include "policies/schedule/cosine.hpp"
#include "policies/schedule/step.hpp"
#include "policies/schedule/warmup.hpp"

namespace leeway {

namespace {

struct ScheduleMaker {
  std::unique_ptr<Schedule> operator()(const plan::Constant&) const {
    return std::make_unique<ConstantSchedule>();
  }
  std::unique_ptr<Schedule> operator()(const plan::Step& spec) const {
    return std::make_unique<StepSchedule>(spec);
  }
  std::unique_ptr<Schedule> operator()(const plan::Cosine& spec) const {
    return std::make_unique<CosineSchedule>(spec);
  }
};

}  // namespace

std::unique_ptr<Schedule> make_schedule(const plan::Schedule& spec) {
  std::unique_ptr<Schedule> schedule = std::visit(ScheduleMaker{}, spec.kind);
  if (spec.warmup <= 0) return schedule;
  return std::make_unique<WarmupSchedule>(spec.warmup, std::move(schedule));
}

}  // namespace leeway
