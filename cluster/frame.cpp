#include "cluster/frame.hpp"

#include <algorithm>
#include <bit>
#include <new>

#include "core/limits.hpp"

namespace leeway::cluster {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr std::uint64_t kMagic = 0x315941574545'4cull;  // "LEEWAY1"
constexpr std::uint64_t kFrameCost = 64;                // of a frame without bytes

template <class T>
bool put(Sink& sink, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return sink.put(&value, sizeof value);
}
template <class T>
bool take(Source& source, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return source.remaining() >= sizeof value && source.take(&value, sizeof value);
}

bool put(Sink& sink, const std::string& text) {
  const auto count = static_cast<std::uint32_t>(std::min(text.size(), limits::kMaxGreetingText));
  return put(sink, count) && sink.put(text.data(), count);
}
bool take(Source& source, std::string& text) {
  std::uint32_t count = 0;
  if (!take(source, count) || count > limits::kMaxGreetingText || count > source.remaining())
    return false;
  text.resize(count);
  return source.take(text.data(), count);
}

bool put(Sink& sink, Address address) {
  return put(sink, static_cast<std::uint8_t>(address.kind)) && put(sink, address.index);
}
bool take(Source& source, Address& address) {
  std::uint8_t kind = 0;
  if (!take(source, kind) || !take(source, address.index)) return false;
  address.kind = static_cast<RoleKind>(kind);
  return address.kind <= RoleKind::host;
}

bool put(Sink& sink, const Greeting& greeting) {
  return put(sink, kMagic) && put(sink, greeting.protocol) && put(sink, greeting.version) &&
         put(sink, greeting.call) && put(sink, greeting.refusal) && put(sink, greeting.mesh) &&
         put(sink, greeting.expected) && put(sink, greeting.token) && put(sink, greeting.host) &&
         put(sink, greeting.port) && put(sink, greeting.window_bytes) && put(sink, greeting.arena);
}
bool take(Source& source, Greeting& greeting) {
  std::uint64_t magic = 0;
  if (!take(source, magic) || magic != kMagic || !take(source, greeting.protocol) ||
      !take(source, greeting.version) || !take(source, greeting.call) ||
      !take(source, greeting.refusal))
    return false;
  if (greeting.protocol != kProtocolVersion) return true;
  return take(source, greeting.mesh) && take(source, greeting.expected) &&
         take(source, greeting.token) && take(source, greeting.host) &&
         take(source, greeting.port) && take(source, greeting.window_bytes) &&
         take(source, greeting.arena);
}

// The letter has a word for each blob: its size, and in the upper bits its BlobWay.
constexpr int kWayShift = 56;

bool put_letter(Sink& sink, const Frame& frame) {
  const auto header = frame.message.header();
  const auto blobs = frame.message.blobs();
  const auto& ways = frame.packing->ways;
  bool good = put(sink, frame.number) && put(sink, frame.order) && put(sink, frame.from) &&
              put(sink, frame.to) && put(sink, static_cast<std::uint32_t>(header.size())) &&
              put(sink, static_cast<std::uint32_t>(blobs.size())) &&
              sink.put(header.data(), header.size_bytes());
  for (std::size_t i = 0; good && i < blobs.size(); ++i)
    good = put(sink, blobs[i].size() | static_cast<std::uint64_t>(ways[i]) << kWayShift);
  for (std::size_t i = 0; good && i < blobs.size(); ++i) {
    if (ways[i] == BlobWay::in_letter) good = sink.put(blobs[i].data(), blobs[i].size());
    if (ways[i] == BlobWay::lent) good = put(sink, frame.packing->loans[i].words());
  }
  return good;
}

/// The blobs in a letter, in order.
bool take_blobs(Source& source, Arrival& arrival, const std::vector<std::uint64_t>& marks) {
  std::uint64_t within = 0, lent = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const auto way = static_cast<BlobWay>(marks[i] >> kWayShift);
    const std::uint64_t size = marks[i] & ((std::uint64_t{1} << kWayShift) - 1);
    if (way == BlobWay::none && size == 0) continue;
    if (way == BlobWay::in_letter) {
      within += size;
      if (size > kInlineBytes || within > kInlineBytes || size > source.remaining()) return false;
      arrival.blobs[i] = Blob::allocate(size);
      if (!source.take(arrival.blobs[i].mutable_data(), size)) return false;
    } else if ((way == BlobWay::in_chunks || way == BlobWay::in_bulk) && size > 0 &&
               size <= limits::kMaxBlobBytes) {
      if (arrival.left > 0 && arrival.bulk != (way == BlobWay::in_bulk)) return false;
      arrival.bulk = way == BlobWay::in_bulk;
      arrival.sizes[i] = size;
      arrival.left += size;
      if (arrival.left > limits::kMaxMessageBytes) return false;
    } else if (way == BlobWay::lent) {
      Loan::Words words;
      if (!take(source, words) || Loan::of(words).size != size || size > limits::kMaxLentBytes)
        return false;
      arrival.loans.emplace_back(static_cast<std::uint32_t>(i), Loan::of(words));
      lent += size;
    } else {
      return false;
    }
  }
  arrival.behind = arrival.left;
  arrival.held = letter_cost(arrival.header.size(), marks.size(), within);
  arrival.cost = letter_cost(arrival.header.size(), marks.size(), within + lent);
  return true;
}

