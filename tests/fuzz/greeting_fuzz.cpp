// Any bytes of an unknown peer are packets of a greeting, or end its connection.
#include "tests/fuzz/byte_stream.hpp"
#include "transport/greeting.hpp"

namespace leeway::fuzz {
namespace {

using namespace transport;

/// A valid packet is written as it was read.
template <class Packet>
void check_packet(const PacketReader& reader) {
  Packet packet;
  if (!reader.take(packet) || reader.protocol() != kTransportProtocol) return;
  const Bytes bytes = packet_of(packet, kTransportProtocol);
  const auto stream =
      stream_of({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  PacketReader again;
  Packet same;
  LW_CHECK(again.read_from(*stream) == Stream::Progress::done && again.take(same));
  LW_CHECK(packet_of(same, kTransportProtocol) == bytes);
}

}  // namespace
}  // namespace leeway::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leeway::fuzz;
  const auto stream = stream_of({data, size});
  PacketReader reader;
  while (reader.read_from(*stream) == Stream::Progress::done) {
    check_packet<Hello>(reader);
    check_packet<Welcome>(reader);
    check_packet<LinkDetails>(reader);
    reader.clear();
  }
  return 0;
}
