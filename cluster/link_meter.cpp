#include "cluster/link_meter.hpp"

#include <cstring>
#include <utility>

#include "core/text.hpp"
#include "core/this_host.hpp"

namespace leeway {
namespace {

constexpr Duration kMeterCallLimit = seconds(5);
constexpr Duration kAnswerLimit = seconds(10);
constexpr int kPings = 20;
/// Large enough for the bulk lane. A few of them are in flight, for a time or a number of bytes.
constexpr std::size_t kLoadBytes = 1u << 20;
constexpr std::uint64_t kLoadsInFlight = 8;
constexpr std::uint64_t kMostLoads = 256;
constexpr Duration kLoadTime = milliseconds(300);
constexpr std::size_t kMostWaiting = 64;
constexpr const char* kBusy = "it hosts a job, whose links `leeway status` shows";

}  // namespace

void LinkMeter::measure(const std::string& name, const std::string& advice, Then then) {
  waiting_.push_back({name, advice, std::move(then)});
  if (!now_) begin_next();
}

void LinkMeter::begin_next() {
  if (waiting_.empty()) return;
  now_ = Measurement{.order = std::move(waiting_.front())};
  waiting_.pop_front();
  call();
}

void LinkMeter::call() {
  process_.call(now_->order.name, kMeterCallLimit, now_->order.advice,
                [this](const Expected<PeerId>& peer) { called(peer); });
}

void LinkMeter::called(const Expected<PeerId>& peer) {
  if (!peer) return end({.error = peer.error().text});
  now_->peer = *peer;
  now_->last_answer = steady_ns();
  process_.send(*peer, 0, node::Ping{steady_ns()});
}

bool LinkMeter::handle(PeerId peer, const node::Body& body) {
  if (const auto* order = std::get_if<node::Measure>(&body)) {
    const auto answer = [this, peer](const node::Measured& result) {
      process_.send(peer, 0, result);
    };
    if (needs_links_())
      answer({.name = order->name, .error = kBusy});
    else if (waiting_.size() >= kMostWaiting)
      answer({.name = order->name, .error = "it has too many connections to measure; try again"});
    else
      measure(order->name, "check that its node runs and can be reached from here", answer);
    return true;
  }
  if (const auto* load = std::get_if<node::Load>(&body)) {
    process_.send(peer, 0, node::Loaded{load->number});
    return true;
  }
  if (!now_ || now_->peer != peer) return false;
  if (const auto* pong = std::get_if<node::Pong>(&body)) {
    on_pong(*pong);
  } else if (const auto* loaded = std::get_if<node::Loaded>(&body)) {
    on_loaded(*loaded);
  } else {
    return false;
  }
  return true;
}

void LinkMeter::on_pong(const node::Pong& pong) {
  now_->last_answer = steady_ns();
  const std::int64_t round_trip = now_->last_answer - pong.ns;
  if (now_->pings == 0 || round_trip < now_->least_round_trip) now_->least_round_trip = round_trip;
  if (++now_->pings < kPings) return process_.send(*now_->peer, 0, node::Ping{steady_ns()});
  send_loads();
}

void LinkMeter::send_loads() {
  if (!load_) {
    load_ = Blob::allocate(kLoadBytes);
    std::memset(load_.mutable_data(), 0, kLoadBytes);
  }
  // The first load opens the bulk lane, and is not timed.
  const bool opening = now_->answered == 0;
  const auto ends = [this] {
    return now_->sent >= kMostLoads || steady_ns() - now_->loading_since > kLoadTime.ns;
  };
  while (opening ? now_->sent == 0 : now_->sent - now_->answered < kLoadsInFlight && !ends()) {
    ++now_->sent;
    process_.send(*now_->peer, 0, node::Load{++last_load_, load_});
  }
}

void LinkMeter::on_loaded(const node::Loaded& loaded) {
  // Loads are answered in order. An earlier number is of a measurement that has ended.
  const std::uint64_t expected = last_load_ - now_->sent + now_->answered + 1;
  if (now_->answered == now_->sent || loaded.number != expected) return;
  now_->last_answer = steady_ns();
  if (++now_->answered == 1) now_->loading_since = now_->last_answer;
  send_loads();
  if (now_->answered < now_->sent) return;
  const double took = static_cast<double>(now_->last_answer - now_->loading_since) * 1e-9;
  const auto bytes = static_cast<double>((now_->answered - 1) * kLoadBytes);
  end({.round_trip = Duration{now_->least_round_trip},
       .bytes_per_second = bytes / took,
       .shared_memory = process_.mesh().counts(*now_->peer).shared_memory});
}

void LinkMeter::end(node::Measured result) {
  const Measurement ended = *std::exchange(now_, std::nullopt);
  result.name = ended.order.name;
  if (ended.peer && !needs_links_()) process_.mesh().leave(*ended.peer);
  ended.order.then(result);
  begin_next();
}

void LinkMeter::gone(PeerId peer, const std::string& reason) {
  if (!now_ || now_->peer != peer) return;
  if (now_->called_again) return end({.error = concat(now_->order.name, " is gone: ", reason)});
  // Another measurement may have ended the connection that both had used.
  now_ = Measurement{.order = std::move(now_->order), .called_again = true};
  call();
}

void LinkMeter::tick() {
  if (now_ && now_->peer && steady_ns() - now_->last_answer > kAnswerLimit.ns)
    end({.error = concat(now_->order.name, " has not answered for ", kAnswerLimit.seconds(),
                         " s; look at the node's terminal")});
}

}  // namespace leeway
