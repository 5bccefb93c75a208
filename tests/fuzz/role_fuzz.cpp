// No message, from whoever it claims to be, ends a shard, the scheduler or the monitor. The bytes
// are read as a plan and a sequence of messages, timers and ends of actors; the role is asked to do
// one after the other, and its work is done at once. A CheckFailed is a crash here: a bug.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "actors/monitor.hpp"
#include "actors/scheduler.hpp"
#include "actors/shard.hpp"
#include "tests/messages/message_fields.hpp"
#include "tests/support/tiny.hpp"

namespace leeway::test {
namespace {

/// Values out of bytes: mostly small ones, which mean something to a role, and the ends of ranges.
class Bytes {
 public:
  Bytes(std::span<const std::uint8_t> bytes, std::vector<std::int64_t> block_sizes)
      : bytes_(bytes), sizes_(std::move(block_sizes)) {}
  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_[0];
    bytes_ = bytes_.subspan(1);
    return first;
  }

  void read(bool& out) { out = byte() % 2 != 0; }
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) void read(T& out) {
    const std::uint8_t first = byte();
    if (first < 240)
      out = static_cast<T>(first % 16);
    else if (first < 248)
      out = static_cast<T>((std::uint64_t{1} << (sizeof(T) * 8 - 2)) - 1 - first % 2);
    else
      out = static_cast<T>(std::numeric_limits<T>::max() - first % 2);
  }
  template <class T>
  requires std::is_enum_v<T>
  void read(T& out) { out = static_cast<T>(byte() % 6); }
  void read(double& out) {
    constexpr double kValues[] = {1, 1.0 / 3, 0.5, 0, 1e-300, 1e300, 4, -1};
    out = kValues[byte() % std::size(kValues)];
  }
  void read(std::string& out) { out.assign(byte() % 8, static_cast<char>(byte())); }
  void read(Duration& out) { read(out.ns); }
  template <class Tag, class Rep>
  void read(Id<Tag, Rep>& out) {
    Rep value{};
    read(value);
    out = Id<Tag, Rep>(value);
  }
  template <class Tag>
  void read(Count<Tag>& out) {
    std::int64_t value = 0;
    read(value);
    out = Count<Tag>(value);
  }
  void read(msg::BlockData& out) {
    read(out.block);
    read(out.version);
    const std::uint8_t kind = byte();
    if (kind < 255) read_tensor(kind, out);  // or without data
  }
  void read(msg::StageTensor& out) { read_tensor(byte(), out); }
  template <class T>
  void read(std::vector<T>& out) {
    out.resize(byte() % 5);
    for (auto& item : out) read(item);
  }
  template <class T>
  void read(T& out) {
    std::apply([this](auto&... field) { (read(field), ...); }, fields(out));
  }

  Body body() {
    Body out;
    const std::size_t kind = byte() % std::variant_size_v<Body>;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((I == kind ? read(out.emplace<I>()) : void()), ...);
    }
    (std::make_index_sequence<std::variant_size_v<Body>>());
    return out;
  }
  Address address() {
    const std::uint8_t first = byte();
    return {static_cast<RoleKind>(first % 5), first < 250 ? first / 5u % 4 : 0xffffffffu};
  }

 private:
  template <class Tensor>
  void read_tensor(std::uint8_t kind, Tensor& out) {
    if (kind >= 240) read(out.dtype);
    // Mostly as large as some block of the model.
    out.shape = kind < 128 ? Shape{sizes_[kind % sizes_.size()]} : Shape{kind % 4, kind % 16};
    out.data = Blob::allocate(static_cast<std::size_t>(out.shape.count()) * size_of(DType::f32));
    if (out.data.size() > 0) std::memset(out.data.mutable_data(), kind, out.data.size());
  }

  std::span<const std::uint8_t> bytes_;
  std::vector<std::int64_t> sizes_;
};

/// Sends nowhere; keeps the work.
class NullOutbox final : public Outbox {
 public:
  Instant now() const override { return now_; }
  Rng& random() override { return rng_; }
  void send(Address, Message message) override { LW_CHECK(decode(message).has_value()); }
  void after(Duration, TimerToken) override {}
  void compute(std::shared_ptr<Work> work) override { work_.push_back(std::move(work)); }
  void watch(Address) override {}
  void emit(const Event&) override {}

  void do_work(Role& role) {
    now_ = now_ + milliseconds(1);
    while (!work_.empty()) {
      const auto work = std::move(work_.front());
      work_.pop_front();
      for (int part = 0; part < work->parts(); ++part) {
        work->run(part);
        role.on_part(*work, part, *this);
      }
    }
  }

 private:
  Instant now_;
  Rng rng_{1};
  std::deque<std::shared_ptr<Work>> work_;
};

/// All whole models first, then two pipelines of two stages by every schedule.
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
        std::pair("zero_bubble_h1", plan::Consistency(plan::Ssp{1})),
        std::pair("fill_drain", plan::Consistency(plan::Bsp{}))}) {
    Plan plan = tiny_plan();
    plan.consistency = consistency;
    plan.pipeline.stages = 2;
    plan.pipeline.schedule = schedule;
    plan.pipeline.chunks = plan.pipeline.schedule == "interleaved" ? 2 : 1;
    plan.workers = 4;
    plan.micro_batches = 2;
    made.push_back(job_of(plan));
  }
  return made;
}

/// Of a byte: bits 0 to 2 and 4 are the job, bit 3 the shard.
const std::shared_ptr<const Job>& job(std::uint8_t choice) {
  static const auto jobs = make_jobs();
  LW_CHECK(jobs.size() == 16, jobs.size());
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
  Bytes bytes(input, std::move(sizes));
  const std::uint8_t which = bytes.byte();
  const auto role = make_role(which, bytes.byte());
  NullOutbox out;
  role->on_start(out);
  while (!bytes.empty()) {
    const std::uint8_t choice = bytes.byte();
    if (choice < 240) {
      const Address from = bytes.address();
      Envelope envelope{.incarnation = Incarnation(choice < 200 ? 1 : choice % 4)};
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
