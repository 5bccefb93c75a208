#include "transport/greeting.hpp"

#include "core/check.hpp"

namespace leeway::transport {
namespace {

struct PacketHead {
  std::uint64_t magic = 0x32594157454545'4cull;  // "LEEWAY2"
  std::uint32_t protocol = 0;
  std::uint32_t bytes = 0;  // of the body
};

template <class Append>
Bytes packet(std::uint32_t protocol, Append append) {
  Bytes out(sizeof(PacketHead));
  ByteWriter writer(out);
  append(writer);
  LW_CHECK(out.size() <= kMaxPacketBytes, out.size());
  PacketHead head;
  head.protocol = protocol;
  head.bytes = static_cast<std::uint32_t>(out.size() - sizeof head);
  std::memcpy(out.data(), &head, sizeof head);
  return out;
}

}  // namespace

Bytes packet_of(const Hello& hello, std::uint32_t protocol) {
  return packet(protocol, [&](ByteWriter& out) {
    out.put(hello.version);
    out.put(hello.host);
    out.put(hello.lane);
    out.put(hello.token);
    out.put(hello.mesh);
    out.put(hello.expected);
    out.put(hello.nonce);
  });
}

Bytes packet_of(const Welcome& welcome, std::uint32_t protocol) {
  return packet(protocol, [&](ByteWriter& out) {
    out.put(welcome.version);
    out.put(welcome.refusal);
    out.put(welcome.mesh);
    out.put(welcome.nonce);
    out.put(welcome.proof);
  });
}

Bytes packet_of(const LinkDetails& details, std::uint32_t protocol) {
  return packet(protocol, [&](ByteWriter& out) {
    out.put(details.version);
    out.put(details.refusal);
    out.put(details.yields);
    out.put(details.host);
    out.put(details.port);
    out.put(details.link);
    out.put(details.peer_link);
    out.put(details.token);
    out.put(details.window_bytes);
    out.put(LoanOffer{.arena = details.arena, .returns = {}}.words());
    out.put(details.received);
    out.put(details.proof);
  });
}

Stream::Progress PacketReader::read_from(Stream& stream) {
  using Progress = Stream::Progress;
  if (bytes_.empty()) bytes_.resize(sizeof(PacketHead));
  while (true) {
    std::span<std::byte> missing = std::span(bytes_).subspan(wanted_);
    const Progress progress = stream.read_some(missing);
    wanted_ = bytes_.size() - missing.size();
    if (progress != Progress::done) return progress;
    if (bytes_.size() > sizeof(PacketHead)) return Progress::done;
    PacketHead head;
    std::memcpy(&head, bytes_.data(), sizeof head);
    if (head.magic != PacketHead().magic || head.bytes == 0 ||
        head.bytes > kMaxPacketBytes - sizeof head)
      return Progress::ended;
    protocol_ = head.protocol;
    bytes_.resize(sizeof head + head.bytes);
  }
}

ByteReader PacketReader::body() const {
  return ByteReader(std::span<const std::byte>(bytes_).subspan(sizeof(PacketHead)));
}

bool PacketReader::take(Hello& hello) const {
  ByteReader in = body();
  if (!in.take(hello.version) || !in.take(hello.host)) return false;
  if (protocol_ != kTransportProtocol) return true;
  return in.take(hello.lane) && hello.lane <= Lane::bulk_to_caller && in.take(hello.token) &&
         in.take(hello.mesh) && in.take(hello.expected) && in.take(hello.nonce);
}

bool PacketReader::take(Welcome& welcome) const {
  ByteReader in = body();
  if (!in.take(welcome.version) || !in.take(welcome.refusal)) return false;
  if (protocol_ != kTransportProtocol) return true;
  return in.take(welcome.mesh) && in.take(welcome.nonce) && in.take(welcome.proof);
}

bool PacketReader::take(LinkDetails& details) const {
  ByteReader in = body();
  if (!in.take(details.version) || !in.take(details.refusal)) return false;
  if (protocol_ != kTransportProtocol) return true;
  LoanOffer::Words arena{};
  if (!in.take(details.yields) || !in.take(details.host) || !in.take(details.port) ||
      details.port > 0xffff || !in.take(details.link) || !in.take(details.peer_link) ||
      !in.take(details.token) || !in.take(details.window_bytes) || !in.take(arena) ||
      !in.take(details.received) || !in.take(details.proof))
    return false;
  details.arena = LoanOffer::of(arena).arena;
  return true;
}

Proof proof_of(const Secret& secret, Stream::Side side, const Hello& hello,
               const Welcome& welcome) {
  Bytes text;
  ByteWriter out(text);
  out.put(static_cast<std::uint64_t>(side));
  out.put(hello.mesh);
  out.put(hello.expected);
  out.put(hello.nonce);
  out.put(welcome.mesh);
  out.put(welcome.nonce);
  return prove(secret, text);
}

}  // namespace leeway::transport
