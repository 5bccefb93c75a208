#include "actors/replica/role_outbox.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "core/check.hpp"
#include "core/mutant.hpp"

namespace leeway {
namespace {

void mix(std::uint64_t& digest, std::uint64_t value) {
  digest = mix64(digest ^ value);
}

void mix(std::uint64_t& digest, const Message& message) {
  for (const std::uint64_t word : message.header()) mix(digest, word);
  for (const Blob& blob : message.blobs()) {
    mix(digest, blob.size());
    // Replicas that compute differently soon differ in all weights.
    if (blob.device() != Device{} || blob.size() < sizeof(float)) continue;
    float sample;
    std::copy_n(blob.as_floats(), 1, &sample);
    mix(digest, std::bit_cast<std::uint32_t>(sample));
  }
}

}  // namespace

void RoleOutbox::enter(std::uint64_t position, Instant now, Outbox& host) {
  position_ = position;
  now_ = now;
  host_ = &host;
}

void RoleOutbox::handles(Address from, const Message& message) {
  put_out({position_, Handled{from, message}});
}

// ---- outputs ----

void RoleOutbox::set_mode(Mode mode) {
  mode_ = mode;
  if (mode == Mode::direct) release(position_);
}

void RoleOutbox::release(std::uint64_t position) {
  for (; !outputs_.empty() && outputs_.front().position <= position; outputs_.pop_front())
    leave(outputs_.front());
}

void RoleOutbox::were_recorded(std::uint64_t number) {
  for (; recorded_ < number && !outputs_.empty(); outputs_.pop_front()) ++recorded_;
}

void RoleOutbox::take_over(Instant now, Outbox& host) {
  host_ = &host;
  set_mode(Mode::direct);
  for (const Address actor : watched_) host.watch(actor);
  for (const auto& [token, due] : timers_) host.after(std::max(due - now, Duration{}), token);
  for (Running& running : running_)
    if (!std::exchange(running.handed, true)) host.compute(running.work);
}

void RoleOutbox::put_out(Output output) {
  const bool waits =
      mode_ == Mode::silent || (mode_ == Mode::waits && !planted(Mutant::output_not_committed));
  if (!waits) return leave(output);
  outputs_.push_back(std::move(output));
}

void RoleOutbox::leave(const Output& output) {
  if (const auto* letter = std::get_if<Letter>(&output.content))
    return host_->send(letter->to, letter->message);
  ++recorded_;
  if (const auto* event = std::get_if<Event>(&output.content))
    return host_->emit_numbered(recorded_, *event);
  const auto& handled = std::get<Handled>(output.content);
  host_->handled_numbered(recorded_, handled.from, handled.message);
}

void RoleOutbox::send(Address to, Message message) {
  mix(digest_, (static_cast<std::uint64_t>(to.kind) << 32) | to.index);
  mix(digest_, message);
  if (mode_ != Mode::silent) put_out({position_, Letter{to, std::move(message)}});
}

void RoleOutbox::emit(const Event& event) {
  mix(digest_, event.index());
  put_out({position_, event});
}

// ---- seeds ----

void RoleOutbox::save(Instant now, msg::Seed& seed) const {
  LW_CHECK(is_idle());
  seed.recorded = recorded_;
  seed.digest = digest_;
  seed.works = works_;
  seed.now = now.ns;
  for (const auto& [token, due] : timers_)
    seed.timers.push_back({token, std::max(due - now, Duration{})});
  seed.watched.assign(watched_.begin(), watched_.end());
}

void RoleOutbox::restore(const msg::Seed& seed) {
  recorded_ = seed.recorded;
  digest_ = seed.digest;
  works_ = seed.works;
  timers_.clear();
  now_ = Instant{seed.now};
  for (const auto& timer : seed.timers) timers_.emplace_back(timer.token, now_ + timer.delay);
  watched_ = {seed.watched.begin(), seed.watched.end()};
}

Rng& RoleOutbox::random() {
  throw std::logic_error("a replicated role draws no random numbers");
}

// ---- works ----

RoleOutbox::Running* RoleOutbox::find(const Work& work) {
  const auto found =
      std::ranges::find(running_, &work, [](const Running& one) { return one.work.get(); });
  return found == running_.end() ? nullptr : &*found;
}

RoleOutbox::Running* RoleOutbox::find(std::uint64_t number) {
  const auto found = std::ranges::find(running_, number, &Running::number);
  return found == running_.end() ? nullptr : &*found;
}

std::shared_ptr<Work> RoleOutbox::handle_part(Running& running) {
  auto work = running.work;
  if (++running.handled == work->parts())
    std::erase_if(running_, [&](const Running& one) { return one.work == work; });
  return work;
}

std::vector<std::uint64_t> RoleOutbox::ahead() const {
  std::vector<std::uint64_t> numbers;
  for (const Running& one : running_)
    if (one.computed > one.handled) numbers.push_back(one.number);
  return numbers;
}

void RoleOutbox::compute(std::shared_ptr<Work> work) {
  Running running{.number = ++works_, .work = work};
  running.handed = mode_ != Mode::silent || !work->waits_for_disk();
  const bool handed = running.handed;
  running_.push_back(std::move(running));
  if (handed) host_->compute(std::move(work));
}

// ---- timers and watches ----

void RoleOutbox::rang(TimerToken token) {
  const auto found = std::ranges::find(timers_, token, &std::pair<TimerToken, Instant>::first);
  if (found != timers_.end()) timers_.erase(found);
}

void RoleOutbox::after(Duration delay, TimerToken token) {
  timers_.emplace_back(token, now_ + delay);
  if (mode_ != Mode::silent) host_->after(delay, token);
}

void RoleOutbox::watch(Address actor) {
  watched_.insert(actor);
  if (mode_ != Mode::silent) host_->watch(actor);
}

}  // namespace leeway
