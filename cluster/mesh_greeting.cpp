// MeshNode: the greeting of two meshes, and the checks that depend on it.
#include <cstring>

#include "cluster/mesh_node.hpp"
#include "cluster/probe.hpp"
#include "core/limits.hpp"
#include "tensor/shared_arena.hpp"

namespace leeway::cluster {
namespace {

std::string text_of(const SharedMemoryName& arena) {
  const auto words = LoanOffer{.arena = arena, .returns = {}}.words();
  return {reinterpret_cast<const char*>(words.data()), sizeof words};
}
/// Reads any text. Opening a wrong name fails.
SharedMemoryName arena_of(const std::string& text) {
  LoanOffer::Words words{};
  if (text.size() == sizeof words) std::memcpy(words.data(), text.data(), sizeof words);
  return LoanOffer::of(words).arena;
}

}  // namespace

Protocol own_protocol() {
  return {.number = kProtocolVersion, .version = LEEWAY_VERSION};
}

void MeshNode::on_frame(const Route& from, Frame& frame) {
  if (frame.kind <= FrameKind::refuse) {
    if (!from || frame.broken)
      return events_.on_note("ignored a malformed greeting from an unknown peer");
    const Greeting& greeting = *frame.greeting;
    if (frame.kind == FrameKind::hello) return on_hello(from, greeting);
    if (frame.kind == FrameKind::welcome) return on_welcome(from, greeting);
    if (frame.kind == FrameKind::confirm) return on_confirm(from, frame.token, greeting);
    return on_refuse(greeting);
  }
  if (const auto link = find_token(frame.token)) return link->on_frame(frame);
  if (frame.kind != FrameKind::unknown) {
    // The peer believes in a connection that this mesh does not have: it must call again.
    if (!from || frame.broken) return;
    Frame answer;
    answer.number = frame.token;
    return post_->send(from, std::move(answer));
  }
  for (const auto& link : all_links())
    if (link->connection().token == frame.number) lose(link);
}

Greeting MeshNode::greeting(std::uint64_t call) const {
  Greeting greeting;
  greeting.protocol = protocol_.number;
  greeting.version = protocol_.version;
  greeting.call = call;
  greeting.mesh = id_;
  greeting.host = options_.address;
  greeting.port = post_->port();
  greeting.window_bytes = options_.window_bytes;
  if (options_.transport != Transport::tcp) greeting.arena = text_of(shared_arena()->name());
  return greeting;
}

void MeshNode::greet(const Route& to, FrameKind kind, Greeting greeting, Token token) {
  Frame frame;
  frame.kind = kind;
  frame.token = token;
  frame.greeting = std::make_shared<Greeting>(std::move(greeting));
  post_->send(to, std::move(frame));
}

bool MeshNode::speaks(const Greeting& other) const {
  return other.protocol == protocol_.number;
}

std::string MeshNode::mismatch(const Greeting& other) const {
  return concat("Leeway ", other.version, " there speaks protocol ", other.protocol,
                ", and Leeway ", protocol_.version, " here speaks protocol ", protocol_.number,
                "; run the same release on both");
}

Link::Connection MeshNode::connection_of(const Route& route, const Greeting& greeting) const {
  return {.route = route,
          .token = greeting.token,
          .window_bytes = greeting.window_bytes,
          .host = greeting.host,
          .port = greeting.port,
          .call = greeting.call};
}

/// Why its memory cannot be read, if it must be; empty: no objection.
std::string MeshNode::too_far(const Greeting& other) const {
  if (options_.transport != Transport::shared_memory) return "";
  const auto arena = SharedMemory::open(arena_of(other.arena));
  if (arena) return "";
  return concat("blobs must use only shared memory, and there is none with ", other.host, ":",
                other.port, " (", arena.error().text,
                "); run both on one host as one user, or let them use TCP");
}

bool MeshNode::is_greeted(MeshId mesh) const {
  std::shared_lock lock(mutex_);
  return greeted_.contains(mesh);
}

/// Why the caller is refused; empty: it is welcome.
std::string MeshNode::refusal_of(const Greeting& hello, LinkPointer& link) {
  if (!speaks(hello)) return mismatch(hello);
  if (hello.mesh == id_) return "this is the calling process itself";
  if (std::string why = too_far(hello); !why.empty()) return why;
  link = find(hello.mesh);
  if (link && link->state() == Link::State::ended) link = nullptr;
  if (hello.expected == MeshId{}) {
    std::shared_lock lock(mutex_);
    const bool full = by_mesh_.size() + greeted_.size() >= limits::kMaxPeers;
    return full && !link ? "it has as many peers as it can" : "";
  }
  if (hello.expected != id_) return "another process listens there now";
  // The connection may have been lost before its confirmation arrived.
  if (!link && is_greeted(hello.mesh)) return "";
  if (!link || link->state() == Link::State::leaving) return "it has given up on this process";
  return "";
}

void MeshNode::refuse(const Route& to, const Greeting& hello, const std::string& why) {
  Greeting answer = greeting(hello.call);
  answer.refusal = why;
  greet(to, FrameKind::refuse, std::move(answer));
  events_.on_note(
      concat("refused a call", hello.host.empty() ? "" : " of ", hello.host, ": ", why));
}

void MeshNode::on_hello(const Route& from, const Greeting& hello) {
  LinkPointer link;
  const std::string why = refusal_of(hello, link);
  if (!why.empty()) return refuse(from, hello, why);
  // The caller noticed the loss first, unless it repeated this hello before the welcome arrived.
  if (link && hello.expected == id_ && link->connection().call != hello.call) lose(link);
  Greeting welcome = greeting(hello.call);
  welcome.token = token_for(hello.mesh);
  greet(from, FrameKind::welcome, std::move(welcome));
}

void MeshNode::on_welcome(const Route& from, const Greeting& welcome) {
  if (!speaks(welcome)) return;
  Link::Connection connection = connection_of(from, welcome);
  std::string own_host;
  {
    std::lock_guard lock(call_mutex_);
    const auto found = calls_.find(welcome.call);
    if (found == calls_.end()) return;  // too late
    connection.host = found->second->host;
    connection.port = found->second->port;
    own_host = found->second->own_host;
  }
  connection.called = true;
  if (std::string why = too_far(welcome); !why.empty())
    return finish(welcome.call, Error{std::move(why)}, Answer::refused);
  const LinkPointer link = link_for(welcome.mesh);
  if (link->state() == Link::State::leaving)
    return finish(welcome.call, Error{"this process is leaving it"}, Answer::again);
  // The peer has forgotten this connection.
  if (link->state() == Link::State::up && link->connection().token != welcome.token) lose(link);
  Greeting confirm = greeting(welcome.call);
  confirm.token = link->token();
  if (is_any(options_.address)) confirm.host = own_host;
  // Before all frames that depend on it.
  greet(from, FrameKind::confirm, std::move(confirm), welcome.token);
  link->made(std::move(connection));
  finish(welcome.call, link->id(), Answer::welcome);
}

void MeshNode::on_confirm(const Route& from, Token token, const Greeting& confirm) {
  if (!speaks(confirm) || confirm.mesh == id_ || token_for(confirm.mesh) != token) return;
  link_for(confirm.mesh)->made(connection_of(from, confirm));
}

void MeshNode::on_refuse(const Greeting& refuse) {
  finish(refuse.call, Error{speaks(refuse) ? refuse.refusal : mismatch(refuse)}, Answer::refused);
}

}  // namespace leeway::cluster
