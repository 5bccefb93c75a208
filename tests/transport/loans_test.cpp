#include "transport/loans.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "tensor/shared_arena.hpp"
#include "tests/support/patience.hpp"
#include "tests/transport/loans_peer.hpp"

using namespace leeway;
using leeway::test::comes_true;

namespace {

constexpr std::size_t kMiB = 1 << 20;

/// Another process with a Borrower that follows requests.
class Peer {
 public:
  explicit Peer(const LoanLimits& limits = {}) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    REQUIRE(::fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0);
    const std::string words[] = {LEEWAY_LOANS_PEER, std::to_string(ends[1]),
                                 std::to_string(limits.loans), std::to_string(limits.lent_bytes),
                                 std::to_string(limits.borrowed_bytes)};
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::execl(words[0].c_str(), words[0].c_str(), words[1].c_str(), words[2].c_str(),
              words[3].c_str(), words[4].c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    socket_ = ends[0];
    REQUIRE(pid_ > 0);
  }
  ~Peer() {
    kill();
    ::close(socket_);
  }
  Peer(const Peer&) = delete;

  template <std::size_t N = 0>
  Answer ask(Ask ask, const std::array<std::uint64_t, N>& words = {}) {
    Question question{ask, {}};
    std::ranges::copy(words, question.words.begin());
    Answer answer;
    REQUIRE(::send(socket_, &question, sizeof question, MSG_NOSIGNAL) == sizeof question);
    pollfd poll{socket_, POLLIN, 0};
    REQUIRE(::poll(&poll, 1,
                   static_cast<int>(std::chrono::milliseconds(test::kPatience).count())) == 1);
    REQUIRE(::recv(socket_, &answer, sizeof answer, 0) == sizeof answer);
    return answer;
  }
  std::uint64_t ask(Ask request, std::uint64_t word) {
    return ask(request, std::array<std::uint64_t, 1>{word}).words[0];
  }
  LoanOffer offer(Ask request = Ask::offer) { return LoanOffer::of(ask(request).words); }
  Answer borrow(const Loan& loan, std::uint64_t index) {
    std::array<std::uint64_t, Loan::kWords + 1> words{};
    std::ranges::copy(loan.words(), words.begin());
    words.back() = index;
    return ask(Ask::borrow, words);
  }
  bool refuses(const Loan& loan) {
    const Answer answer = borrow(loan, 99);
    return !answer.ok && std::string(answer.text).starts_with("shared memory: a loan ");
  }

  void signal(int number) { REQUIRE(::kill(pid_, number) == 0); }
  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int socket_ = -1;
};

/// This process as the lender of a peer process.
struct Pair {
  explicit Pair(const LoanLimits& limits = {}) : peer(limits), lender(connect(limits)) {}

  Lender connect(const LoanLimits& limits) {
    REQUIRE(use_shared_arena());
    auto own = Borrower::create();
    REQUIRE(own);
    REQUIRE(peer.ask(Ask::attach, own->offer().words()).ok);
    auto made = Lender::create(peer.offer(), limits);
    REQUIRE(made);
    return std::move(*made);
  }
  Loan lend(const Blob& blob) {
    const auto loan = lender.lend(blob);
    REQUIRE(loan);
    return *loan;
  }

  Peer peer;
  Lender lender;
};

Blob filled(std::size_t bytes, int value) {
  Blob blob = Blob::allocate(bytes);
  std::memset(blob.mutable_data(), value, bytes);
  return blob;
}

/// The shared memory of the whole system, in bytes.
std::size_t shared_bytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;)
    if (word == "Shmem:") {
      std::size_t kib = 0;
      info >> kib;
      return kib << 10;
    }
  FAIL("/proc/meminfo has no Shmem");
  return 0;
}

}  // namespace

