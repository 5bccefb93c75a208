#include "policies/schedule/schedule.hpp"

#include "policies/schedule/constant.hpp"
#include "policies/schedule/cosine.hpp"
#include "policies/schedule/step.hpp"
#include "policies/schedule/warmup.hpp"

namespace leeway {

namespace {

using Made = std::unique_ptr<Schedule>;

struct Maker {
  Made operator()(const plan::Constant&) const { return std::make_unique<ConstantSchedule>(); }
  Made operator()(const plan::Step& spec) const { return std::make_unique<StepSchedule>(spec); }
  Made operator()(const plan::Cosine& spec) const { return std::make_unique<CosineSchedule>(spec); }
};

}  // namespace

std::unique_ptr<Schedule> make_schedule(const plan::Schedule& spec) {
  Made schedule = std::visit(Maker{}, spec.kind);
  if (spec.warmup <= 0) return schedule;
  return std::make_unique<WarmupSchedule>(spec.warmup, std::move(schedule));
}

}  // namespace leeway
