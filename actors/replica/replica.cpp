#include "actors/replica/replica.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/mutant.hpp"
#include "core/text.hpp"
#include "messages/blobs.hpp"

namespace leeway {
namespace {

/// Of the replica itself; roles use small numbers. Each seeding has its own timer, whose token is
/// this plus the number of the order.
constexpr TimerToken kReadyTimer = TimerToken{1} << 63, kSeedTimer = kReadyTimer + 1;
/// Between two messages of an empty standby, at last.
constexpr Duration kLongestReadyPause = seconds(10);
/// The time in which a role may become quiet by itself.
constexpr Duration kPatience = milliseconds(50);
/// The time for which its messages are then held back, or longer while it computes.
constexpr Duration kHold = milliseconds(100);
/// Bytes of tensors in relays after a seed: at most this many times those of the seed, and at most
/// this many. With more, the outputs wait for the new standby.
constexpr std::size_t kMaxSeedsAhead = 4, kMaxBytesAhead = 64u << 20;

RoleOutbox::Mode mode_of(Replica::Standing standing) {
  switch (standing) {
    case Replica::Standing::primary:
      return RoleOutbox::Mode::waits;
    case Replica::Standing::seeding:
    case Replica::Standing::alone:
      return RoleOutbox::Mode::direct;
    case Replica::Standing::standby:
    case Replica::Standing::empty:
      break;
  }
  return RoleOutbox::Mode::silent;
}

}  // namespace

Replica::Replica(std::shared_ptr<ReplicatedRole> role, ReplicaPair pair, Standing standing,
                 std::uint32_t launch, std::shared_ptr<ReplicaGauge> gauge)
    : role_(std::move(role)),
      pair_(pair),
      launch_(launch),
      gauge_(std::move(gauge)),
      standing_(standing),
      outbox_(mode_of(standing)),
      configuration_(standing == Standing::empty ? 0 : 1) {}

// ---- as primary ----

template <class Fill, class Call>
void Replica::handle(Fill fill, Call call, Outbox& out) {
  const Instant now = role_time(out);  // the same for both replicas
  ++position_;
  outbox_.enter(position_, now, out);
  if (standing_ == Standing::primary || seeded_) {
    msg::Relay relay{.configuration = configuration_,
                     .position = position_,
                     .now = now.ns,
                     .recorded = outbox_.recorded(),
                     .digest = outbox_.digest()};
    fill(relay);
    kept_.emplace_back(position_, encode({.body = std::move(relay)}));
    out.send(pair_.standby, kept_.back().second);
    if (seeded_ && in_sync_at_ == 0 && is_far_ahead(kept_.back().second)) wait_for_standby();
  }
  set_gauge();
  call();
  seed_if_quiet(out);
}

template <class Call>
void Replica::handle_message(Address from, const Message& message, Call call, Outbox& out) {
  handle(
      [&](msg::Relay& relay) {
        relay.input = msg::MessageInput{from, without_blobs(message)};
        relay.blobs.assign(message.blobs().begin(), message.blobs().end());
      },
      [&] {
        outbox_.handles(from, message);
        call();
      },
      out);
}

void Replica::on_start(Outbox& out) {
  if (standing_ == Standing::empty) return on_timer(kReadyTimer, out);
  if (!is_primary()) return;
  handle([](msg::Relay& relay) { relay.input = msg::StartInput{}; },
         [&] { role_->on_start(outbox_); }, out);
}

void Replica::on_message(Address from, const Message& message, Outbox& out) {
  auto envelope = decode(message);
  if (envelope) return on_decoded(from, message, *envelope, out);
  if (!is_primary()) {
    if (from != pair_.primary) return;
    // Without this input, all outputs of the primary would wait.
    throw std::runtime_error(concat("cannot read a relay of ", from, ": ", envelope.error().text));
  }
  handle_message(
      from, message, [&] { role_->on_message(from, message, outbox_); }, out);
}

void Replica::on_decoded(Address from, const Message& message, Envelope& envelope, Outbox& out) {
  if (const auto* order = std::get_if<msg::Replicate>(&envelope.body); order && from == kScheduler)
    return obey(*order, out);
  if (!is_primary()) {
    // Messages to the standby itself; other actors speak to the primary.
    if (from != pair_.primary) return;
    if (auto* relay = std::get_if<msg::Relay>(&envelope.body)) relayed(*relay, out);
    if (const auto* seed = std::get_if<msg::Seed>(&envelope.body)) plant(*seed, out);
    if (const auto* sent = std::get_if<msg::SeedSent>(&envelope.body)) answer(*sent, out);
    return;
  }
  if (from == pair_.primary) return;  // late relays of the primary before this one
  if (const auto* relayed = std::get_if<msg::Relayed>(&envelope.body);
      relayed && from == pair_.standby)
    return acknowledged(*relayed, out);
  if (const auto* missing = std::get_if<msg::SeedMissing>(&envelope.body);
      missing && from == pair_.standby)
    return send_seed_again(*missing, out);
  if (holding_) return held_.push_back({from, message});
  handle_message(
      from, message, [&] { role_->on_decoded(from, message, envelope, outbox_); }, out);
}

void Replica::on_timer(TimerToken token, Outbox& out) {
  if (token > kReadyTimer) {
    if (token == kSeedTimer + configuration_) on_seed_timer(out);
    return;
  }
  if (token == kReadyTimer) {
    if (standing_ != Standing::empty) return;
    out.send(kScheduler, encode({.body = msg::StandbyReady{launch_}}));
    // Ever more rarely, because each repeat is answered.
    const Duration pause = ready_after_;
    ready_after_ = std::min(Duration{2 * pause.ns}, kLongestReadyPause);
    return out.after(pause, kReadyTimer);
  }
  handle([&](msg::Relay& relay) { relay.input = msg::TimerInput{token}; },
         [&] {
           outbox_.rang(token);
           role_->on_timer(token, outbox_);
         },
         out);
}

void Replica::on_part(Work& work, int, Outbox& out) {
  auto* running = outbox_.find(work);
  LW_CHECK(running != nullptr, "a work that the role did not hand out");
  ++running->computed;
  if (!is_primary()) return follow(out);
  computed(*running, out);
}

void Replica::computed(RoleOutbox::Running& running, Outbox& out) {
  const auto part = static_cast<std::uint32_t>(running.handled);
  handle(
      [&](msg::Relay& relay) {
        const Work& work = *running.work;
        relay.input = msg::PartInput{running.number, part,
                                     work.waits_for_disk() ? work.outcome() : Message()};
      },
      [&] {
        const auto work = outbox_.handle_part(running);
        role_->on_part(*work, static_cast<int>(part), outbox_);
      },
      out);
}

void Replica::on_down(Address actor, const EndReason& reason, Outbox& out) {
  if (!is_primary()) return;
  handle(
      [&](msg::Relay& relay) {
        relay.input = msg::EndInput{actor, static_cast<std::uint8_t>(reason.kind), reason.text};
      },
      [&] { role_->on_down(actor, reason, outbox_); }, out);
}

void Replica::on_link(Address peer, Outbox& out) {
  if (!is_primary()) {
    if (peer == pair_.primary && standing_ == Standing::standby) acknowledge(true, out);
    return;
  }
  if (peer == pair_.standby) return send_kept(out);
  handle([&](msg::Relay& relay) { relay.input = msg::LinkInput{peer}; },
         [&] { role_->on_link(peer, outbox_); }, out);
}

void Replica::send_kept(Outbox& out) {
  if (seeded_) ++sendings_;
  for (const auto& [position, relay] : kept_) out.send(pair_.standby, relay);
}

void Replica::acknowledged(const msg::Relayed& relayed, Outbox& out) {
  if (relayed.configuration != configuration_ || standing_ == Standing::alone) return;
  while (!kept_.empty() && kept_.front().first <= relayed.position) kept_.pop_front();
  outbox_.release(std::min(relayed.position, position_));
  set_gauge();
  if (standing_ != Standing::seeding) return;
  if (in_sync_at_ == 0) wait_for_standby();
  if (relayed.position < in_sync_at_ && !planted(Mutant::in_sync_too_early)) return;
  standing_ = Standing::primary;
  seeded_ = false;
  confirm(out);
}

// ---- a new standby ----

void Replica::seed_if_quiet(Outbox& out) {
  if (standing_ != Standing::seeding || seeded_ || !role_->is_quiet() || !outbox_.is_idle()) return;
  const Message state = role_->save();
  msg::Seed seed{.configuration = configuration_,
                 .position = position_,
                 .state = without_blobs(state),
                 .launch = seed_launch_,
                 .blobs = {state.blobs().begin(), state.blobs().end()}};
  outbox_.save(role_time(out), seed);
  seeded_ = true;
  seed_bytes_ = blob_bytes(state);
  ahead_of_seed_ = 0;
  sendings_ = 1;
  kept_.emplace_back(position_, encode({.body = std::move(seed)}));
  out.send(pair_.standby, kept_.back().second);
  stop_holding(out);
}

bool Replica::is_far_ahead(const Message& relay) {
  ahead_of_seed_ += blob_bytes(relay);
  return ahead_of_seed_ > std::min(kMaxSeedsAhead * seed_bytes_, kMaxBytesAhead);
}

void Replica::announce_seed(Outbox& out) const {
  if (seeded_)
    out.send(pair_.standby,
             encode({.body = msg::SeedSent{configuration_, seed_launch_, sendings_}}));
}

void Replica::send_seed_again(const msg::SeedMissing& missing, Outbox& out) {
  // Otherwise the seed is in transit again.
  if (missing.configuration == configuration_ && seeded_ && missing.sending == sendings_)
    send_kept(out);
}

void Replica::wait_for_standby() {
  // Outputs that have left come from inputs that the standby may lack.
  in_sync_at_ = position_;
  outbox_.set_mode(RoleOutbox::Mode::waits);
}

void Replica::on_seed_timer(Outbox& out) {
  if (standing_ != Standing::seeding || seeded_) return;
  // Work under way ends without further messages; what else keeps the role busy may need some.
  const bool ends = holding_ && outbox_.is_idle();
  holding_ = !ends;
  out.after(holding_ ? kHold : kPatience, kSeedTimer + configuration_);
  if (ends) stop_holding(out);
}

void Replica::stop_holding(Outbox& out) {
  holding_ = false;
  for (auto& [from, message] : std::exchange(held_, {})) on_message(from, message, out);
}

void Replica::plant(const msg::Seed& seed, Outbox& out) {
  if (seed.configuration < configuration_ || seed.launch != launch_) return;
  if (standing_ == Standing::standby) {
    if (seed.configuration == configuration_) acknowledge(true, out);
    return;
  }
  const Message state = with_blobs(seed.state, seed.blobs);
  if (const Status status = role_->restore(state); !status)
    throw std::runtime_error(concat("the state of ", pair_.primary, ": ", status.error().text));
  outbox_.restore(seed);
  compare_clocks(Instant{seed.now}, out);
  standing_ = Standing::standby;
  configuration_ = seed.configuration;
  position_ = received_ = seed.position;
  acknowledge(true, out);
}

void Replica::answer(const msg::SeedSent& sent, Outbox& out) {
  if (sent.launch != launch_) return;
  // SeedSent arrives after the Seed, so an empty standby has lost the Seed.
  if (standing_ == Standing::empty)
    out.send(pair_.primary, encode({.body = msg::SeedMissing{sent.configuration, sent.sending}}));
  else if (sent.configuration == configuration_)
    acknowledge(true, out);
}

// ---- as standby ----

void Replica::relayed(msg::Relay& relay, Outbox& out) {
  // An earlier primary may not know that it was replaced.
  if (relay.configuration != configuration_ || promotion_) return;
  if (relay.position != received_ + 1) return acknowledge(true, out);
  ++received_;
  compare_clocks(Instant{relay.now}, out);
  inputs_.push_back(std::move(relay));
  follow(out);
}

void Replica::compare_clocks(Instant of_primary, Outbox& out) {
  // The message that arrived fastest is the most accurate.
  const Duration ahead = of_primary - out.now();
  ahead_ = std::max(ahead_.value_or(ahead), ahead);
}

void Replica::acknowledge(bool again, Outbox& out) {
  // A primary does not run away from a slow standby, which would have to catch up before it can
  // take over.
  const std::uint64_t most = std::min(received_, position_ + limits::kMaxInputsBehind);
  if (most <= acknowledged_ && !again) return;
  acknowledged_ = std::max(acknowledged_, most);
  out.send(pair_.primary, encode({.body = msg::Relayed{configuration_, acknowledged_}}));
}

void Replica::follow(Outbox& out) {
  while (!inputs_.empty() && follow(inputs_.front(), out)) inputs_.pop_front();
  if (promotion_ && (inputs_.empty() || planted(Mutant::takes_over_behind))) return take_over(out);
  acknowledge(false, out);
}

bool Replica::follow(msg::Relay& relay, Outbox& out) {
  const auto* part = std::get_if<msg::PartInput>(&relay.input);
  RoleOutbox::Running* running = part ? outbox_.find(part->work) : nullptr;
  if (part && !running)
    throw std::runtime_error(concat(pair_.primary, " has computed a work that ", pair_.standby,
                                    " does not know: the replicas differ"));
  if (running && running->handed && running->computed <= running->handled) return false;
  if (relay.digest != outbox_.digest())
    throw std::runtime_error(concat(
        pair_.standby, " has computed other results than ", pair_.primary,
        "; put both on machines of the same type, or run without standby shards (--replicas 1)"));
  outbox_.were_recorded(relay.recorded);
  ++position_;
  outbox_.enter(position_, Instant{relay.now}, out);
  if (part) {
    if (!running->handed) running->work->adopt(part->outcome);
    const auto work = outbox_.handle_part(*running);
    role_->on_part(*work, static_cast<int>(part->part), outbox_);
  } else if (auto* delivered = std::get_if<msg::MessageInput>(&relay.input)) {
    const Message message = with_blobs(delivered->message, std::move(relay.blobs));
    outbox_.handles(delivered->from, message);
    role_->on_message(delivered->from, message, outbox_);
  } else if (const auto* rang = std::get_if<msg::TimerInput>(&relay.input)) {
    outbox_.rang(rang->token);
    role_->on_timer(rang->token, outbox_);
  } else if (const auto* ended = std::get_if<msg::EndInput>(&relay.input)) {
    role_->on_down(ended->actor, {static_cast<EndReason::Kind>(ended->kind), ended->text}, outbox_);
  } else if (const auto* linked = std::get_if<msg::LinkInput>(&relay.input)) {
    role_->on_link(linked->peer, outbox_);
  } else {
    role_->on_start(outbox_);
  }
  return true;
}

// ---- orders of the scheduler ----

void Replica::obey(const msg::Replicate& order, Outbox& out) {
  if (order.configuration < configuration_) return;
  if (order.configuration == configuration_) {
    if (standing_ != Standing::seeding) return confirm(out);
    return announce_seed(out);
  }
  if (!is_primary()) {
    if (standing_ == Standing::empty) return;
    if (order.standing != msg::Replicate::Standing::promoted) return;
    promotion_ = order.configuration;
    return follow(out);
  }
  configuration_ = order.configuration;
  kept_.clear();
  seeded_ = false;
  in_sync_at_ = 0;
  outbox_.set_mode(RoleOutbox::Mode::direct);
  if (order.standing == msg::Replicate::Standing::seeding) {
    standing_ = Standing::seeding;
    seed_launch_ = order.launch;
    out.after(kPatience, kSeedTimer + configuration_);
    return seed_if_quiet(out);
  }
  standing_ = Standing::alone;
  stop_holding(out);
  confirm(out);
}

void Replica::take_over(Outbox& out) {
  configuration_ = *std::exchange(promotion_, std::nullopt);
  standing_ = Standing::alone;
  out.take_over(pair_.primary);
  outbox_.take_over(role_time(out), out);
  if (position_ == 0) on_start(out);
  // Parts that were computed here before the primary reported its own.
  for (const std::uint64_t number : outbox_.ahead())
    for (auto* running = outbox_.find(number); running && running->computed > running->handled;
         running = outbox_.find(number))
      computed(*running, out);
  // The messages that the primary could not send are repeated.
  for (const Address peer : {kScheduler, kMonitor}) on_link(peer, out);
  confirm(out);
}

std::string Replica::describe() const {
  const char* const names[] = {"primary", "seeding", "alone", "standby", "empty"};
  return concat(names[static_cast<int>(standing_)], " at input ", position_, ", ",
                outbox_.waiting(), " outputs wait, ", inputs_.size(), " inputs to follow");
}

void Replica::set_gauge() {
  if (!gauge_) return;
  using State = ReplicaGauge::Standby;
  gauge_->standby = standing_ == Standing::primary   ? State::in_sync
                    : standing_ == Standing::seeding ? State::seeding
                                                     : State::none;
  gauge_->behind = kept_.size();
}

void Replica::confirm(Outbox& out) {
  set_gauge();
  out.send(kScheduler, encode({.body = msg::Replicating{configuration_}}));
}

}  // namespace leeway
