#pragma once
// Letter: the bytes of a message from one actor to another.
//
// A letter holds addresses, header, small blobs, and loans of blobs that the receiver reads in the
// sender's memory. On the bulk lane, the bytes of large blobs follow it. Reading trusts nothing: it
// checks sizes against the available bytes and core/limits.hpp before it takes memory.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/address.hpp"
#include "messages/message.hpp"
#include "transport/bytes.hpp"
#include "transport/loans.hpp"

namespace leeway::transport {

/// Blobs of a message up to this many bytes together travel inside the letter.
inline constexpr std::size_t kInlineBytes = 64u << 10;
/// Header, sizes, small blobs and loans.
inline constexpr std::size_t kMaxLetterBytes =
    limits::kMaxHeaderBytes + kInlineBytes + limits::kMaxBlobs * 64 + 1024;

/// How one blob travels.
enum class BlobWay : std::uint8_t { none, in_letter, lent, behind };

/// How the blobs of a message travel.
struct Packing {
  std::vector<BlobWay> ways;
  std::vector<Loan> loans;  // one for each blob, unless it is empty: no blob is lent
};
/// Small blobs go into the letter, large ones are lent. Nothing if one can neither.
std::optional<Packing> pack_into_letter(const Message& message, Lender* lender);
/// Small blobs go into the letter, large ones follow it.
Packing pack_for_bulk(const Message& message);
/// Whether pack_into_letter() needs a lender.
bool has_large_blobs(const Message& message);

/// A message on its way, and the number of earlier messages from `from` to `to`.
struct Parcel {
  Address from, to;
  std::uint64_t order = 0;
  Message message;
};

/// Number of bytes that append_letter() appends.
std::size_t letter_bytes(const Message& message, const Packing& packing);
void append_letter(Bytes& out, const Parcel& parcel, const Packing& packing);

/// A message that arrives.
struct Arrival {
  Address from, to;
  std::uint64_t order = 0;
  std::vector<std::uint64_t> header;
  std::vector<Blob> blobs;           // null: lent, behind, or an empty blob
  std::vector<std::uint64_t> sizes;  // of blobs behind the letter; zero for all others
  std::vector<std::pair<std::uint32_t, Loan>> loans;  // by blob
  std::size_t held = 0;                               // bytes of the letter

  Message message() { return Message(std::move(header), std::move(blobs)); }
};
/// Nothing: the letter is invalid. `bulk`: blobs may follow it.
std::optional<Arrival> read_letter(std::span<const std::byte> bytes, bool bulk);

}  // namespace leeway::transport
