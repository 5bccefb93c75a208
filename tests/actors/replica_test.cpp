// Replica: two replicas of a small role, with messages that the test delivers or loses.
#include "actors/replica/replica.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <vector>

namespace leeway::test {
namespace {

constexpr ReplicaPair kPair{shard(0), standby(0)};

/// Adds the iterations of the pulls that it gets, and answers each with the sum. Computes a work
/// for each tenth pull, and is not quiet meanwhile.
class Sum final : public ReplicatedRole {
 public:
  bool is_quiet() const override { return !busy_; }
  Message save() const override { return encode({.body = msg::Pull{Iteration(sum_)}}); }
  Status restore(const Message& state) override {
    const auto envelope = decode(state);
    if (!envelope) return envelope.error();
    const auto* pull = std::get_if<msg::Pull>(&envelope->body);
    if (!pull) return Error{"is no sum"};
    sum_ = pull->iteration.value();
    return {};
  }
  std::int64_t sum() const { return sum_; }
  Instant pulled_at() const { return pulled_at_; }

 private:
  struct Nothing final : Work {
    int parts() const override { return 1; }
    Cost cost(int) const override { return {}; }
    void run(int) override {}
  };
  void on_start(Outbox& out) override { out.after(seconds(1), 7); }
  void on_timer(TimerToken token, Outbox& out) override { out.after(seconds(1), token); }
  void on_part(Work&, int, Outbox& out) override {
    busy_ = false;
    answer(kMonitor, out);
  }
  void on_envelope(Address from, Envelope& envelope, Outbox& out) override {
    const auto* pull = std::get_if<msg::Pull>(&envelope.body);
    if (!pull) return;
    sum_ += pull->iteration.value();
    pulled_at_ = out.now();
    if (++pulls_ % 10 == 0 && !std::exchange(busy_, true)) out.compute(std::make_shared<Nothing>());
    out.emit(event::ClockMoved{WorkerId(from.index), Clock(sum_)});
    answer(from, out);
  }
  void answer(Address to, Outbox& out) const {
    out.send(to, encode({.body = msg::Weights{Iteration(sum_), {}}}));
  }

  std::int64_t sum_ = 0;
  Instant pulled_at_;
  int pulls_ = 0;
  bool busy_ = false;
};

/// The host of one replica. Works wait until the test computes them.
struct Side final : private Outbox {
  explicit Side(Replica::Standing standing, std::uint32_t launch = 1, Instant began = {})
      : role(std::make_shared<Sum>()), replica(role, kPair, standing, launch), clock_(began.ns) {}

  void start() { replica.on_start(*this); }
  void get(Address from, const Message& message) { replica.on_message(from, message, *this); }
  void pull(std::int64_t iteration) {
    get(worker(0), encode({.body = msg::Pull{Iteration(iteration)}}));
  }
  /// `launch`: of the standby to seed.
  void order(std::uint64_t configuration, msg::Replicate::Standing standing,
             std::uint32_t launch = 2) {
    get(kScheduler, encode({.body = msg::Replicate{configuration, standing, launch}}));
  }
  void link(Address peer) { replica.on_link(peer, *this); }
  void pass(Duration time) { clock_ += time.ns; }
  void ring(TimerToken token) { replica.on_timer(token, *this); }
  void compute_all() {
    for (const auto& work : std::exchange(works, {})) {
      work->run(0);
      replica.on_part(*work, 0, *this);
    }
  }
  /// The sums that were sent to worker 0.
  std::vector<std::int64_t> answers() const {
    std::vector<std::int64_t> sums;
    for (const auto& [to, message] : sent)
      if (to == worker(0))
        if (const auto envelope = decode(message))
          if (const auto* weights = std::get_if<msg::Weights>(&envelope->body))
            sums.push_back(weights->iteration.value());
    return sums;
  }
  /// Moves out the messages to an actor.
  std::deque<Message> take(Address to) {
    std::deque<Message> taken;
    std::erase_if(sent, [&](auto& letter) {
      if (letter.first == to) taken.push_back(letter.second);
      return letter.first == to;
    });
    return taken;
  }

  std::shared_ptr<Sum> role;
  Replica replica;
  std::vector<std::pair<Address, Message>> sent;
  std::vector<std::shared_ptr<Work>> works;
  std::vector<TimerToken> timers;
  std::vector<Duration> delays;  // of the timers
  std::size_t events = 0;
  std::optional<Address> took_over;

