#include "cluster/mesh_node.hpp"

#include <chrono>

#include "cluster/probe.hpp"
#include "core/limits.hpp"

namespace leeway::cluster {
namespace {

/// After this many refused calls in a row, the process has ended.
constexpr int kRefusedMax = 3;
constexpr Duration kRefusedPause = milliseconds(120);
constexpr Duration kCallPause = milliseconds(200);
constexpr Duration kProbeLimit = milliseconds(500);
constexpr Duration kHelloAgain = milliseconds(500);
constexpr Duration kAnswerLimit = milliseconds(1000);
constexpr std::int64_t kGreetedNs = 30'000'000'000;
constexpr std::int64_t kCloseNs = 2'000'000'000;

std::chrono::nanoseconds chrono(Duration time) {
  return std::chrono::nanoseconds(time.ns);
}

/// Replaces empty callbacks.
MeshEvents complete(MeshEvents events) {
  if (!events.on_message) events.on_message = [](PeerId, Address, Address, const Message&) {};
  for (auto* event : {&events.on_up, &events.on_silent, &events.on_heard, &events.on_reconnected})
    if (!*event) *event = [](PeerId) {};
  if (!events.on_gone) events.on_gone = [](PeerId, const std::string&) {};
  if (!events.on_note) events.on_note = [](const std::string&) {};
  return events;
}

}  // namespace

MeshNode::MeshNode(const MeshOptions& options, MeshEvents events, Protocol protocol,
                   std::unique_ptr<Post> post)
    : options_(options),
      events_(complete(std::move(events))),
      protocol_(std::move(protocol)),
      id_{random_word(), random_word()},
      post_(std::move(post)),
      open_bulk_([this](PeerId peer, std::uint16_t port) { open_bulk(find(peer), port); }) {}

Status MeshNode::listen() {
  if (!options_.tls.empty())
    failed_handshakes_.emplace([this](const std::string& note) { events_.on_note(note); });
  // Bulk connections first: a caller may ask for them at once.
  const Status bulk = options_.bulk ? listen_for_bulk() : Status();
  if (!bulk) return bulk;
  const Status status =
      post_->listen({.on_frame = [this](const Route& from, Frame& frame) { on_frame(from, frame); },
                     .on_lost = [this](const caf::actor_control_block* route) { on_lost(route); }});
  if (!status) return status;
  clock_ = std::thread([this] { run_clock(); });
  return status;
}

MeshNode::~MeshNode() {
  for (const auto& link : all_links()) link->leave();
  bulk_listener_.reset();
  std::unique_lock lock(call_mutex_);
  closing_ = true;
  closing_since_ = steady_ns();
  call_changed_.notify_all();
  // The clock still runs: it ends links that do not answer.
  const auto all_ended = [&] {
    for (const auto& link : all_links())
      if (link->state() != Link::State::ended) return false;
    return true;
  };
  while (!all_ended() && steady_ns() - closing_since_ < kCloseNs)
    call_changed_.wait_for(lock, std::chrono::milliseconds(2));
  for (const auto& link : all_links()) link->give_up();
  call_changed_.wait(lock, [&] { return background_ == 0; });
  lock.unlock();
  if (clock_.joinable()) clock_.join();
  if (post_) post_->close();  // running handlers still use it
  post_.reset();
  failed_handshakes_.reset();
  for (const auto& [mesh, greeted] : greeted_) inbounds::close(greeted.token);
}

// The interface of Mesh.

Expected<PeerId> MeshNode::connect(const std::string& host, std::uint16_t port, Duration limit,
                                   const std::string& advice) {
  const std::int64_t began = steady_ns();
  const std::string there = concat(host, ":", port, ": ");
  const Probe reached = probe(host, port, limit);
  if (reached.reach != Reach::listens) return Error{concat(there, reached.why, "; ", advice)};
  while (true) {
    Call calling{.host = host, .port = port, .own_host = reached.local_host};
    const Duration left = limit - nanoseconds(steady_ns() - began);
    auto peer = call(calling, std::max(milliseconds(1), left));
    if (peer) return peer;
    // If two processes call each other at once, each CAF may end the connection that the other
    // keeps. Both call again, after a random pause.
    const auto pause = milliseconds(5 + static_cast<std::int64_t>(random_word() % 60));
    if (calling.answer != Answer::again || left < pause) return Error{there + peer.error().text};
    std::this_thread::sleep_for(chrono(pause));
  }
}

void MeshNode::send(PeerId to_peer, Address from, Address to, Message message) {
  find(to_peer)->send(from, to, std::move(message));
}

void MeshNode::leave(PeerId peer) {
  find(peer)->leave();
}

bool MeshNode::is_connected(PeerId peer) const {
  return find(peer)->state() == Link::State::up;
}

PeerCounts MeshNode::counts(PeerId peer) const {
  return find(peer)->counts();
}

std::string MeshNode::name(PeerId peer) const {
  return find(peer)->name();
}

// Calling.

Expected<PeerId> MeshNode::call(Call& call, Duration limit) {
  const std::int64_t until = steady_ns() + limit.ns;
  auto route = post_->call(call.host, call.port, limit);
  if (!route) return route.error();
  if (post_->is_own(*route))
    return Error{"this is the address of this process itself; name another"};
  const std::uint64_t number = random_word();
  call.route = *route;
  {
    std::lock_guard lock(call_mutex_);
    calls_.emplace(number, &call);
  }
  Greeting hello = greeting(number);
  hello.expected = call.expected;
  if (is_any(options_.address)) hello.host = call.own_host;
  post_->watch(*route);
  std::unique_lock lock(call_mutex_);
  std::int64_t again = 0;
  while (!call.result && !closing_ && steady_ns() < until) {
    // Over TLS, CAF may handle received bytes only when more arrive.
    if (steady_ns() >= again) {
      again = steady_ns() + kHelloAgain.ns;
      lock.unlock();
      greet(*route, FrameKind::hello, hello);
      lock.lock();
    }
    if (!call.result && !closing_)
      call_changed_.wait_for(lock, std::chrono::nanoseconds(std::min(until, again) - steady_ns()));
  }
  calls_.erase(number);
  if (!call.result)
    return Error{concat("no answer within ", limit.seconds(), " s; is the process stopped?")};
  return *call.result;
}

void MeshNode::finish(std::uint64_t number, Expected<PeerId> result, Answer answer) {
  std::lock_guard lock(call_mutex_);
  const auto found = calls_.find(number);
  if (found == calls_.end()) return;
  found->second->answer = answer;
  if (!found->second->result) found->second->result.emplace(std::move(result));
  call_changed_.notify_all();
}

void MeshNode::on_lost(const caf::actor_control_block* route) {
  {
    std::lock_guard lock(call_mutex_);
    for (auto& [number, call] : calls_) {
      if (call->route.get() != route || call->result) continue;
      call->result.emplace(Error{"it closed the connection"});
      call->answer = Answer::again;
      call_changed_.notify_all();
    }
  }
  for (const auto& link : all_links())
    if (link->connection().route.get() == route) lose(link);
}

void MeshNode::lose(const LinkPointer& link, std::optional<Token> token) {
  const Token before = link->token();
  if (!link->lose(token)) return;
  {
    std::lock_guard lock(mutex_);
    by_token_.erase(before);
    by_token_[link->token()] = link;
  }
  in_background([this, link] { call_again(link); });
}

bool MeshNode::rest(const LinkPointer& link, Duration time) {
  std::unique_lock lock(call_mutex_);
  call_changed_.wait_for(lock, chrono(time), [&] { return closing_; });
  return !closing_ && link->state() == Link::State::lost;
}

/// The side that called first calls again. The other probes whether the process still listens.
void MeshNode::call_again(const LinkPointer& link) {
  const Link::Connection lost = link->connection();
  const std::int64_t until = steady_ns() + 5 * options_.silence.ns;
  int refused = 0;
  for (Duration pause{}; rest(link, pause);) {
    if (steady_ns() > until)
      return link->gone(concat("the connection was lost and could not be made again within ",
                               Duration{5 * options_.silence.ns}.seconds(), " s"));
    const Probe reached = probe(lost.host, lost.port, kProbeLimit);
    refused = reached.reach == Reach::refused ? refused + 1 : 0;
    if (refused == kRefusedMax) return link->gone("its process has ended");
    pause = refused > 0 ? kRefusedPause : kCallPause;
    if (reached.reach != Reach::listens || !lost.called) continue;
    Call calling{.host = lost.host,
                 .port = lost.port,
                 .own_host = reached.local_host,
                 .expected = link->mesh()};
    const auto peer = call(calling, kAnswerLimit);
    if (!peer && calling.answer == Answer::refused)
      return link->gone("the connection was lost, and " + peer.error().text);
  }
}

void MeshNode::in_background(std::function<void()> work) {
  std::lock_guard lock(call_mutex_);
  if (closing_) return;
  try {
    std::thread([this, work = std::move(work)]() mutable {
      work();
      work = nullptr;
      std::lock_guard done(call_mutex_);
      --background_;
      call_changed_.notify_all();
    }).detach();
    ++background_;  // the thread needs the lock to end
  } catch (const std::system_error& failed) {
    events_.on_note(concat("this process cannot start a thread: ", failed.what()));
  }
}

// Links.

MeshNode::LinkPointer MeshNode::find(PeerId peer) const {
  std::shared_lock lock(mutex_);
  LW_CHECK(peer.value() < peers_.size(), peer);
  return peers_[peer.value()];
}

MeshNode::LinkPointer MeshNode::find(MeshId mesh) const {
  std::shared_lock lock(mutex_);
  const auto found = by_mesh_.find(mesh);
  return found == by_mesh_.end() ? nullptr : found->second;
}

MeshNode::LinkPointer MeshNode::find_token(Token token) const {
  std::shared_lock lock(mutex_);
  const auto found = by_token_.find(token);
  return found == by_token_.end() ? nullptr : found->second;
}

std::vector<MeshNode::LinkPointer> MeshNode::all_links() const {
  std::shared_lock lock(mutex_);
  std::vector<LinkPointer> links;
  for (const auto& [mesh, link] : by_mesh_) links.push_back(link);
  return links;
}

Token MeshNode::token_for(MeshId mesh) {
  std::lock_guard lock(mutex_);
  const auto link = by_mesh_.find(mesh);
  if (link != by_mesh_.end() && link->second->state() != Link::State::ended) {
    const Token token = link->second->token();
    by_token_[token] = link->second;  // it may be new
    return token;
  }
  Greeted& greeted = greeted_[mesh];
  if (greeted.token == 0) greeted.token = inbounds::open(random_word())->token();
  greeted.at = steady_ns();
  return greeted.token;
}

MeshNode::LinkPointer MeshNode::link_for(MeshId mesh) {
  const Token token = token_for(mesh);
  std::lock_guard lock(mutex_);
  LinkPointer& link = by_mesh_[mesh];
  if (link && link->state() != Link::State::ended) return link;
  link = std::make_shared<Link>(PeerId(static_cast<std::uint32_t>(peers_.size())), mesh, token,
                                LinkContext{*post_, events_, options_, bulk_port_, open_bulk_});
  greeted_.erase(mesh);
  by_token_[token] = link;
  peers_.push_back(link);
  return link;
}

// The clock.

void MeshNode::run_clock() {
  const Duration period{std::clamp<std::int64_t>(options_.silence.ns / 8, 2'000'000, 100'000'000)};
  std::int64_t before = steady_ns();
  while (true) {
    {
      std::unique_lock lock(call_mutex_);
      call_changed_.wait_for(lock, closing_ ? std::chrono::milliseconds(2) : chrono(period));
    }
    const std::int64_t now = steady_ns();
    // After a pause of this process, the peers' silence does not count.
    const bool fresh = now - before > period.ns + options_.silence.ns / 4;
    before = now;
    bool all_ended = true;
    Lender::reap_gone();
    for (const auto& link : all_links()) {
      link->tick(now, fresh);
      all_ended = all_ended && link->state() == Link::State::ended;
    }
    {
      std::lock_guard lock(mutex_);
      std::erase_if(by_token_,
                    [](const auto& entry) { return entry.second->state() == Link::State::ended; });
      std::erase_if(by_mesh_,
                    [](const auto& entry) { return entry.second->state() == Link::State::ended; });
      std::erase_if(greeted_, [&](const auto& entry) {
        const bool old = now - entry.second.at > kGreetedNs;
        if (old) inbounds::close(entry.second.token);
        return old;
      });
    }
    std::lock_guard lock(call_mutex_);
    if (closing_ && (all_ended || now - closing_since_ > kCloseNs)) return;
  }
}

}  // namespace leeway::cluster
