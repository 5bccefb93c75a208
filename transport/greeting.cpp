#include "transport/greeting.hpp"

#include <type_traits>

#include "core/check.hpp"

namespace leeway::transport {
namespace {

struct PacketHead {
  std::uint64_t magic = 0x32594157454545'4cull;  // "LEEWAY2"
  std::uint32_t protocol = 0;
  std::uint32_t bytes = 0;  // of the body
};

/// Appends each field that it is called with.
class Put {
 public:
  static constexpr bool kWrites = true;
  explicit Put(Bytes& out) : out_(out) {}

  template <class T>
  bool operator()(const T& field) {
    out_.put(field);
    return true;
  }
  bool operator()(const SharedMemoryName& arena) {
    return (*this)(LoanOffer{.arena = arena, .returns = {}}.words());
  }

 private:
  ByteWriter out_;
};

/// Reads each field that it is called with; false: invalid.
class Take {
 public:
  static constexpr bool kWrites = false;
  explicit Take(const ByteReader& in) : in_(in) {}

  template <class T>
  bool operator()(T& field) {
    return in_.take(field);
  }
  bool operator()(Lane& lane) { return in_.take(lane) && lane <= Lane::bulk_to_caller; }
  bool operator()(SharedMemoryName& arena) {
    LoanOffer::Words words{};
    if (!in_.take(words)) return false;
    arena = LoanOffer::of(words).arena;
    return true;
  }

 private:
  ByteReader in_;
};

template <class Packet, class F>
using Visited = std::conditional_t<F::kWrites, const Packet, Packet>;

// The two texts that every protocol reads.

template <class F>
bool visit_texts(Visited<Hello, F>& hello, F& f) {
  return f(hello.version) && f(hello.host);
}

template <class F>
bool visit_texts(Visited<Welcome, F>& welcome, F& f) {
  return f(welcome.version) && f(welcome.refusal);
}

template <class F>
bool visit_texts(Visited<LinkDetails, F>& details, F& f) {
  return f(details.version) && f(details.refusal);
}

// The other fields.

template <class F>
bool visit_fields(Visited<Hello, F>& hello, F& f) {
  return f(hello.lane) && f(hello.token) && f(hello.mesh) && f(hello.expected) && f(hello.nonce);
}

template <class F>
bool visit_fields(Visited<Welcome, F>& welcome, F& f) {
  return f(welcome.mesh) && f(welcome.nonce) && f(welcome.proof);
}

template <class F>
bool visit_fields(Visited<LinkDetails, F>& details, F& f) {
  return f(details.yields) && f(details.host) && f(details.port) && f(details.link) &&
         f(details.peer_link) && f(details.token) && f(details.window_bytes) &&
         f(details.silence_ns) && f(details.arena) && f(details.needs_shared_memory) &&
         f(details.received) && f(details.proof);
}

template <class Packet>
Bytes packet_bytes(const Packet& packet, std::uint32_t protocol) {
  Bytes out(sizeof(PacketHead));
  Put put(out);
  visit_texts(packet, put);
  visit_fields(packet, put);
  LW_CHECK(out.size() <= kMaxPacketBytes, out.size());
  PacketHead head;
  head.protocol = protocol;
  head.bytes = static_cast<std::uint32_t>(out.size() - sizeof head);
  std::memcpy(out.data(), &head, sizeof head);
  return out;
}

template <class Packet>
bool take_packet(Packet& packet, ByteReader body, std::uint32_t protocol) {
  Take take(body);
  return visit_texts(packet, take) &&
         (protocol != kTransportProtocol || visit_fields(packet, take));
}

}  // namespace

Bytes packet_of(const Hello& hello, std::uint32_t protocol) {
  return packet_bytes(hello, protocol);
}

Bytes packet_of(const Welcome& welcome, std::uint32_t protocol) {
  return packet_bytes(welcome, protocol);
}

Bytes packet_of(const LinkDetails& details, std::uint32_t protocol) {
  return packet_bytes(details, protocol);
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
  return take_packet(hello, body(), protocol_);
}

bool PacketReader::take(Welcome& welcome) const {
  return take_packet(welcome, body(), protocol_);
}

bool PacketReader::take(LinkDetails& details) const {
  return take_packet(details, body(), protocol_) && details.port <= 0xffff;
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