bool take_letter(Source& source, Frame& frame) {
  auto arrival = std::make_shared<Arrival>();
  std::uint32_t words = 0, blobs = 0;
  if (!take(source, frame.number) || !take(source, arrival->order) ||
      !take(source, arrival->from) || !take(source, arrival->to) || !take(source, words) ||
      !take(source, blobs) || words > limits::kMaxHeaderBytes / 8 || blobs > limits::kMaxBlobs ||
      (std::uint64_t{words} + blobs) * sizeof(std::uint64_t) > source.remaining())
    return false;
  arrival->header.resize(words);
  std::vector<std::uint64_t> marks(blobs);
  arrival->blobs.resize(blobs);
  arrival->sizes.resize(blobs);
  if (!source.take(arrival->header.data(), words * sizeof(std::uint64_t)) ||
      !source.take(marks.data(), blobs * sizeof(std::uint64_t)) ||
      !take_blobs(source, *arrival, marks))
    return false;
  frame.arrival = std::move(arrival);
  return true;
}

bool put_chunk(Sink& sink, const Frame& frame) {
  if (!put(sink, frame.number) || !put(sink, frame.bytes)) return false;
  return for_each_piece(
      frame.message, *frame.packing, frame.place, frame.bytes,
      [&](const std::byte* bytes, std::uint64_t count) { return sink.put(bytes, count); });
}

/// Loads straight into the blobs.
bool take_chunk(Source& source, Frame& frame) {
  if (!take(source, frame.number) || !take(source, frame.bytes)) return false;
  frame.arrival = frame.inbound->find(frame.number);
  if (!frame.arrival || frame.arrival->bulk || frame.bytes > frame.arrival->left ||
      frame.bytes > source.remaining())
    return false;
  for (std::uint64_t left = frame.bytes; left > 0;) {
    const auto piece = frame.arrival->next_piece(left);
    if (!source.take(piece.data(), piece.size())) return false;
    left -= piece.size();
  }
  return true;
}

}  // namespace

Packing pack(const Message& message, Lender* lender, bool bulk) {
  const auto blobs = message.blobs();
  Packing packing;
  packing.ways.resize(blobs.size());
  packing.behind_way = bulk ? BlobWay::in_bulk : BlobWay::in_chunks;
  std::uint64_t within = 0;
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    if (!blobs[i]) continue;
    const std::uint64_t size = blobs[i].size();
    BlobWay& way = packing.ways[i];
    way = packing.behind_way;
    if (within + size <= kInlineBytes) {
      way = BlobWay::in_letter;
      within += size;
    } else if (const auto loan = lender ? lender->lend(blobs[i]) : std::nullopt) {
      way = BlobWay::lent;
      packing.loans.resize(blobs.size());
      packing.loans[i] = *loan;
    }
    (way == packing.behind_way ? packing.behind : packing.in_letter) += size;
  }
  return packing;
}

BlobPlace advanced(const Message& message, const Packing& packing, BlobPlace place,
                   std::uint64_t bytes) {
  while (bytes > 0) {
    const bool follows = packing.ways[place.blob] == packing.behind_way;
    const std::uint64_t size = message.blobs()[place.blob].size();
    const std::uint64_t here = follows ? std::min(bytes, size - place.offset) : 0;
    bytes -= here;
    place.offset += here;
    if (bytes > 0) place = {place.blob + 1, 0};
  }
  return place;
}

std::uint64_t letter_cost(std::size_t header_words, std::size_t blobs, std::uint64_t bytes) {
  return kFrameCost + (header_words + blobs) * sizeof(std::uint64_t) + bytes;
}

std::uint64_t chunk_cost(std::uint64_t bytes) {
  return kFrameCost + bytes;
}

bool save(const Frame& frame, Sink& sink) {
  if (!put(sink, static_cast<std::uint8_t>(frame.kind)) || !put(sink, frame.token)) return false;
  switch (frame.kind) {
    case FrameKind::hello:
    case FrameKind::welcome:
    case FrameKind::confirm:
    case FrameKind::refuse:
      return put(sink, *frame.greeting);
    case FrameKind::letter:
      return put_letter(sink, frame);
    case FrameKind::chunk:
      return put_chunk(sink, frame);
    case FrameKind::credit:
      return put(sink, frame.bytes);
    case FrameKind::alive:
    case FrameKind::farewell:
      return true;
    case FrameKind::offer:
      return put(sink, frame.number) && put(sink, frame.offer.words());
    case FrameKind::bye:
    case FrameKind::unknown:
    case FrameKind::bulk:
      return put(sink, frame.number);
  }
  return false;
}

bool load(Frame& frame, Source& source) {
  frame = Frame();
  std::uint8_t kind = 0;
  if (!take(source, kind) || kind > static_cast<std::uint8_t>(FrameKind::unknown) ||
      !take(source, frame.token))
    return false;
  frame.kind = static_cast<FrameKind>(kind);
  if (frame.kind <= FrameKind::refuse) {
    frame.greeting = std::make_shared<Greeting>();
    return take(source, *frame.greeting);
  }
  if (frame.kind == FrameKind::unknown) return take(source, frame.number);
  frame.inbound = inbounds::find(frame.token);
  if (!frame.inbound) return true;
  try {
    if (frame.kind == FrameKind::letter) return take_letter(source, frame);
    if (frame.kind == FrameKind::chunk) return take_chunk(source, frame);
  } catch (const std::bad_alloc&) {  // it announced more memory than this host has
    return false;
  }
  if (frame.kind == FrameKind::offer) {
    LoanOffer::Words words;
    if (!take(source, frame.number) || !take(source, words)) return false;
    frame.offer = LoanOffer::of(words);
  }
  if (frame.kind == FrameKind::bulk || frame.kind == FrameKind::bye)
    return take(source, frame.number);
  if (frame.kind == FrameKind::credit) return take(source, frame.bytes);
  return true;
}

}  // namespace leeway::cluster