TEST_CASE("another process reads a loan in place, and returns it without a message") {
  Pair pair;
  Blob blob = filled(kMiB, 3);
  const Loan loan = pair.lend(blob);
  CHECK(loan.offset == arena_offset(blob));
  CHECK(loan.size == kMiB);
  CHECK(pair.lender.loans() == 1);
  CHECK(pair.lender.lent_bytes() == kMiB);
  CHECK_FALSE(blob.unique());

  const Answer taken = pair.peer.borrow(loan, 0);
  REQUIRE(taken.ok);
  CHECK(taken.words[0] == 3 * kMiB);
  CHECK(taken.words[1] == 1);  // in place
  // Writes to a lent blob, which shows that both processes share its bytes.
  blob.mutable_data()[5] = std::byte{4};
  CHECK(pair.peer.ask(Ask::sum, 0) == 3 * kMiB + 1);

  pair.lender.reap();
  CHECK(pair.lender.loans() == 1);  // still in use
  pair.peer.ask(Ask::drop, 0);
  pair.lender.reap();
  CHECK(pair.lender.loans() == 0);
  CHECK(pair.lender.lent_bytes() == 0);
  CHECK(blob.unique());
  CHECK(pair.peer.ask(Ask::borrowed, 0) == 0);
}

TEST_CASE("a blob is not reused while a stopped borrower may read it") {
  Pair pair;
  Blob blob = filled(kMiB, 3);
  const std::byte* const bytes = blob.data();
  REQUIRE(pair.peer.borrow(pair.lend(blob), 0).ok);
  pair.peer.signal(SIGSTOP);
  blob.reset();
  { const Lender gone = std::move(pair.lender); }  // ends the connection
  for (int i = 0; i < 20; ++i) {
    const Blob other = filled(kMiB, 9);
    CHECK(other.data() != bytes);
  }
  pair.peer.signal(SIGCONT);
  CHECK(pair.peer.ask(Ask::sum, 0) == 3 * kMiB);

  // Another lender takes the blob back once it is returned.
  pair.peer.ask(Ask::drop, 0);
  Pair next;
  next.lender.reap();
  CHECK(Blob::allocate(kMiB).data() == bytes);  // the pool reuses the latest blob first
}

TEST_CASE("blobs outside the arena and empty blobs are not lent") {
  Pair pair;
  CHECK_FALSE(pair.lender.lend(Blob()));
  CHECK_FALSE(pair.lender.lend(Blob::allocate(0)));
  CHECK_FALSE(pair.lender.lend(Blob::allocate(1000)));
  CHECK(pair.lender.loans() == 0);
}

TEST_CASE("a changed loan is refused") {
  Pair pair({.loans = 8, .lent_bytes = 4 * kMiB});
  const Loan loan = pair.lend(filled(kMiB, 3));
  const std::uint64_t end = shared_arena()->name().bytes;
  const auto refused = [&](auto change) {
    Loan changed = loan;
    change(changed);
    return pair.peer.refuses(changed);
  };
  CHECK(refused([&](Loan& l) { l.offset = end; }));
  CHECK(refused([&](Loan& l) { l.offset = end - l.size + 64; }));
  CHECK(refused([&](Loan& l) { l.offset = ~std::uint64_t{63}; }));
  CHECK(refused([&](Loan& l) { l.offset = std::uint64_t{0} - l.size; }));
  CHECK(refused([&](Loan& l) { l.offset = 0; }));
  CHECK(refused([&](Loan& l) { l.offset += 4; }));
  CHECK(refused([&](Loan& l) { l.size = 0; }));
  CHECK(refused([&](Loan& l) { l.size = ~std::uint64_t{0}; }));
  CHECK(refused([&](Loan& l) { l.size = 4 * kMiB + 1; }));
  CHECK(refused([&](Loan& l) { l.slot = 8; }));
  CHECK(refused([&](Loan& l) { l.slot = UINT32_MAX; }));
  CHECK(refused([&](Loan& l) { l.generation = 0; }));
  CHECK(refused([&](Loan& l) { l.connection += 1; }));
  CHECK(refused([&](Loan& l) { l.connection = ~std::uint64_t{0}; }));
  CHECK(Loan::of({0, 0, 0, 0, std::uint64_t{1} << 32}).slot == UINT32_MAX);

  REQUIRE(pair.peer.borrow(loan, 0).ok);
  CHECK(pair.peer.refuses(loan));                      // the loan is held
  CHECK(refused([](Loan& l) { l.generation += 1; }));  // its slot is in use
  pair.peer.ask(Ask::drop, 0);
  CHECK(pair.peer.refuses(loan));  // borrowed before
  CHECK(pair.peer.ask(Ask::borrowed, 0) == 0);
  pair.lender.reap();
  CHECK(pair.lender.loans() == 0);
}

