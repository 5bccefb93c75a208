#pragma once
// Loans: blobs that a process lends to another of the same host, which reads them where they lie.
//
// A lender's blobs lie in its SharedArena, which the borrower maps for reading. A loan is a few
// words that travel in a message; the lender keeps a reference until the borrower has returned it.
// Returns are marks in memory that the borrower owns and the lender maps for reading: they cost no
// message, and no broken connection loses one. Where the borrower keeps too much, it copies.
//
// How two processes come to that: each has a Borrower for the other and sends its offer in the
// first words that they exchange; each attaches what the other offers, which fails when they share
// no host, no user or no view of /proc, and tells the other that it can read; and who is told so
// makes a Lender. Nothing stays behind a process that is killed.
//
// A loan whose message was lost would never come back. So connections are numbered, by the
// borrower: with the next one it renounces all loans of earlier ones that it has not taken. What a
// borrower has taken is not written before it is returned, or the borrower's process has ended, if
// only stopped: also when Lender and connection are long gone.
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

/// What a process tells of itself.
struct LoanOffer {
  SharedMemoryName arena;    // what it lends from
  SharedMemoryName returns;  // where it marks what it has returned
  std::uint64_t connection = 0;

  static constexpr std::size_t kWords = 9;
  using Words = std::array<std::uint64_t, kWords>;
  Words words() const;
  /// Of any words; what they say is checked where it is used.
  static LoanOffer of(const Words& words);
};

/// One blob, lent once.
struct Loan {
  std::uint64_t offset = 0;  // in the lender's arena
  std::uint64_t size = 0;
  std::uint64_t generation = 0;  // no two loans of a lender have the same
  std::uint64_t connection = 0;  // on which it travels
  std::uint32_t slot = 0;        // where its return is marked

  static constexpr std::size_t kWords = 5;
  using Words = std::array<std::uint64_t, kWords>;
  Words words() const;
  static Loan of(const Words& words);
};

/// The bounds of core/limits.hpp; others are for tests.
struct LoanLimits {
  std::uint32_t loans = limits::kMaxLoans;
  std::size_t lent_bytes = limits::kMaxLentBytes;
  std::size_t borrowed_bytes = limits::kMaxBorrowedBytes;
};

/// Of one process that lends to this one. Any thread.
class Borrower {
 public:
  /// Requires use_shared_arena(): the offer tells of both.
  static Expected<Borrower> create(const LoanLimits& limits = {});
  Borrower(Borrower&&) noexcept;
  Borrower& operator=(Borrower&&) noexcept;
  /// Renounces what is lent and not taken. Blobs that were borrowed live on.
  ~Borrower();

  LoanOffer offer() const;
  /// What it does when it ends: nothing can be borrowed any more.
  void close();
  /// The connection was lost: loans of it that still arrive are refused, and the lender may have
  /// them back. Changes the offer.
  void reconnect();

  /// Maps what the other process lends from. `offer` may be anything.
  Status attach(const LoanOffer& offer);
  /// Takes a loan, which may say anything: nothing outside the lender's arena is read. The blob
  /// returns it when the last reference goes; or it is a copy, and the loan has been returned.
  Expected<Blob> borrow(const Loan& loan);

  /// Of blobs that are read in place.
  std::size_t borrowed_bytes() const;

 private:
  struct State;
  explicit Borrower(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

/// Of one process that borrows from this one. Any thread.
class Lender {
 public:
  /// To the process that made `offer`, which may say anything.
  static Expected<Lender> create(const LoanOffer& offer, const LoanLimits& limits = {});
  Lender(Lender&&) noexcept;
  Lender& operator=(Lender&&) noexcept;
  /// Loans that have been taken still hold their blobs.
  ~Lender();

  /// A new connection to the same borrower, of which it offers `offer`; an error when this is
  /// another.
  Status reconnect(const LoanOffer& offer);

  /// Nothing when the blob does not lie in the arena, as many loans are out as may be, or the
  /// borrower's process has ended: then it has to be copied.
  std::optional<Loan> lend(const Blob& blob);
  /// Takes back what has been returned, renounced, or left by a borrower that has ended; for
  /// lenders that are gone too. lend() does so when something was returned; who lends nothing for a
  /// while calls this from time to time.
  void reap();

  /// What reap() does for lenders that are gone.
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
