// Any bytes of a greeted peer are frames and letters, or end its connection.
#include <latch>

#include "core/time.hpp"
#include "messages/envelope.hpp"
#include "messages/node.hpp"
#include "tests/fuzz/byte_stream.hpp"
#include "transport/letter.hpp"
#include "transport/small_lane.hpp"

namespace leeway::fuzz {
namespace {

using namespace transport;

/// A valid letter is written as it was read.
void check_letter(std::span<const std::byte> bytes, Arrival arrival) {
  LW_CHECK(arrival.blobs.size() == arrival.sizes.size());
  std::uint64_t behind = 0;
  for (const std::uint64_t size : arrival.sizes) behind += size;
  LW_CHECK(behind <= limits::kMaxMessageBytes, behind);
  if (behind > 0 || !arrival.loans.empty()) return;  // blobs outside of the letter
  Packing packing;
  for (const Blob& blob : arrival.blobs)
    packing.ways.push_back(blob ? BlobWay::in_letter : BlobWay::none);
  const Parcel parcel{arrival.from, arrival.to, arrival.order, arrival.message()};
  (void)decode(parcel.message);
  (void)decode_node(parcel.message);
  Bytes again;
  append_letter(again, parcel, packing);
  LW_CHECK(again.size() == letter_bytes(parcel.message, packing) && again.size() == bytes.size());
  LW_CHECK(read_letter(again, false).has_value());
}

bool take_frame(FrameKind kind, std::span<const std::byte> body) {
  if (kind != FrameKind::letter) return true;
  if (auto arrival = read_letter(body, true)) check_letter(body, std::move(*arrival));
  return read_letter(body, false).has_value();
}

}  // namespace
}  // namespace leeway::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace leeway::fuzz;
  static Poller poller(leeway::seconds(1), [] {});
  // Shared: the handler may still run when wait() has returned.
  const auto ended = std::make_shared<std::latch>(1);
  const auto lane = std::make_shared<SmallLane>(stream_of({data, size}), poller);
  lane->start({.on_frame = take_frame, .on_end = [ended](bool) { ended->count_down(); }});
  ended->wait();
  return 0;
}
