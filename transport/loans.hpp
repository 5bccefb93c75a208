#pragma once
// Loans: blobs that a process lends to another of the same host, which reads them in place.
//
// A lender's blobs are in its SharedArena, which the borrower maps for reading. A loan is a few
// words in a message; the lender keeps a reference until the borrower has returned it. Returns are
// marks in memory of the borrower, which the lender maps for reading: they cost no message, and
// survive a broken connection. A borrower that holds too much makes a copy.
//
// Setup: each process has a Borrower for the other, and sends its offer in the first frames. Each
// attaches the other's offer, and confirms if it can read; this fails without a common host, user
// or view of /proc. A process whose memory is readable makes a Lender. A killed process leaves
// nothing.
//
// A loan whose message was lost would never be returned. So the borrower numbers the connections:
// with a new one it renounces all untaken loans of earlier ones. A taken blob is not reused before
// it is returned or the borrower's process has ended. A stopped process still holds it, even when
// lender and connection are gone.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/expected.hpp"
#include "core/limits.hpp"
#include "tensor/blob.hpp"
#include "tensor/shared_memory.hpp"

namespace leeway {

/// A process's shared memory, for its peer.
struct LoanOffer {
  SharedMemoryName arena;    // of the blobs that it lends
  SharedMemoryName returns;  // of its marks for returned loans
  std::uint64_t connection = 0;

  static constexpr std::size_t kWords = 9;
  using Words = std::array<std::uint64_t, kWords>;
  Words words() const;
  /// Reads any words; they are checked where they are used.
  static LoanOffer of(const Words& words);
};

/// One blob, lent once.
struct Loan {
  std::uint64_t offset = 0;  // in the lender's arena
  std::uint64_t size = 0;
  std::uint64_t generation = 0;  // unique in the lender
  std::uint64_t connection = 0;  // of its message
  std::uint32_t slot = 0;        // of the mark for its return

  static constexpr std::size_t kWords = 5;
  using Words = std::array<std::uint64_t, kWords>;
  Words words() const;
  static Loan of(const Words& words);
};

/// The bounds of core/limits.hpp. Tests use others.
struct LoanLimits {
  std::uint32_t loans = limits::kMaxLoans;
  std::size_t lent_bytes = limits::kMaxLentBytes;
  std::size_t borrowed_bytes = limits::kMaxBorrowedBytes;
};

/// Takes the loans of one other process. Thread-safe.
class Borrower {
 public:
  /// Requires use_shared_arena(), as the offer contains the arena.
  static Expected<Borrower> create(const LoanLimits& limits = {});
  Borrower(Borrower&&) noexcept;
  Borrower& operator=(Borrower&&) noexcept;
  /// Renounces untaken loans. Borrowed blobs stay valid.
  ~Borrower();

  LoanOffer offer() const;
  /// As the destructor: no loan can be taken any more.
  void close();
  /// The connection was lost: refuses its later loans, and gives them back. Changes the offer.
  void reconnect();

  /// Maps the other process's arena. `offer` may be hostile.
  Status attach(const LoanOffer& offer);
  /// Takes a loan, which may be hostile: reads only inside the lender's arena. The blob's last
  /// reference returns the loan; or the blob is a copy, and the loan is returned already.
  Expected<Blob> borrow(const Loan& loan);

  /// Bytes of the blobs that are read in place.
  std::size_t borrowed_bytes() const;

 private:
  struct State;
  explicit Borrower(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Lends to one other process. Thread-safe.
class Lender {
 public:
  /// Lends to the process that made `offer`, which may be hostile.
  static Expected<Lender> create(const LoanOffer& offer, const LoanLimits& limits = {});
  Lender(Lender&&) noexcept;
  Lender& operator=(Lender&&) noexcept;
  /// Taken loans still hold their blobs.
  ~Lender();

  /// Continues with the offer of a new connection. Error if it is of another borrower.
  Status reconnect(const LoanOffer& offer);

  /// Nothing if the blob is outside the arena, too much is lent, or the borrower's process has
  /// ended. The caller must copy the blob then.
  std::optional<Loan> lend(const Blob& blob);
  /// Takes back loans that were returned or renounced, or whose borrower has ended. lend() does
  /// this after a return; without calls of lend(), call this periodically.
  void reap();

  /// The same for destroyed lenders.
  static void reap_gone();

  std::uint32_t loans() const;
  std::size_t lent_bytes() const;

 private:
  struct State;
  class Orphans;
  explicit Lender(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace leeway
