// No message, whatever its claimed sender, ends a shard, the scheduler or the monitor. The bytes
// select a plan and a sequence of messages, timers and ends of actors, which the role handles in
// order; its work is done at once. A CheckFailed is a bug.
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "actors/monitor/monitor.hpp"
#include "actors/scheduler/scheduler.hpp"
#include "actors/shard/shard.hpp"
#include "policies/pipeline/schedule.hpp"
#include "tests/fuzz/role_bytes.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

/// Plans without pipelines first, then two pipelines of two stages by every schedule.
std::vector<std::shared_ptr<const Job>> make_jobs() {
  std::vector<std::shared_ptr<const Job>> made;
  for (const plan::Consistency& consistency :
       {plan::Consistency(plan::Bsp{}), plan::Consistency(plan::Ssp{1}),
        plan::Consistency(plan::Asp{}), plan::Consistency(plan::Adaptive{1, 4}),
        plan::Consistency(plan::Backup{1})}) {
    Plan plan = tiny_plan();
    plan.consistency = consistency;
    if (std::holds_alternative<plan::Adaptive>(consistency)) plan.balance = plan::Balance::by_speed;
    plan.evaluate_every = 0.2;
    plan.optimizer.kind = plan::Momentum{};
    made.push_back(job_of(plan));
    plan.stop.iterations = 7;
    made.push_back(job_of(plan));
  }
  for (const auto& [schedule, consistency] :
       {std::pair("1f1b", plan::Consistency(plan::Bsp{})),
        std::pair("weight_stashing", plan::Consistency(plan::Ssp{1})),
        std::pair("2bw", plan::Consistency(plan::Asp{})),
        std::pair("interleaved", plan::Consistency(plan::Adaptive{1, 4})),
        std::pair("zb_h1", plan::Consistency(plan::Ssp{1})),
        std::pair("zb_v", plan::Consistency(plan::Bsp{}))}) {
    Plan plan = tiny_plan();
    plan.consistency = consistency;
    plan.pipeline.stages = 2;
    plan.pipeline.schedule = schedule;
    plan.pipeline.chunks = static_cast<std::uint32_t>(pipeline::usual_chunks(schedule));
    plan.workers = 4;
    plan.micro_batches = 2;
    made.push_back(job_of(plan));
  }
  return made;
}

/// Jobs whose gradients are encoded, scaled, or summed by host groups.
std::vector<std::shared_ptr<const Job>> make_encoded_jobs() {
  std::vector<std::shared_ptr<const Job>> made;
  for (const plan::Codec& codec :
       {plan::Codec(plan::Bf16{}), plan::Codec(plan::Fp16{}), plan::Codec(plan::Int8{}),
        plan::Codec(plan::Int4{}), plan::Codec(plan::TwoBit{}), plan::Codec(plan::OneBit{}),
        plan::Codec(plan::TopK{0.1, 1}), plan::Codec(plan::RandomK{0.1})}) {
    Plan plan = tiny_plan();
    plan.compress.push = codec;
    made.push_back(job_of(plan));
  }
  Plan deltas = tiny_plan();
  deltas.compress.push = plan::Int8{};
  deltas.local_steps.count = 2;
  made.push_back(job_of(deltas));
  for (const std::uint32_t group : {1u, 2u}) {
    Plan scaled = tiny_plan();
    scaled.consistency = plan::Bsp{};
    scaled.precision = "fp16";
    scaled.workers = 4;
    if (group > 1) scaled.aggregate = plan::GroupsOf{group};
    made.push_back(job_of(scaled));
    scaled.compress.push = plan::Int8{};
    made.push_back(job_of(scaled));
  }
  return made;
}

/// Bits 0 to 2, 4 and 5 of a byte select the job, bit 3 the shard.
const std::shared_ptr<const Job>& job(std::uint8_t choice) {
  static const auto jobs = make_jobs(), encoded = make_encoded_jobs();
  LW_CHECK(jobs.size() == 16, jobs.size());
  if (choice / 32 % 2 == 1) return encoded[(choice % 8 + choice / 16 % 2 * 8u) % encoded.size()];
  return jobs[choice % 8 + choice / 16 % 2 * 8u];
}

std::unique_ptr<Role> make_role(std::uint8_t which, std::uint8_t choice) {
  if (which % 3 == 0) return std::make_unique<Scheduler>(job(choice));
  if (which % 3 == 1) return std::make_unique<Shard>(job(choice), ShardId(choice / 8 % 2));
  return std::make_unique<Monitor>(job(choice), std::vector<Audience*>{});
}

void run(std::span<const std::uint8_t> input) {
  std::vector<std::int64_t> sizes;
  for (const auto& block : job(0)->layout->blocks()) sizes.push_back(block.floats);
  const std::uint8_t which = input.empty() ? 0 : input[0];
  const std::uint8_t choice_of_job = input.size() < 2 ? 0 : input[1];
  const Job& its_job = *job(choice_of_job);
  Bytes bytes(input.subspan(std::min<std::size_t>(2, input.size())), std::move(sizes),
              its_job.push_codecs ? &its_job.push_codecs->at(Iteration(0)) : nullptr,
              id_of(its_job.plan.compress.push));
  const auto role = make_role(which, choice_of_job);
  NullOutbox out;
  role->on_start(out);
  while (!bytes.empty()) {
    const std::uint8_t choice = bytes.byte();
    if (choice < 240) {
      const Address from = bytes.address();
      Envelope envelope{.session = Session(choice < 200 ? 1 : choice % 4)};
      envelope.body = bytes.body();
      role->on_message(from, encode(envelope), out);
    } else if (choice < 248) {
      role->on_timer(choice % 3, out);
    } else {
      role->on_down(bytes.address(), "ended", out);
    }
    out.do_work(*role);
  }
}

}  // namespace
}  // namespace leeway::test

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  leeway::test::run({data, size});
  return 0;
}