 private:
  Instant now() const override { return {++clock_}; }
  Rng& random() override { return rng_; }
  void send(Address to, Message message) override { sent.emplace_back(to, std::move(message)); }
  void after(Duration delay, TimerToken token) override {
    timers.push_back(token);
    delays.push_back(delay);
  }
  void compute(std::shared_ptr<Work> work) override { works.push_back(std::move(work)); }
  void watch(Address) override {}
  void emit(const Event&) override { ++events; }
  void take_over(Address address) override { took_over = address; }

  Rng rng_{1};
  mutable std::int64_t clock_;  // never stands
};

void deliver(Side& primary, Side& standby) {
  for (const Message& message : primary.take(kPair.standby)) standby.get(kPair.primary, message);
}
void acknowledge(Side& primary, Side& standby) {
  for (const Message& message : standby.take(kPair.primary)) primary.get(kPair.standby, message);
}
void exchange(Side& primary, Side& standby) {
  deliver(primary, standby);
  acknowledge(primary, standby);
}
template <class Body>
bool is(const Message& message) {
  const auto envelope = decode(message);
  return envelope && std::holds_alternative<Body>(envelope->body);
}
bool has_confirmed(Side& side, std::uint64_t configuration) {
  bool confirmed = false;
  for (const Message& message : side.take(kScheduler)) {
    const auto envelope = decode(message);
    const auto* answer = envelope ? std::get_if<msg::Replicating>(&envelope->body) : nullptr;
    confirmed |= answer && answer->configuration == configuration;
  }
  return confirmed;
}

using Sums = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("an output of the primary leaves when the standby has the input") {
  Side primary(Replica::Standing::primary), standby(Replica::Standing::standby);
  primary.start();
  primary.pull(5);
  primary.pull(6);
  CHECK(primary.answers().empty());
  CHECK(primary.events == 0);
  deliver(primary, standby);
  CHECK(primary.answers().empty());
  acknowledge(primary, standby);
  CHECK(primary.answers() == Sums{5, 11});
  CHECK(primary.events == 2);
  CHECK(standby.role->sum() == 11);
  CHECK(standby.answers().empty());
  CHECK(standby.timers.empty());
}

TEST_CASE("an input has the same time for both replicas") {
  Side primary(Replica::Standing::primary), standby(Replica::Standing::standby);
  primary.start();
  for (const std::int64_t iteration : {5, 6}) primary.pull(iteration);
  exchange(primary, standby);
  CHECK(primary.role->pulled_at() == standby.role->pulled_at());
  CHECK(primary.role->pulled_at().ns > 0);
}

TEST_CASE("the standby handles a finished part where the primary did, not where it finished") {
  Side primary(Replica::Standing::primary), standby(Replica::Standing::standby);
  primary.start();
  for (int i = 1; i <= 10; ++i) primary.pull(i);
  deliver(primary, standby);
  standby.compute_all();  // earlier than the primary
  primary.pull(100);
  primary.compute_all();
  exchange(primary, standby);
  CHECK(standby.role->sum() == 155);
  const auto answers = primary.take(kMonitor);
  REQUIRE(answers.size() == 1);
  CHECK(std::get<msg::Weights>(decode(answers.front())->body).iteration == Iteration(155));
  standby.order(2, msg::Replicate::Standing::promoted);
  standby.pull(1);
  CHECK(standby.answers() == Sums{156});
}

TEST_CASE("a standby takes over when it has computed what the primary had") {
  Side primary(Replica::Standing::primary), standby(Replica::Standing::standby);
  primary.start();
  for (int i = 1; i <= 10; ++i) primary.pull(i);
  primary.compute_all();
  primary.pull(100);
  deliver(primary, standby);  // the primary ends before it hears of that
  standby.order(2, msg::Replicate::Standing::promoted);
  CHECK(!standby.took_over);
  standby.compute_all();
  CHECK(standby.took_over == kPair.primary);
  CHECK(has_confirmed(standby, 2));
  CHECK(standby.events == 11);  // none of them was reported by the primary
  CHECK(standby.timers == std::vector<TimerToken>{7});
  standby.pull(1);
  CHECK(standby.answers() == Sums{156});
}

TEST_CASE("time goes on when a standby takes over whose host's clock began at another moment") {
  for (const Instant began : {Instant{}, Instant{seconds(60).ns}}) {
    Side primary(Replica::Standing::primary, 1, Instant{seconds(30).ns});
    Side standby(Replica::Standing::standby, 1, began);
    primary.start();
    primary.pull(1);
    exchange(primary, standby);
    const Instant last = primary.role->pulled_at();
    standby.order(2, msg::Replicate::Standing::promoted);
    standby.pull(1);
    CHECK(standby.role->pulled_at() > last);
    CHECK(standby.role->pulled_at() - last < seconds(1));
  }
}

TEST_CASE("a standby that takes over arms a timer for the rest of its time") {
  for (const bool seeded : {false, true}) {
    Side primary(seeded ? Replica::Standing::alone : Replica::Standing::primary);
    Side standby(seeded ? Replica::Standing::empty : Replica::Standing::standby, 2);
    primary.start();  // a timer of 1 s
    primary.pass(milliseconds(300));
    if (seeded)
      primary.order(2, msg::Replicate::Standing::seeding);
    else
      primary.pull(0);
    exchange(primary, standby);
    standby.pass(milliseconds(100));
    standby.order(3, msg::Replicate::Standing::promoted);
    REQUIRE(standby.timers.back() == 7);
    CHECK(std::abs(standby.delays.back().ns - milliseconds(600).ns) < milliseconds(1).ns);
  }
}

TEST_CASE("a standby that was given a late timer arms it at once") {
  Side primary(Replica::Standing::primary), standby(Replica::Standing::standby);
  primary.start();
  exchange(primary, standby);
  standby.pass(seconds(5));
  standby.order(2, msg::Replicate::Standing::promoted);
  CHECK(standby.delays == std::vector<Duration>{Duration{}});
}

TEST_CASE("a standby that has taken over accepts nothing from the earlier primary") {
  Side primary(Replica::Standing::primary), standby(Replica::Standing::standby);
  primary.start();
  exchange(primary, standby);
  standby.order(2, msg::Replicate::Standing::promoted);
  standby.take(kPair.primary);
  primary.pull(5);
  exchange(primary, standby);
  CHECK(primary.answers().empty());
  CHECK(standby.role->sum() == 0);
  CHECK(standby.take(kPair.primary).empty());
}

TEST_CASE("relays that a broken link has lost are repeated, and known ones are ignored") {
  Side primary(Replica::Standing::primary), standby(Replica::Standing::standby);
  primary.start();
  primary.pull(1);
  deliver(primary, standby);
  standby.take(kPair.primary);
  primary.pull(2);
  primary.take(kPair.standby);
  primary.pull(4);
  deliver(primary, standby);
  CHECK(standby.role->sum() == 1);
  primary.link(kPair.standby);
  standby.link(kPair.primary);
  exchange(primary, standby);
  CHECK(standby.role->sum() == 7);
  CHECK(primary.answers() == Sums{1, 3, 7});
}

TEST_CASE(
    "a primary continues without a standby only by order, and then sends the outputs that waited") {
  Side primary(Replica::Standing::primary);
  primary.start();
  primary.pull(5);
  CHECK(primary.answers().empty());
  primary.order(2, msg::Replicate::Standing::alone);
  CHECK(has_confirmed(primary, 2));
  primary.pull(1);
  CHECK(primary.answers() == Sums{5, 6});
  primary.order(2, msg::Replicate::Standing::alone);  // a repeat
  CHECK(has_confirmed(primary, 2));
}

TEST_CASE("a new standby gets the state and the inputs after it, and is then in sync") {
  Side primary(Replica::Standing::alone), standby(Replica::Standing::empty, 2);
  primary.start();
  for (int i = 1; i <= 10; ++i) primary.pull(i);
  standby.start();
  CHECK(standby.take(kScheduler).size() == 1);
  primary.order(2, msg::Replicate::Standing::seeding);
  CHECK(primary.take(kPair.standby).empty());  // a work is under way
  primary.compute_all();
  primary.pull(100);
  CHECK(primary.answers().back() == 155);  // without a standby, at once
  auto relays = primary.take(kPair.standby);
  REQUIRE(relays.size() == 2);
  standby.get(kPair.primary, relays.front());
  acknowledge(primary, standby);
  CHECK(!has_confirmed(primary, 2));  // the standby lacks an input whose output has left
  primary.pull(1000);
  CHECK(primary.answers().back() == 155);  // outputs wait from now on
  standby.get(kPair.primary, relays.back());
  acknowledge(primary, standby);
  CHECK(has_confirmed(primary, 2));
  exchange(primary, standby);
  CHECK(primary.answers().back() == 1155);
  CHECK(standby.role->sum() == 1155);
  standby.order(3, msg::Replicate::Standing::promoted);
  CHECK(standby.timers == std::vector<TimerToken>{TimerToken{1} << 63, 7});
}

TEST_CASE("a seed in transit is not sent again; a lost seed is, once") {
  Side primary(Replica::Standing::alone), standby(Replica::Standing::empty, 2);
  primary.start();
  primary.order(2, msg::Replicate::Standing::seeding);
  primary.pull(1);
  primary.order(2, msg::Replicate::Standing::seeding);  // the standby is still empty
  auto sent = primary.take(kPair.standby);
  REQUIRE(sent.size() == 3);
  CHECK(is<msg::Seed>(sent[0]));
  CHECK(is<msg::Relay>(sent[1]));
  CHECK(is<msg::SeedSent>(sent[2]));
  for (int i = 0; i < 2; ++i) standby.get(kPair.primary, sent[2]);  // the others are lost
  acknowledge(primary, standby);
  CHECK(primary.sent.size() == 3);      // the answer to the pull, the seed and the relay
  CHECK(primary.answers() == Sums{1});  // in doubt, its outputs do not wait
  exchange(primary, standby);
  CHECK(has_confirmed(primary, 2));
  CHECK(standby.role->sum() == 1);
  standby.get(kPair.primary, sent[2]);  // after the seed, only an acknowledgement
  acknowledge(primary, standby);
  CHECK(primary.take(kPair.standby).empty());
}

TEST_CASE("a seed for an earlier launch of a standby is ignored") {
  Side primary(Replica::Standing::alone), standby(Replica::Standing::empty, 3);
  primary.start();
  primary.order(2, msg::Replicate::Standing::seeding, 2);
  auto late = primary.take(kPair.standby);
  primary.order(3, msg::Replicate::Standing::alone);
  primary.pull(1);
  primary.order(4, msg::Replicate::Standing::seeding, 3);
  for (const Message& message : late) standby.get(kPair.primary, message);
  CHECK(standby.take(kPair.primary).empty());
  exchange(primary, standby);
  CHECK(has_confirmed(primary, 4));
  CHECK(standby.role->sum() == 1);
}

TEST_CASE("a primary does not run away from the new standby of a slow connection") {
  Side primary(Replica::Standing::alone), standby(Replica::Standing::empty, 2);
  primary.start();
  primary.order(2, msg::Replicate::Standing::seeding);
  primary.pull(1);
  CHECK(primary.answers() == Sums{1});
  const Message large({7}, {Blob::allocate(33u << 20)});  // the role ignores it
  for (int i = 0; i < 2; ++i) primary.get(worker(0), large);
  primary.pull(5);
  CHECK(primary.answers() == Sums{1});
  exchange(primary, standby);
  CHECK(has_confirmed(primary, 2));
  CHECK(primary.answers() == Sums{1, 6});
}

TEST_CASE("a role that is always busy gets no messages for a while, so that it can be saved") {
  Side primary(Replica::Standing::alone);
  primary.start();
  for (int i = 1; i <= 10; ++i) primary.pull(i);
  primary.order(2, msg::Replicate::Standing::seeding);
  primary.ring(primary.timers.back());
  primary.pull(100);
  CHECK(primary.role->sum() == 55);
  primary.ring(primary.timers.back());  // its work lasts
  CHECK(primary.role->sum() == 55);
  primary.compute_all();
  CHECK(primary.role->sum() == 155);
  CHECK(primary.take(kPair.standby).size() == 2);
}

TEST_CASE("a standby that cannot read a relay ends, so that its primary continues without it") {
  Side standby(Replica::Standing::standby);
  CHECK_THROWS_WITH(standby.get(kPair.primary, Message({1, 2, 3}, {})),
                    Catch::Contains("cannot read a relay of shard 0"));
  standby.get(worker(0), Message({1, 2, 3}, {}));
}

TEST_CASE("replicas whose outputs differ are noticed") {
  Side primary(Replica::Standing::primary), standby(Replica::Standing::standby);
  primary.start();
  primary.pull(1);
  primary.pull(2);
  auto relays = primary.take(kPair.standby);
  standby.get(kPair.primary, relays[0]);
  auto changed = *decode(relays[1]);
  std::get<msg::MessageInput>(std::get<msg::Relay>(changed.body).input).message =
      encode({.body = msg::Pull{Iteration(9)}});
  standby.get(kPair.primary, encode(changed));
  CHECK_THROWS_WITH(standby.get(kPair.primary, relays[2]),
                    Catch::Contains("has computed other results than shard 0"));
}

}  // namespace leeway::test