TEST_CASE("loans before the lender's memory is known are refused") {
  REQUIRE(use_shared_arena());
  Peer peer;
  CHECK(peer.refuses({4096, 4096, 1, 1, 0}));
}

TEST_CASE("an offer with a wrong address makes neither a lender nor a borrower") {
  REQUIRE(use_shared_arena());
  Peer peer;
  auto borrower = Borrower::create();
  REQUIRE(borrower);
  const LoanOffer right = peer.offer();
  const auto refused = [&](auto change) {
    LoanOffer offer = right;
    change(offer.arena);
    change(offer.returns);
    return !Lender::create(offer) && !borrower->attach(offer);
  };
  CHECK(refused([](SharedMemoryName& name) { name.nonce[0] ^= 1; }));
  CHECK(refused([](SharedMemoryName& name) { name.pid = ::getpid(); }));
  CHECK(refused([](SharedMemoryName& name) { name.pid = -1; }));
  CHECK(refused([](SharedMemoryName& name) { name.fd = 0; }));
  CHECK(refused([](SharedMemoryName& name) { name.fd += 1000; }));
  CHECK(refused([](SharedMemoryName& name) { name.bytes *= 2; }));
  LoanOffer crossed = right;
  std::swap(crossed.arena, crossed.returns);
  crossed.returns.nonce = right.returns.nonce;
  CHECK_FALSE(Lender::create(crossed));

  CHECK(LoanOffer::of(right.words()).arena == right.arena);
  CHECK(LoanOffer::of(right.words()).returns == right.returns);
  REQUIRE(borrower->attach(right));
  REQUIRE(borrower->attach(right));  // a repeat, after a new connection
  const Peer other;
  CHECK_FALSE(borrower->attach(const_cast<Peer&>(other).offer()));
  peer.kill();
  CHECK_FALSE(Lender::create(right));
}

TEST_CASE("a borrower at its limit copies the blob and returns the loan at once") {
  Pair pair({.borrowed_bytes = 2 * kMiB});
  REQUIRE(pair.peer.borrow(pair.lend(filled(kMiB, 1)), 0).words[1] == 1);
  REQUIRE(pair.peer.borrow(pair.lend(filled(kMiB, 2)), 1).words[1] == 1);
  const Answer third = pair.peer.borrow(pair.lend(filled(kMiB, 3)), 2);
  REQUIRE(third.ok);
  CHECK(third.words[0] == 3 * kMiB);
  CHECK(third.words[1] == 0);  // a copy
  CHECK(pair.peer.ask(Ask::borrowed, 0) == 2 * kMiB);
  pair.lender.reap();
  CHECK(pair.lender.loans() == 2);
  pair.peer.ask(Ask::drop, 0);
  CHECK(pair.peer.borrow(pair.lend(filled(kMiB, 4)), 3).words[1] == 1);
  CHECK(pair.peer.ask(Ask::sum, 2) == 3 * kMiB);
}

TEST_CASE("a lender keeps its limits of blobs and bytes") {
  Pair few({.loans = 2});
  const Blob blob = filled(kMiB, 1);
  const Loan first = few.lend(blob);
  few.lend(blob);
  CHECK_FALSE(few.lender.lend(blob));
  REQUIRE(few.peer.borrow(first, 0).ok);
  CHECK_FALSE(few.lender.lend(blob));
  few.peer.ask(Ask::drop, 0);
  const Loan third = few.lend(blob);  // takes back returned loans first
  CHECK(third.slot == first.slot);
  CHECK(third.generation != first.generation);
  CHECK_FALSE(few.lender.lend(blob));

  Pair small({.lent_bytes = 2 * kMiB + 1});
  small.lend(blob);
  small.lend(blob);
  CHECK_FALSE(small.lender.lend(blob));
  CHECK(small.lender.lent_bytes() == 2 * kMiB);
}

