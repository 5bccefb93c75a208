// MeshNode: calls of other processes, on threads that may block.
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/text.hpp"
#include "core/this_host.hpp"
#include "transport/mesh_node.hpp"
#include "transport/probe.hpp"

namespace leeway::transport {
namespace {

/// After this many refused calls in a row, the process has ended.
constexpr int kRefusedMax = 3;
constexpr Duration kRefusedPause = milliseconds(30);
/// The same on one host, where no firewall refuses calls in the place of the process.
constexpr Duration kRefusedHerePause = milliseconds(10);
constexpr Duration kCallPause = milliseconds(200);
/// Before the second call of a lost connection; doubles up to kCallPause. A process that is being
/// killed may still take the first call.
constexpr Duration kFirstPause = milliseconds(10);
constexpr Duration kProbeLimit = milliseconds(500);
constexpr Duration kAnswerLimit = milliseconds(1000);
/// For another call between the two processes, which goes first.
constexpr Duration kOtherCall = milliseconds(500);
/// The process that has called calls again at once. Until this time, the other one only asks
/// whether the first one still listens, so that their calls do not meet.
constexpr Duration kCalledPause = seconds(1);
/// For one attempt to open a bulk lane.
constexpr Duration kBulkLimit = seconds(2);
/// The small lane reports the end of a process; its bulk lanes wait for it.
constexpr Duration kGrace = milliseconds(300);

std::chrono::nanoseconds chrono(Duration time) {
  return std::chrono::nanoseconds(time.ns);
}

constexpr const char* kNoAnswer = "it takes calls but does not answer; is it stopped?";
constexpr const char* kClosed =
    "it closed the connection; give both sides --tls with certificates of the same cluster, or "
    "neither, and check that a Leeway process listens there";

}  // namespace

Expected<PeerId> MeshNode::connect(const std::string& host, std::uint16_t port, Duration limit,
                                   const std::string& advice) {
  const std::string there = concat(host, ":", port, ": ");
  Call calling{.host = host, .port = port, .until = steady_ns() + limit.ns};
  while (true) {
    auto outcome = call(calling);
    if (const auto* link = std::get_if<LinkPointer>(&outcome)) return (*link)->id();
    const auto& failure = std::get<Failure>(outcome);
    if (failure.kind == Failure::Kind::unreached)
      return Error{concat(there, failure.why, "; ", advice)};
    const auto pause = milliseconds(5 + static_cast<std::int64_t>(random_word() % 60));
    if (failure.kind != Failure::Kind::again || steady_ns() + pause.ns > calling.until)
      return Error{there + failure.why};
    std::this_thread::sleep_for(chrono(pause));
  }
}

std::variant<std::unique_ptr<Stream>, MeshNode::Failure> MeshNode::open_stream(Call& call) const {
  const Duration left{std::max<std::int64_t>(1'000'000, call.until - steady_ns())};
  Probe reached = probe(call.host, call.port, left);
  if (reached.reach != Reach::listens) return Failure{reached.why, Failure::Kind::unreached};
  call.hello.version = protocol_.version;
  call.hello.host = is_any(options_.address) ? reached.local_host : options_.address;
  call.hello.mesh = id_;
  call.hello.expected = call.expected;
  call.hello.nonce = {random_word(), random_word()};
  auto stream = std::make_unique<Stream>(std::move(reached.socket), Stream::Side::caller, tls_);
  const auto progress = stream->complete([&] { return stream->shake_hands(); }, call.until);
  if (progress == Stream::Progress::done) return stream;
  return Failure{progress == Stream::Progress::ended ? kClosed : kNoAnswer};
}

/// Sends a packet and reads the answer. False: the connection has ended, or no answer in time.
bool MeshNode::exchange(Stream& stream, const Bytes& packet, PacketReader& answer,
                        std::int64_t until) const {
  answer.clear();
  std::span<const std::byte> left(packet);
  return stream.write_some(left) == Stream::Progress::done &&
         stream.complete([&] { return answer.read_from(stream); }, until) == Stream::Progress::done;
}

std::variant<MeshNode::LinkPointer, MeshNode::Failure> MeshNode::call(Call& call) {
  auto opened = open_stream(call);
  if (auto* failure = std::get_if<Failure>(&opened)) return std::move(*failure);
  return greet(call, std::get<std::unique_ptr<Stream>>(std::move(opened)));
}

std::variant<MeshNode::LinkPointer, MeshNode::Failure> MeshNode::greet(
    Call& call, std::unique_ptr<Stream> stream) {
  PacketReader answer;
  Welcome welcome;
  if (!exchange(*stream, packet_of(call.hello, protocol_.number), answer, call.until))
    return Failure{steady_ns() >= call.until ? kNoAnswer : kClosed};
  if (!answer.take(welcome)) return Failure{"it is no Leeway process", Failure::Kind::refused};
  if (answer.protocol() != protocol_.number)
    return Failure{mismatch(welcome.version, answer.protocol()), Failure::Kind::refused};
  if (!welcome.refusal.empty()) return Failure{welcome.refusal, Failure::Kind::refused};
  if (!is_equal(welcome.proof, proof_of(secret_, Stream::Side::called, call.hello, welcome)))
    return Failure{
        "it was started by another user of the host; run both as one user, give both the same "
        "LEEWAY_TOKEN, or use --tls",
        Failure::Kind::refused};
  if (call.only_asks) return Failure{"the other process is to call", Failure::Kind::again};
  const std::int64_t wait_until = std::min(call.until, steady_ns() + kOtherCall.ns);
  const LinkPointer link = call.expected == MeshId{} ? link_for(welcome.mesh) : find(call.expected);
  if (!link) return Failure{"the connection has ended"};
  if (call.expected == MeshId{} && link->is_leaving())
    return Failure{"the last connection with it is ending; try again in some seconds",
                   Failure::Kind::again};
  const auto attempt = link->begin_call();
  std::variant<LinkPointer, Failure> outcome =
      Failure{"another call between the two processes is under way", Failure::Kind::again};
  if (attempt) {
    outcome = confirm(call, welcome, link, *attempt, std::move(stream));
    if (std::holds_alternative<Failure>(outcome)) link->abandon(*attempt);
  }
  const auto* const failure = std::get_if<Failure>(&outcome);
  if (!failure || failure->kind != Failure::Kind::again) return outcome;
  stream.reset();
  if (const LinkPointer other = wait_until_up(link, wait_until)) return other;
  return outcome;
}

std::variant<MeshNode::LinkPointer, MeshNode::Failure> MeshNode::confirm(
    Call& call, const Welcome& welcome, const LinkPointer& link, const Link::Attempt& attempt,
    std::unique_ptr<Stream> stream) {
  LinkDetails details = this->details(call.hello.host);
  details.link = link->number();
  details.peer_link = link->connection().peer_link;
  details.token = attempt.last;
  details.received = attempt.received;
  details.proof = proof_of(secret_, Stream::Side::caller, call.hello, welcome);
  PacketReader answer;
  LinkDetails ready;
  if (!exchange(*stream, packet_of(details, protocol_.number), answer, call.until))
    return Failure{steady_ns() >= call.until ? kNoAnswer : kClosed};
  if (!answer.take(ready)) return Failure{"it sent an invalid greeting", Failure::Kind::refused};
  if (!ready.refusal.empty())
    return Failure{ready.refusal,
                   ready.yields == 0 ? Failure::Kind::refused : Failure::Kind::again};
  if (std::string why = too_far(ready); !why.empty()) return Failure{why, Failure::Kind::refused};
  Link::Connection connection{.host = call.host,
                              .port = call.port,
                              .peer_link = ready.link,
                              .token = ready.token,
                              .window_bytes = ready.window_bytes,
                              .silence_ns = ready.silence_ns,
                              .called = true};
  if (!link->install(attempt, std::move(connection), std::move(stream), ready.received))
    return Failure{"another call was faster", Failure::Kind::again};
  call_changed_.notify_all();
  return link;
}

/// Null: not by `until`.
MeshNode::LinkPointer MeshNode::wait_until_up(const LinkPointer& link, std::int64_t until) {
  std::unique_lock lock(call_mutex_);
  while (!closed_ && steady_ns() < until && link->state() != Link::State::ended) {
    if (link->state() == Link::State::up) return link;
    call_changed_.wait_for(lock, std::chrono::milliseconds(2));
  }
  return nullptr;
}

// ---- lost connections ----

bool MeshNode::rest(const LinkPointer& link, Duration time) {
  std::unique_lock lock(call_mutex_);
  call_changed_.wait_for(lock, chrono(time), [&] { return closed_; });
  return !closed_ && link->state() == Link::State::lost;
}

/// Calls until the link is up or the peer is gone.
void MeshNode::call_again(const LinkPointer& link) {
  {
    std::lock_guard lock(call_mutex_);
    if (!called_again_.insert(link->id()).second) return;
  }
  const Link::Connection lost = link->connection();
  const std::int64_t began = steady_ns(), until = began + 5 * options_.silence.ns;
  int refused = 0;
  Duration next = kFirstPause;
  std::string gone;
  for (Duration pause{}; gone.empty() && rest(link, pause);) {
    if (steady_ns() > until) {
      gone = concat("the connection was lost and could not be made again within ",
                    Duration{5 * options_.silence.ns}.seconds(), " s");
      break;
    }
    const Probe reached = probe(lost.host, lost.port, kProbeLimit);
    refused = reached.reach == Reach::refused ? refused + 1 : 0;
    if (refused == kRefusedMax) gone = "its process has ended";
    if (refused > 0)
      pause = is_loopback(lost.host) ? kRefusedHerePause : kRefusedPause;
    else
      pause = std::exchange(next, std::min(next + next, kCallPause));
    if (reached.reach != Reach::listens) continue;
    Call calling{.host = lost.host,
                 .port = lost.port,
                 .expected = link->mesh(),
                 .only_asks = !lost.called && steady_ns() - began < kCalledPause.ns,
                 .until = steady_ns() + kAnswerLimit.ns};
    const auto outcome = call(calling);
    const auto* failure = std::get_if<Failure>(&outcome);
    if (failure && failure->kind == Failure::Kind::refused)
      gone = "the connection was lost, and " + failure->why;
  }
  bool continues = false;
  {
    std::lock_guard lock(call_mutex_);
    called_again_.erase(link->id());
    continues = !closed_;
  }
  if (!gone.empty()) return link->gone(gone);
  // It may have been lost once more before this call ended.
  if (continues && link->state() == Link::State::lost) on_lost_(link);
}

// ---- bulk lanes ----

/// False: the connection has ended. While the mesh closes, bulk lanes still open for its queues.
bool MeshNode::pause_while_up(const LinkPointer& link, Token token, Duration time) {
  std::unique_lock lock(call_mutex_);
  call_changed_.wait_for(lock, chrono(time), [&] { return !link->is_up_by(token); });
  return link->is_up_by(token);
}

void MeshNode::open_bulk(const LinkPointer& link) {
  in_background([this, link] {
    const Link::Connection connection = link->connection();
    for (const Lane lane : {Lane::bulk_to_called, Lane::bulk_to_caller}) {
      std::unique_ptr<Stream> opened;
      // A stopped process answers late; the small lane finds out whether it has ended.
      for (Duration pause{}; !opened && pause_while_up(link, connection.token, pause);
           pause = kCallPause) {
        Call calling{
            .host = connection.host, .port = connection.port, .until = steady_ns() + kBulkLimit.ns};
        calling.hello.lane = lane;
        calling.hello.token = connection.token;
        auto outcome = open_stream(calling);
        auto* const stream = std::get_if<std::unique_ptr<Stream>>(&outcome);
        PacketReader answer;
        if (!stream ||
            !exchange(**stream, packet_of(calling.hello, protocol_.number), answer, calling.until))
          continue;
        std::span confirm = std::as_bytes(std::span(&kLaneConfirm, 1));
        if ((*stream)->write_some(confirm) == Stream::Progress::done) opened = std::move(*stream);
      }
      if (!opened) return;
      run_bulk(link, connection.token, lane == Lane::bulk_to_called, false, std::move(opened));
    }
  });
}

/// Whether the caller of a bulk lane still waits for it.
bool MeshNode::is_confirmed(Stream& stream) {
  const std::int64_t until = steady_ns() + kBulkLimit.ns;
  std::uint64_t confirm = 0;
  std::span missing = std::as_writable_bytes(std::span(&confirm, 1));
  const auto progress = stream.complete([&] { return stream.read_some(missing); }, until);
  return progress == Stream::Progress::done && confirm == kLaneConfirm;
}

void MeshNode::run_bulk(const LinkPointer& link, Token token, bool sends, bool called,
                        std::unique_ptr<Stream> stream) {
  in_background(
      [this, link, token, sends, called, shared = std::shared_ptr<Stream>(std::move(stream))] {
        if (called && !is_confirmed(*shared)) return;
        shared->block();
        if (!(sends ? link->send_bulk(*shared, token) : link->receive_bulk(*shared, token))) return;
        (void)pause_while_up(link, token, kGrace);
        link->lose(token);
      });
}

void MeshNode::in_background(std::function<void()> work) {
  {
    std::lock_guard lock(call_mutex_);
    if (closed_) return;
    const bool others_wait = !unstarted_.empty();
    unstarted_.push_back(std::move(work));
    start_threads();
    if (others_wait || unstarted_.empty()) return;
  }
  note("this process cannot start another thread now, and tries again");
}

/// Under call_mutex_.
void MeshNode::start_threads() {
  while (!closed_ && !unstarted_.empty()) {
    try {
      std::thread([this, work = unstarted_.front()]() mutable {
        work();
        work = nullptr;
        std::lock_guard done(call_mutex_);
        --background_;
        call_changed_.notify_all();
      }).detach();
    } catch (const std::system_error&) {
      return;
    }
    ++background_;  // the thread needs the lock to end
    unstarted_.pop_front();
  }
}

}  // namespace leeway::transport
