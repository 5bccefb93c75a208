#pragma once
// RawPeer: greets a mesh as a Leeway process does, and then sends any bytes.
#include <cstring>
#include <string>

#include "core/check.hpp"
#include "core/text.hpp"
#include "core/this_host.hpp"
#include "tests/support/patience.hpp"
#include "transport/greeting.hpp"
#include "transport/probe.hpp"

namespace leeway::test {

class RawPeer {
 public:
  /// Calls a mesh on this host. `secret`: of the user if null. Over TLS with `tls`. `blind`: sends
  /// without reading answers.
  explicit RawPeer(std::uint16_t port, const transport::Secret* secret = nullptr,
                   std::shared_ptr<const transport::Tls> tls = nullptr, bool blind = false)
      : until_(steady_ns() + seconds(60).ns), blind_(blind) {
    using namespace transport;
    Probe reached = probe("127.0.0.1", port, seconds(60));
    LW_CHECK(reached.reach == Reach::listens, reached.why);
    if (tls)
      secret_ = Secret{};
    else
      secret_ = secret ? *secret : *user_secret();
    stream_ = std::make_unique<Stream>(std::move(reached.socket), Stream::Side::caller, tls);
    if (!is_done([&] { return stream_->shake_hands(); })) return;
    hello.version = "raw";
    hello.mesh = {random_word(), random_word()};
    hello.nonce = {random_word(), random_word()};
    details.version = "raw";
    details.host = "127.0.0.1";
    details.port = port;  // nothing calls it: the mesh itself listens there
    details.link = random_word();
    details.window_bytes = 1 << 20;
    details.silence_ns = 2'000'000'000;
  }

  /// Sends Hello and Confirm. False: refused, or the connection has ended.
  bool greet() {
    using namespace transport;
    PacketReader answer;
    Welcome welcome;
    if (blind_)
      return send(packet_of(hello, kTransportProtocol)) &&
             send(packet_of(details, kTransportProtocol));
    if (!send(packet_of(hello, kTransportProtocol)) || !receive(answer) || !answer.take(welcome))
      return false;
    refusal = welcome.refusal;
    if (!refusal.empty()) return false;
    details.proof = proof_of(secret_, Stream::Side::caller, hello, welcome);
    answer.clear();
    if (!send(packet_of(details, kTransportProtocol)) || !receive(answer) || !answer.take(ready))
      return false;
    refusal = ready.refusal;
    return refusal.empty();
  }

  bool send(const transport::Bytes& bytes) {
    std::span<const std::byte> left(bytes);
    return is_done([&] { return stream_->write_some(left); });
  }
  /// A frame of the small lane. `claimed`: the size in its head, if it is another.
  bool send_frame(std::uint32_t kind, const transport::Bytes& body,
                  std::optional<std::uint32_t> claimed = std::nullopt) {
    transport::Bytes frame;
    transport::ByteWriter out(frame);
    out.put(claimed.value_or(static_cast<std::uint32_t>(body.size())));
    out.put(kind);
    out.put(body.data(), body.size());
    return send(frame);
  }

  /// Reads until the mesh closes the connection. False: it stays open.
  bool is_closed() {
    transport::Bytes bytes(4096);
    while (true) {
      std::span<std::byte> missing(bytes);
      const auto progress = stream_->read_some(missing);
      if (progress == transport::Stream::Progress::ended) return true;
      if (progress != transport::Stream::Progress::done && !stream_->wait(progress, until_))
        return false;
    }
  }

  transport::Hello hello;
  transport::LinkDetails details, ready;
  std::string refusal;

 private:
  bool receive(transport::PacketReader& answer) {
    return is_done([&] { return answer.read_from(*stream_); });
  }
  template <class Step>
  bool is_done(Step step) const {
    return stream_->complete(step, until_) == transport::Stream::Progress::done;
  }

  const std::int64_t until_;
  const bool blind_;
  transport::Secret secret_{};
  std::unique_ptr<transport::Stream> stream_;
};

}  // namespace leeway::test
