#include "transport/mesh_node.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/check.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "tensor/shared_arena.hpp"
#include "transport/probe.hpp"

namespace leeway::transport {
namespace {

/// Time limit for closing, in which links send their queues. Links without progress end earlier.
constexpr std::int64_t kCloseNs = 10'000'000'000;
constexpr const char* kGivenUp = "it has given up on this process";

Duration tick_period(const MeshOptions& options) {
  return Duration{std::clamp<std::int64_t>(options.silence.ns / 8, 2'000'000, 100'000'000)};
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

bool send_packet(Stream& stream, const Bytes& packet) {
  std::span<const std::byte> left(packet);
  return stream.write_some(left) == Stream::Progress::done;
}

}  // namespace

Protocol own_protocol() {
  return {.number = kTransportProtocol, .version = LEEWAY_VERSION};
}

MeshNode::MeshNode(const MeshOptions& options, MeshEvents events, Protocol protocol,
                   std::shared_ptr<const Tls> tls, const Secret& secret)
    : options_(options),
      events_(complete(std::move(events))),
      protocol_(std::move(protocol)),
      tls_(std::move(tls)),
      secret_(secret),
      id_{random_word(), random_word()},
      on_lost_(
          [this](const LinkPointer& link) { in_background([this, link] { call_again(link); }); }),
      open_bulk_([this](const LinkPointer& link) { open_bulk(link); }),
      ticked_at_(steady_ns()),
      poller_(tick_period(options), [this] { tick(); }) {}

Status MeshNode::listen() {
  auto reception = Reception::open({.address = options_.address,
                                    .port = options_.port,
                                    .tls = tls_,
                                    .secret = secret_,
                                    .protocol = protocol_.number,
                                    .version = protocol_.version},
                                   poller_);
  if (!reception) return reception.error();
  port_ = (*reception)->port();
  poller_.post([this, opened = std::move(*reception)]() mutable {
    reception_ = std::move(opened);
    reception_->start({.welcome = [this](const Hello& hello) { return welcome(hello); },
                       .connect =
                           [this](const Hello& hello, const LinkDetails& confirm,
                                  std::unique_ptr<Stream> stream) {
                             connect_caller(hello, confirm, std::move(stream));
                           },
                       .take_bulk =
                           [this](const Hello& hello, std::unique_ptr<Stream> stream) {
                             return take_bulk(hello, std::move(stream));
                           },
                       .note = [this](const std::string& text) { note(text); }});
  });
  return {};
}

MeshNode::~MeshNode() {
  const auto has_ended = [](const LinkPointer& link) {
    return link->state() == Link::State::ended;
  };
  // The poller still runs: links send their rest, and end if the peer does not answer. Another
  // process may call meanwhile, so a new link leaves too.
  const std::int64_t until = steady_ns() + kCloseNs;
  for (auto links = all_links(); !std::ranges::all_of(links, has_ended) && steady_ns() < until;
       links = all_links()) {
    for (const auto& link : links) link->leave();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  {
    std::lock_guard lock(call_mutex_);
    closed_ = true;
    unstarted_.clear();
    call_changed_.notify_all();
  }
  for (const auto& link : all_links()) link->give_up();
  {
    std::unique_lock lock(call_mutex_);
    call_changed_.wait(lock, [&] { return background_ == 0; });
  }
  poller_.stop();
  if (reception_) reception_->stop();
}

// ---- the interface of Mesh ----

void MeshNode::send(PeerId to_peer, Address from, Address to, Message message) {
  if (const auto link = find(to_peer)) link->send(from, to, std::move(message));
}

void MeshNode::leave(PeerId peer) {
  if (const auto link = find(peer)) link->leave();
}

bool MeshNode::is_connected(PeerId peer) const {
  const auto link = find(peer);
  return link && link->state() == Link::State::up && !link->is_leaving();
}

PeerCounts MeshNode::counts(PeerId peer) const {
  const auto link = find(peer);
  return link ? link->counts() : PeerCounts{};
}

std::string MeshNode::name(PeerId peer) const {
  const auto link = find(peer);
  return link ? link->name() : concat("peer ", peer);
}

// ---- callers ----

std::string MeshNode::mismatch(const std::string& their_version,
                               std::uint32_t their_protocol) const {
  return concat("Leeway ", their_version, " there speaks protocol ", their_protocol,
                ", and Leeway ", protocol_.version, " here speaks protocol ", protocol_.number,
                "; run the same release on both");
}

/// Why the two processes share no memory, if one of them needs it; empty: no objection. The called
/// process also checks for the caller, because it counts the link as made before the caller reads
/// the answer.
std::string MeshNode::too_far(const LinkDetails& other) const {
  if (options_.transport != Transport::shared_memory && other.needs_shared_memory == 0) return "";
  std::string why;
  if (options_.transport == Transport::tcp) {
    why = "only TCP is allowed here";
  } else {
    const auto arena = SharedMemory::open(other.arena);
    if (arena) return "";
    why = arena.error().text;
  }
  return concat("blobs must use only shared memory, and there is none with ", other.host, ":",
                other.port, " (", why, "); run both on one host as one user, or let them use TCP");
}

/// Without those of a link.
LinkDetails MeshNode::details(const std::string& host) const {
  LinkDetails details;
  details.version = protocol_.version;
  details.host = host;
  details.port = port_;
  details.window_bytes = options_.window_bytes;
  details.silence_ns = static_cast<std::uint64_t>(options_.silence.ns);
  if (options_.transport != Transport::tcp) details.arena = shared_arena()->name();
  details.needs_shared_memory = options_.transport == Transport::shared_memory ? 1 : 0;
  return details;
}

std::string MeshNode::refusal_of(const Hello& hello) const {
  if (hello.mesh == id_) return "this is the address of this process itself; name another";
  const LinkPointer link = find(hello.mesh);
  if (hello.expected == MeshId{}) {
    std::shared_lock lock(mutex_);
    return by_mesh_.size() >= limits::kMaxPeers && !link ? "it has as many peers as it can" : "";
  }
  if (hello.expected != id_) return "another process listens there now";
  if (!link) return kGivenUp;
  return "";
}

Welcome MeshNode::welcome(const Hello& hello) {
  Welcome welcome;
  welcome.mesh = id_;
  welcome.nonce = {random_word(), random_word()};
  welcome.refusal = refusal_of(hello);
  return welcome;
}

void MeshNode::connect_caller(const Hello& hello, const LinkDetails& confirm,
                              std::unique_ptr<Stream> stream) {
  LinkDetails answer = details(options_.address);
  const auto refuse = [&](const std::string& why) {
    answer.refusal = why;
    send_packet(*stream, packet_of(answer, protocol_.number));
  };
  if (std::string why = too_far(confirm); !why.empty()) {
    note(concat("refused a call of ", confirm.host, ": ", why));
    return refuse(why);
  }
  const LinkPointer link = link_for_caller(hello, confirm);
  if (!link) return refuse(kGivenUp);
  Link::Attempt attempt;
  switch (link->take_call(confirm.token, confirm.peer_link != 0, attempt)) {
    case Link::Objection::none:
      break;
    case Link::Objection::ended:
      answer.yields = hello.expected == MeshId{} ? 1 : 0;  // a later call gets a new link
      return refuse(kGivenUp);
    case Link::Objection::yields:
      answer.yields = 1;
      return refuse("another call between the two processes goes first");
  }
  answer.link = link->number();
  answer.token = random_word();
  answer.received = attempt.received;
  if (!send_packet(*stream, packet_of(answer, protocol_.number))) return link->abandon(attempt);
  Link::Connection connection{.host = confirm.host,
                              .port = static_cast<std::uint16_t>(confirm.port),
                              .peer_link = confirm.link,
                              .token = answer.token,
                              .window_bytes = confirm.window_bytes,
                              .silence_ns = confirm.silence_ns};
  if (!link->install(attempt, std::move(connection), std::move(stream), confirm.received))
    link->gone("it sent an impossible greeting");
  call_changed_.notify_all();
}

/// Null: the caller continues a link that has ended here. If the caller has a new link, the old one
/// ends here too.
MeshNode::LinkPointer MeshNode::link_for_caller(const Hello& hello, const LinkDetails& confirm) {
  const LinkPointer link = find(hello.mesh);
  // Zero if this side has never been connected, although the caller may have been.
  const std::uint64_t known = link ? link->connection().peer_link : 0;
  const bool is_same = known == 0 || known == confirm.link;
  if (confirm.peer_link != 0)
    return link && is_same && link->number() == confirm.peer_link ? link : nullptr;
  if (!is_same) link->gone("it gave up on this process, and calls again");
  return link_for(hello.mesh);
}

/// False: no link has this token.
bool MeshNode::take_bulk(const Hello& hello, std::unique_ptr<Stream> stream) {
  const LinkPointer link = find_token(hello.token);
  if (!link) return false;
  if (send_packet(*stream, packet_of(details(options_.address), protocol_.number)))
    run_bulk(link, hello.token, hello.lane == Lane::bulk_to_caller, true, std::move(stream));
  return true;
}

// ---- links ----

MeshNode::LinkPointer MeshNode::find(PeerId peer) const {
  std::shared_lock lock(mutex_);
  LW_CHECK(peer.value() < next_peer_, peer);
  const auto found = peers_.find(peer);
  return found == peers_.end() ? nullptr : found->second;
}

MeshNode::LinkPointer MeshNode::find(MeshId mesh) const {
  std::shared_lock lock(mutex_);
  const auto found = by_mesh_.find(mesh);
  if (found == by_mesh_.end() || found->second->state() == Link::State::ended) return nullptr;
  return found->second;
}

MeshNode::LinkPointer MeshNode::find_token(Token token) const {
  for (const auto& link : all_links())
    if (link->is_up_by(token)) return link;
  return nullptr;
}

std::vector<MeshNode::LinkPointer> MeshNode::all_links() const {
  std::shared_lock lock(mutex_);
  std::vector<LinkPointer> links;
  links.reserve(peers_.size());
  for (const auto& [peer, link] : peers_) links.push_back(link);
  return links;
}

/// A peer that is gone gets a new link.
MeshNode::LinkPointer MeshNode::link_for(MeshId mesh) {
  std::lock_guard lock(mutex_);
  LinkPointer& link = by_mesh_[mesh];
  if (!link || link->state() == Link::State::ended) {
    const PeerId peer(next_peer_++);
    link = std::make_shared<Link>(
        peer, mesh, LinkContext{id_, poller_, events_, options_, on_lost_, open_bulk_});
    peers_[peer] = link;
  }
  return link;
}

void MeshNode::tick() {
  const std::int64_t now = steady_ns();
  const Duration period = tick_period(options_);
  // After a pause of this process, the peers' silence does not count.
  const bool fresh = now - ticked_at_ > period.ns + options_.silence.ns / 4;
  ticked_at_ = now;
  Lender::reap_gone();
  if (reception_) reception_->tick();
  {
    std::lock_guard lock(call_mutex_);
    start_threads();
  }
  for (const auto& link : all_links()) link->tick(now, fresh);
  std::lock_guard lock(mutex_);
  const auto has_ended = [](const auto& entry) {
    return entry.second->state() == Link::State::ended;
  };
  std::erase_if(by_mesh_, has_ended);
  std::erase_if(peers_, has_ended);
}

}  // namespace leeway::transport
