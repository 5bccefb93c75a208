#pragma once
// loans_peer: requests and answers between loans_test and its peer process, over a socket pair.
#include <array>
#include <cstdint>

namespace leeway {

enum class Ask : std::uint64_t {
  offer,          // -> words of the offer
  attach,         // words of an offer
  borrow,         // words of a loan, then the index to keep it at -> sum, 1 if read in place
  sum,            // index -> sum
  drop,           // index
  borrowed,       // -> bytes
  reconnect,      // -> words of the offer
  end_borrower,   // borrowed blobs stay alive
  become_lender,  // words of an offer
  lend,           // bytes, value of each -> words of the loan
};

struct Question {
  Ask ask{};
  std::array<std::uint64_t, 9> words{};
};

struct Answer {
  std::uint64_t ok = 1;
  std::array<std::uint64_t, 9> words{};
  char text[240]{};  // of an error
};

}  // namespace leeway
