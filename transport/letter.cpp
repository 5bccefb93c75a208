#include "transport/letter.hpp"

#include "core/check.hpp"

namespace leeway::transport {
namespace {

// The letter has a word for each blob: its size, and in the upper bits its BlobWay.
constexpr int kWayShift = 56;
constexpr std::uint64_t kSizeMask = (std::uint64_t{1} << kWayShift) - 1;

/// The fixed part of a letter.
struct LetterHead {
  std::uint64_t order = 0;
  std::uint32_t from_index = 0, to_index = 0;
  std::uint32_t words = 0, blobs = 0;  // of the header; number of blobs
  std::uint32_t kinds = 0;             // of `from`, and from bit 8 of `to`
  std::uint32_t unused = 0;
};

bool take_address(std::uint32_t kind, std::uint32_t index, Address& address) {
  address.kind = static_cast<RoleKind>(kind);
  address.index = index;
  return kind <= static_cast<std::uint32_t>(RoleKind::host);
}

/// Calls small(i) for blobs that fit into the letter, large(i) for others, until one is false.
template <class Small, class Large>
bool sort_blobs(const Message& message, Small&& small, Large&& large) {
  std::uint64_t within = 0;
  for (std::size_t i = 0; i < message.blobs().size(); ++i) {
    const Blob& blob = message.blobs()[i];
    if (!blob) continue;
    const bool fits = within + blob.size() <= kInlineBytes;
    if (fits) within += blob.size();
    if (!(fits ? small(i) : large(i))) return false;
  }
  return true;
}

/// The blobs inside the letter, in order.
bool take_blobs(ByteReader& in, const std::vector<std::uint64_t>& marks, bool bulk,
                Arrival& arrival) {
  std::uint64_t within = 0, behind = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const auto way = static_cast<BlobWay>(marks[i] >> kWayShift);
    const std::uint64_t size = marks[i] & kSizeMask;
    switch (way) {
      case BlobWay::none:
        if (size != 0) return false;
        break;
      case BlobWay::in_letter:
        within += size;
        if (within > kInlineBytes || size > in.remaining()) return false;
        arrival.blobs[i] = Blob::allocate(size);
        if (!in.take(arrival.blobs[i].mutable_data(), size)) return false;
        break;
      case BlobWay::lent: {
        Loan::Words words;
        if (!in.take(words) || Loan::of(words).size != size || size > limits::kMaxLentBytes)
          return false;
        arrival.loans.emplace_back(static_cast<std::uint32_t>(i), Loan::of(words));
        break;
      }
      case BlobWay::behind:
        behind += size;
        if (!bulk || size == 0 || size > limits::kMaxBlobBytes || behind > limits::kMaxMessageBytes)
          return false;
        arrival.sizes[i] = size;
        break;
      default:
        return false;
    }
  }
  return in.remaining() == 0;
}

}  // namespace

std::optional<Packing> pack_into_letter(const Message& message, Lender* lender) {
  Packing packing;
  packing.ways.resize(message.blobs().size());
  const bool fits = sort_blobs(
      message,
      [&](std::size_t i) {
        packing.ways[i] = BlobWay::in_letter;
        return true;
      },
      [&](std::size_t i) {
        const auto loan = lender ? lender->lend(message.blobs()[i]) : std::nullopt;
        if (!loan) return false;
        packing.ways[i] = BlobWay::lent;
        packing.loans.resize(message.blobs().size());
        packing.loans[i] = *loan;
        return true;
      });
  if (!fits) return std::nullopt;
  return packing;
}

Packing pack_for_bulk(const Message& message) {
  Packing packing;
  packing.ways.resize(message.blobs().size());
  const auto set = [&](BlobWay way) {
    return [&packing, way](std::size_t i) {
      packing.ways[i] = way;
      return true;
    };
  };
  sort_blobs(message, set(BlobWay::in_letter), set(BlobWay::behind));
  return packing;
}

bool has_large_blobs(const Message& message) {
  return !sort_blobs(
      message, [](std::size_t) { return true; }, [](std::size_t) { return false; });
}

std::size_t letter_bytes(const Message& message, const Packing& packing) {
  std::size_t bytes = sizeof(LetterHead) + message.header().size_bytes() +
                      message.blobs().size() * sizeof(std::uint64_t);
  for (std::size_t i = 0; i < packing.ways.size(); ++i) {
    if (packing.ways[i] == BlobWay::in_letter) bytes += message.blobs()[i].size();
    if (packing.ways[i] == BlobWay::lent) bytes += sizeof(Loan::Words);
  }
  return bytes;
}

void append_letter(Bytes& out, const Parcel& parcel, const Packing& packing) {
  const auto header = parcel.message.header();
  const auto blobs = parcel.message.blobs();
  LetterHead head;
  head.order = parcel.order;
  head.from_index = parcel.from.index;
  head.to_index = parcel.to.index;
  head.kinds = static_cast<std::uint32_t>(parcel.from.kind) |
               static_cast<std::uint32_t>(parcel.to.kind) << 8;
  head.words = static_cast<std::uint32_t>(header.size());
  head.blobs = static_cast<std::uint32_t>(blobs.size());
  ByteWriter writer(out);
  writer.put(head);
  writer.put(header.data(), header.size_bytes());
  for (std::size_t i = 0; i < blobs.size(); ++i)
    writer.put(blobs[i].size() | static_cast<std::uint64_t>(packing.ways[i]) << kWayShift);
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    if (packing.ways[i] == BlobWay::in_letter) writer.put(blobs[i].data(), blobs[i].size());
    if (packing.ways[i] == BlobWay::lent) writer.put(packing.loans[i].words());
  }
}

std::optional<Arrival> read_letter(std::span<const std::byte> bytes, bool bulk) {
  ByteReader in(bytes);
  LetterHead head;
  Arrival arrival;
  if (!in.take(head) || !take_address(head.kinds & 0xff, head.from_index, arrival.from) ||
      !take_address(head.kinds >> 8, head.to_index, arrival.to) ||
      head.words > limits::kMaxHeaderBytes / sizeof(std::uint64_t) ||
      head.blobs > limits::kMaxBlobs ||
      (std::uint64_t{head.words} + head.blobs) * sizeof(std::uint64_t) > in.remaining())
    return std::nullopt;
  arrival.order = head.order;
  arrival.held = bytes.size();
  arrival.header.resize(head.words);
  std::vector<std::uint64_t> marks(head.blobs);
  arrival.blobs.resize(head.blobs);
  arrival.sizes.resize(head.blobs);
  if (!in.take(arrival.header.data(), head.words * sizeof(std::uint64_t)) ||
      !in.take(marks.data(), marks.size() * sizeof(std::uint64_t)) ||
      !take_blobs(in, marks, bulk, arrival))
    return std::nullopt;
  return arrival;
}

}  // namespace leeway::transport
