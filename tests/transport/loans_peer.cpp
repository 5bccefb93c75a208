// loans_peer FD LOANS LENT_BYTES BORROWED_BYTES: the peer process of loans_test. Answers requests
// until the socket is closed.
#include "tests/transport/loans_peer.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "tensor/shared_arena.hpp"
#include "transport/loans.hpp"

using namespace leeway;

namespace {

class Peer {
 public:
  explicit Peer(const LoanLimits& limits) : limits_(limits), borrower_(Borrower::create(limits)) {
    if (!borrower_) std::abort();
  }

  void answer(const Question& question, Answer& answer) {
    const auto& words = question.words;
    const auto fail = [&](const Error& error) {
      answer.ok = 0;
      error.text.copy(answer.text, sizeof answer.text - 1);
    };
    switch (question.ask) {
      case Ask::reconnect:
        borrower_->reconnect();
        [[fallthrough]];
      case Ask::offer:
        answer.words = borrower_->offer().words();
        break;
      case Ask::attach:
        if (const auto status = borrower_->attach(LoanOffer::of(words)); !status)
          fail(status.error());
        break;
      case Ask::borrow: {
        Loan::Words loan;
        std::copy_n(words.begin(), Loan::kWords, loan.begin());
        const auto before = borrower_->borrowed_bytes();
        auto blob = borrower_->borrow(Loan::of(loan));
        if (!blob) return fail(blob.error());
        answer.words[0] = sum(*blob);
        answer.words[1] = borrower_->borrowed_bytes() > before && !arena_offset(*blob);
        blobs_[words[Loan::kWords]] = std::move(*blob);
        break;
      }
      case Ask::sum:
        answer.words[0] = sum(blobs_.at(words[0]));
        break;
      case Ask::drop:
        blobs_.erase(words[0]);
        break;
      case Ask::borrowed:
        answer.words[0] = borrower_->borrowed_bytes();
        break;
      case Ask::end_borrower: {
        const Borrower ended = std::move(*borrower_);
        break;
      }
      case Ask::become_lender: {
        auto lender = Lender::create(LoanOffer::of(words), limits_);
        if (!lender) return fail(lender.error());
        lender_.emplace(std::move(*lender));
        break;
      }
      case Ask::lend: {
        Blob blob = Blob::allocate(words[0]);
        std::memset(blob.mutable_data(), static_cast<int>(words[1]), words[0]);
        const auto loan = lender_->lend(blob);
        if (!loan) return fail({"not lent"});
        std::ranges::copy(loan->words(), answer.words.begin());
        break;
      }
    }
  }

 private:
  static std::uint64_t sum(const Blob& blob) {
    std::uint64_t sum = 0;
    for (const std::byte byte : blob.bytes()) sum += std::to_integer<std::uint64_t>(byte);
    return sum;
  }

  const LoanLimits limits_;
  Expected<Borrower> borrower_;
  std::optional<Lender> lender_;
  std::map<std::uint64_t, Blob> blobs_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 5 || !use_shared_arena()) return 2;
  const int socket = std::atoi(words[1]);
  Peer peer({static_cast<std::uint32_t>(std::strtoul(words[2], nullptr, 10)),
             std::strtoull(words[3], nullptr, 10), std::strtoull(words[4], nullptr, 10)});
  for (Question question; ::recv(socket, &question, sizeof question, 0) == sizeof question;) {
    Answer answer;
    peer.answer(question, answer);
    if (::send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) return 1;
  }
}