TEST_CASE("loans in lost messages return with the next connection") {
  Pair pair;
  Blob lost = filled(kMiB, 1), taken = filled(kMiB, 2);
  const Loan late = pair.lend(lost);
  REQUIRE(pair.peer.borrow(pair.lend(taken), 0).ok);
  pair.lender.reap();
  CHECK(pair.lender.loans() == 2);

  const LoanOffer next = pair.peer.offer(Ask::reconnect);
  REQUIRE(pair.lender.reconnect(next));
  pair.lender.reap();
  CHECK(pair.lender.loans() == 1);
  CHECK(lost.unique());
  CHECK_FALSE(taken.unique());
  CHECK(pair.peer.refuses(late));  // a message that arrives too late
  CHECK(pair.peer.ask(Ask::sum, 0) == 2 * kMiB);

  REQUIRE(pair.peer.borrow(pair.lend(lost), 1).ok);
  pair.peer.ask(Ask::drop, 0);
  pair.peer.ask(Ask::drop, 1);
  pair.lender.reap();
  CHECK(pair.lender.loans() == 0);

  LoanOffer other = next;
  other.returns.nonce[0] ^= 1;
  CHECK_FALSE(pair.lender.reconnect(other));
}

TEST_CASE("a destroyed borrower gives up unread loans and returns the others") {
  Pair pair;
  Blob lost = filled(kMiB, 1), taken = filled(kMiB, 2);
  pair.lend(lost);
  REQUIRE(pair.peer.borrow(pair.lend(taken), 0).ok);
  pair.peer.ask(Ask::end_borrower);
  pair.lender.reap();
  CHECK(lost.unique());
  CHECK_FALSE(taken.unique());
  CHECK(pair.peer.ask(Ask::sum, 0) == 2 * kMiB);
  pair.peer.ask(Ask::drop, 0);
  pair.lender.reap();
  CHECK(taken.unique());
}

TEST_CASE("kill -9 of a borrower ends its loans") {
  Pair pair;
  Blob blob = filled(kMiB, 3);
  REQUIRE(pair.peer.borrow(pair.lend(blob), 0).ok);
  pair.lend(blob);
  pair.lender.reap();
  REQUIRE(pair.lender.loans() == 2);
  pair.peer.kill();
  pair.lender.reap();
  CHECK(pair.lender.loans() == 0);
  CHECK(blob.unique());
  CHECK_FALSE(pair.lender.lend(blob));
}

TEST_CASE("after kill -9 of a lender, borrowed blobs stay readable until they are released") {
  REQUIRE(use_shared_arena());
  constexpr std::size_t kLarge = 256 * kMiB;
  Peer peer({.borrowed_bytes = kLarge});
  auto borrower = Borrower::create();
  REQUIRE(borrower);
  REQUIRE(borrower->attach(peer.offer()));
  REQUIRE(peer.ask(Ask::become_lender, borrower->offer().words()).ok);
  const Answer lent = peer.ask(Ask::lend, std::array<std::uint64_t, 2>{kLarge, 7});
  REQUIRE(lent.ok);
  Loan::Words words;
  std::copy_n(lent.words.begin(), words.size(), words.begin());
  auto blob = borrower->borrow(Loan::of(words));
  REQUIRE(blob);
  CHECK_FALSE(arena_offset(*blob));
  CHECK_FALSE(blob->unique());
  CHECK_THROWS_AS(blob->mutable_data(), CheckFailed);

  peer.kill();
  CHECK(std::ranges::all_of(blob->bytes(), [](std::byte byte) { return byte == std::byte{7}; }));
  const std::size_t before = shared_bytes();
  { const Borrower ended = std::move(*borrower); }
  blob = Blob();
  CHECK(comes_true([&] { return shared_bytes() + kLarge / 2 < before; }));
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm"))
    CHECK(entry.path().filename().string().find("leeway") == std::string::npos);
}
