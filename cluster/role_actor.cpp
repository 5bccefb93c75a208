#include "cluster/role_actor.hpp"

#include <stdexcept>

#include "kernels/threads.hpp"

namespace leeway::cluster {
namespace {

void use_one_compute_thread_here() {
  thread_local bool already = false;
  if (!already) kernels::use_one_compute_thread();
  already = true;
}

}  // namespace

RoleActor::RoleActor(caf::actor_config& config, std::shared_ptr<HostState> host, Address address,
                     std::shared_ptr<Role> role, bool own_thread)
    : WatchingActor(config),
      host_(std::move(host)),
      address_(address),
      role_(std::move(role)),
      own_thread_(own_thread),
      random_(Rng::stream(host_->options.seed, static_cast<std::uint64_t>(address.kind) + 1,
                          address.index)) {
  if (address.kind != RoleKind::worker) return;
  const auto& options = host_->options;
  const auto& first = options.first_iterations;
  straggler_ = StragglerModel(options.stragglers, address.index, options.seed,
                              address.index < first.size() ? first[address.index] : Iteration(),
                              options.disturbances);
}

void RoleActor::on_end_of(const caf::actor_addr& actor) {
  Address ended;
  EndReason reason;
  {
    std::shared_lock lock(host_->mutex);
    const auto found = host_->addresses.find(actor);
    if (found == host_->addresses.end()) return;
    ended = found->second;
    // The end of an earlier launch changes nothing.
    const auto present = host_->actors.find(ended);
    if (present == host_->actors.end() || present->second->address() != actor) return;
    const auto noted = host_->end_reasons.find(ended);
    if (noted != host_->end_reasons.end()) reason = noted->second;
  }
  guarded([&] { role_->on_down(ended, reason, *this); });
}

caf::behavior RoleActor::make_behavior() {
  return {
      [this](Begin) {
        guarded([&] {
          if (own_thread_) {
            use_one_compute_thread_here();
            role_->warm_up();
          }
          role_->on_start(*this);
        });
      },
      [this](const Delivery& delivery) {
        if (const auto& on_message = host_->options.on_message)
          on_message(received(now(), delivery.from, address_, delivery.message));
        guarded([&] { role_->on_message(delivery.from, delivery.message, *this); });
      },
      [this](const RunPart& job) { run_part(job); },
      [this](const PartDone& finished) { part_done(finished); },
      [this](const PartFailed& failed) { end(failed.reason); },
      [this](Tick tick) { guarded([&] { role_->on_timer(tick.token, *this); }); },
      [this](Freeze freeze) { this->freeze(freeze.time); },
      [this](Linked linked) { this->linked(linked.peer); },
      [this](const Down& down) {
        guarded([&] { role_->on_down(down.ended, down.reason, *this); });
      },
  };
}

template <class Handler>
void RoleActor::guarded(Handler handler) {
  taking_over(static_cast<caf::abstract_actor*>(this));
  try {
    handler();
    // Results may ask for more work, so this is a queue.
    while (!small_work_.empty()) {
      const auto work = std::move(small_work_.front());
      small_work_.erase(small_work_.begin());
      use_one_compute_thread_here();
      work->run(0);
      role_->on_part(*work, 0, *this);
    }
  } catch (const std::exception& error) {
    end(error.what());
  }
  // For the thread that handles the next message, which CAF itself may send.
  handing_over(static_cast<caf::abstract_actor*>(this));
}

void RoleActor::end(const std::string& reason) {
  {
    std::lock_guard lock(host_->mutex);
    const auto self = host_->actors.find(address_);
    // The next launch may have begun.
    const bool present = self != host_->actors.end() && self->second->address() == address();
    if (present && !host_->end_reasons.contains(address_)) host_->note_end(address_, reason);
  }
  quit(caf::make_error(caf::sec::runtime_error, reason));
}

void RoleActor::send(Address to, Message message) {
  host_->send(address_, to, std::move(message));
}

void RoleActor::after(Duration delay, TimerToken token) {
  mail_self_after(std::chrono::nanoseconds(delay.ns), Tick{token});
}

void RoleActor::watch(Address actor) {
  watching_.insert(actor);
  {
    std::shared_lock lock(host_->mutex);
    const auto found = host_->actors.find(actor);
    if (found != host_->actors.end()) {
      if (watched_.insert(found->second->address()).second) watch_actor(found->second);
      return;
    }
  }
  if (host_->options.events) host_->options.events->watch_out(address_, actor);
}

void RoleActor::linked(Address peer) {
  // Another actor may have this address now.
  if (watching_.contains(peer)) watch(peer);
  guarded([&] { role_->on_link(peer, *this); });
}

void RoleActor::take_over(Address address) {
  caf::actor earlier;
  {
    std::lock_guard lock(host_->mutex);
    // A kill that was ordered during this handler comes first.
    if (!host_->actors.contains(address_) || host_->end_reasons.contains(address_))
      throw std::runtime_error("it was ended before it could take over");
    const auto self = host_->actors.extract(address_).mapped();
    earlier = std::exchange(host_->actors[address], self);
    host_->addresses[self->address()] = address;
    host_->end_reasons.erase(address);
  }
  address_ = address;
  // It may live, and only be unreachable.
  if (earlier) caf::anon_send_exit(earlier, caf::exit_reason::kill);
  if (host_->options.events) host_->options.events->on_take_over(ShardId(address.index));
}

void RoleActor::freeze(Duration time) {
  std::unique_lock lock(host_->closing_mutex);
  host_->closing_changed.wait_for(lock, std::chrono::nanoseconds(time.ns),
                                  [&] { return host_->closing; });
}

void RoleActor::emit(const Event& event) {
  emit_numbered(0, event);
}

void RoleActor::emit_numbered(std::uint64_t number, const Event& event) {
  if (host_->options.on_event && !host_->is_quiet)
    host_->options.on_event(address_, now(), event, number);
}

void RoleActor::compute(std::shared_ptr<Work> work) {
  if (work->waits_for_disk()) {
    run_beside(std::move(work), 0, true);
  } else if (own_thread_) {
    slow_down_ = work->continues_iteration() ? straggler_.same() : straggler_.next(now());
    mail_self(RunPart{std::move(work), 0});
  } else if (is_small(*work)) {
    small_work_.push_back(std::move(work));
  } else {
    run_beside(std::move(work), 0, false);
  }
}

void RoleActor::run_part(const RunPart& job) {
  taking_over(static_cast<caf::abstract_actor*>(this));
  use_one_compute_thread_here();
  const auto began = std::chrono::steady_clock::now();
  try {
    job.work->run(job.part);
  } catch (const std::exception& error) {
    return end(error.what());
  }
  PartDone finished{job.work, job.part};
  if (slow_down_ == Slowdown{}) return part_done(finished);
  // A straggler is slow without taking the processor from the others.
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  auto delay = std::chrono::duration_cast<std::chrono::nanoseconds>(took * (slow_down_.factor - 1));
  straggler_.count(nanoseconds(delay.count()), job.part == 0);
  if (job.part == 0) delay += std::chrono::nanoseconds(slow_down_.extra.ns);
  mail_self_after(delay, std::move(finished));
}

void RoleActor::part_done(const PartDone& finished) {
  taking_over(static_cast<caf::abstract_actor*>(this));
  // The next part waits its turn in the mailbox, so that long work does not delay messages.
  const bool more = finished.part + 1 < finished.work->parts();
  if (more && own_thread_) mail_self(RunPart{finished.work, finished.part + 1});
  if (more && !own_thread_) run_beside(finished.work, finished.part + 1, false);
  guarded([&] { role_->on_part(*finished.work, finished.part, *this); });
}

void RoleActor::run_beside(std::shared_ptr<Work> work, int part, bool blocks) {
  // The work may point into the role, so the function keeps both. The work is an argument because
  // CAF dereferences the pointer to a function's arguments, which is null without any.
  handing_over(work.get());
  const auto compute = [part, role = role_, owner = caf::actor_cast<caf::actor>(this)](
                           const std::shared_ptr<Work>& given) {
    taking_over(given.get());
    use_one_compute_thread_here();
    try {
      given->run(part);
      cluster::mail(owner, PartDone{given, part});
    } catch (const std::exception& error) {
      cluster::mail(owner, PartFailed{error.what()});
    }
  };
  if (blocks) {
    system().spawn<caf::detached>(compute, std::move(work));
  } else {
    system().spawn(compute, std::move(work));
  }
}

}  // namespace leeway::cluster
