#include "transport/loans.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "core/text.hpp"
#include "tensor/foreign_blob.hpp"
#include "tensor/shared_arena.hpp"

namespace leeway {

namespace {

/// The connection of a closed borrower.
constexpr std::uint64_t kNoConnection = ~std::uint64_t{0};

/// The borrower writes this after the first page of its memory, and the lender reads it. `taken`
/// and `returned` are the generation of the slot's last taken and last returned loan.
struct Returns {
  struct Slot {
    std::atomic<std::uint64_t> taken, returned;
  };
  std::atomic<std::uint64_t> connection;
  std::atomic<std::uint64_t> count;  // grows with every return
  std::uint64_t unused[6];
  Slot slots[1];  // as many as the memory has

  static std::size_t bytes(std::uint32_t loans) {
    const std::size_t end = SharedMemory::kFirst + sizeof(Returns) + loans * sizeof(Slot);
    return (end + SharedMemory::kFirst - 1) / SharedMemory::kFirst * SharedMemory::kFirst;
  }
  static std::size_t loans(std::size_t bytes) {
    const std::size_t least = SharedMemory::kFirst + sizeof(Returns);
    return bytes < least ? 0 : (bytes - least) / sizeof(Slot);
  }
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::uint64_t two_numbers(const SharedMemoryName& name) {
  return std::uint64_t{static_cast<std::uint32_t>(name.pid)} << 32 |
         static_cast<std::uint32_t>(name.fd);
}

SharedMemoryName name_of(const std::uint64_t* words) {
  return {static_cast<std::int32_t>(words[0] >> 32),
          static_cast<std::int32_t>(static_cast<std::uint32_t>(words[0])),
          words[1],
          {words[2], words[3]}};
}

/// A process, by a pidfd: its number may be reused after its end.
class Process {
 public:
  explicit Process(std::int32_t pid)
      : fd_(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1) {}
  Process(Process&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (fd_ >= 0) ::close(fd_);
  }
  bool known() const { return fd_ >= 0; }
  bool ended() const {
    pollfd poll{fd_, POLLIN, 0};
    return ::poll(&poll, 1, 0) == 1 && (poll.revents & POLLIN) != 0;
  }

 private:
  int fd_;
};

}  // namespace

LoanOffer::Words LoanOffer::words() const {
  return {two_numbers(arena), arena.bytes,          arena.nonce[0],
          arena.nonce[1],     two_numbers(returns), returns.bytes,
          returns.nonce[0],   returns.nonce[1],     connection};
}

LoanOffer LoanOffer::of(const Words& words) {
  return {name_of(words.data()), name_of(words.data() + 4), words[8]};
}

Loan::Words Loan::words() const {
  return {offset, size, generation, connection, slot};
}

Loan Loan::of(const Words& words) {
  // A slot that does not fit becomes the largest one, which is refused.
  return {words[0], words[1], words[2], words[3],
          words[4] > UINT32_MAX ? UINT32_MAX : static_cast<std::uint32_t>(words[4])};
}

// --- Borrower ---

struct Borrower::State {
  struct Slot {
    std::uint64_t generation = 0;  // of the last loan taken
    bool held = false;
  };

  State(SharedMemory memory, const LoanLimits& most)
      : marks(std::move(memory)), limits(most), slots(most.loans) {
    returns().connection.store(1, std::memory_order_release);
  }

  Returns& returns() {
    return *reinterpret_cast<Returns*>(marks.mutable_data() + SharedMemory::kFirst);
  }

  /// The fault of a loan; null if it is valid.
  const char* find_fault(const Loan& loan) const {
    if (!arena) return "arrives before the memory is known";
    if (loan.connection != connection || connection == kNoConnection)
      return "is of an earlier connection";
    if (loan.slot >= slots.size()) return "has no such slot";
    if (slots[loan.slot].held) return "is of a slot that is held";
    if (loan.generation <= slots[loan.slot].generation) return "was taken before";
    if (loan.size == 0 || loan.size > limits.lent_bytes) return "has a size out of bounds";
    if (loan.offset < SharedMemory::kFirst || loan.offset % 64 != 0 ||
        loan.offset > arena->size() || loan.size > arena->size() - loan.offset)
      return "lies outside the memory";
    return nullptr;
  }

  /// The last reader has dropped the blob.
  void give_back(std::uint32_t slot, std::uint64_t generation, std::size_t bytes) {
    std::lock_guard lock(mutex);
    slots[slot].held = false;
    borrowed -= bytes;
    returns().slots[slot].returned.store(generation, std::memory_order_release);
    returns().count.fetch_add(1, std::memory_order_release);
  }

  void renounce(std::uint64_t next) {
    std::lock_guard lock(mutex);
    connection = next;
    returns().connection.store(next, std::memory_order_release);
  }

  mutable std::mutex mutex;
  SharedMemory marks;
  const LoanLimits limits;
  std::optional<SharedMemory> arena;  // set once
  std::vector<Slot> slots;
  std::uint64_t connection = 1;
  std::size_t borrowed = 0;
};

Borrower::Borrower(std::shared_ptr<State> state) : state_(std::move(state)) {}
Borrower::Borrower(Borrower&&) noexcept = default;
Borrower& Borrower::operator=(Borrower&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Borrower::~Borrower() {
  if (state_) close();
}

void Borrower::close() {
  state_->renounce(kNoConnection);
}

Expected<Borrower> Borrower::create(const LoanLimits& limits) {
  LW_CHECK(shared_arena() != nullptr);
  auto memory = SharedMemory::create("leeway-returns", Returns::bytes(limits.loans));
  if (!memory) return memory.error();
  if (!memory->fill(0, memory->size())) return Error{"shared memory: the system has none left"};
  return Borrower(std::make_shared<State>(std::move(*memory), limits));
}

LoanOffer Borrower::offer() const {
  std::lock_guard lock(state_->mutex);
  return {shared_arena()->name(), state_->marks.name(), state_->connection};
}

void Borrower::reconnect() {
  std::uint64_t next = 0;
  {
    std::lock_guard lock(state_->mutex);
    next = state_->connection + 1;
  }
  state_->renounce(next);
}

Status Borrower::attach(const LoanOffer& offer) {
  std::lock_guard lock(state_->mutex);
  if (state_->arena) {
    if (state_->arena->name() == offer.arena) return {};
    return Error{"shared memory: the offer names other memory than before"};
  }
  auto memory = SharedMemory::open(offer.arena);
  if (!memory) return memory.error();
  state_->arena.emplace(std::move(*memory));
  return {};
}

Expected<Blob> Borrower::borrow(const Loan& loan) {
  bool in_place = false;
  const auto size = static_cast<std::size_t>(loan.size);
  {
    std::lock_guard lock(state_->mutex);
    if (const char* const fault = state_->find_fault(loan))
      return Error{concat("shared memory: a loan ", fault, ": offset ", loan.offset, ", size ",
                          loan.size, ", slot ", loan.slot, ", generation ", loan.generation)};
    state_->slots[loan.slot] = {loan.generation, true};
    state_->returns().slots[loan.slot].taken.store(loan.generation, std::memory_order_release);
    in_place = size <= state_->limits.borrowed_bytes - state_->borrowed;
    if (in_place) state_->borrowed += size;
  }
  const std::span bytes(state_->arena->data() + loan.offset, size);
  if (in_place)
    return foreign_blob(bytes, [state = state_, slot = loan.slot, generation = loan.generation,
                                size] { state->give_back(slot, generation, size); });
  Blob copy;
  try {
    copy = Blob::allocate(size);
  } catch (const std::bad_alloc&) {
    state_->give_back(loan.slot, loan.generation, 0);
    return Error{concat("shared memory: no memory for a copy of ", size, " bytes")};
  }
  std::memcpy(copy.mutable_data(), bytes.data(), size);
  state_->give_back(loan.slot, loan.generation, 0);
  return copy;
}

std::size_t Borrower::borrowed_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->borrowed;
}

// --- Lender ---

struct Lender::State {
  struct Slot {
    Blob blob;
    std::uint64_t generation = 0;
    std::uint64_t connection = 0;
  };

  State(SharedMemory memory, Process process, const LoanLimits& most, std::uint64_t first)
      : marks(std::move(memory)),
        borrower(std::move(process)),
        limits(most),
        slots(std::min<std::size_t>(most.loans, Returns::loans(marks.size()))),
        connection(first) {
    for (std::size_t slot = slots.size(); slot-- > 0;)
      free.push_back(static_cast<std::uint32_t>(slot));
  }

  const Returns& returns() const {
    return *reinterpret_cast<const Returns*>(marks.data() + SharedMemory::kFirst);
  }

  /// Returned blobs; the caller drops them after it has unlocked. Looks at all loans if `each`, or
  /// if a loan was returned.
  std::vector<Blob> come_back(bool each) {
    std::vector<Blob> back;
    const auto count = returns().count.load(std::memory_order_acquire);
    const auto now = returns().connection.load(std::memory_order_acquire);
    if (!each && count == seen_count) return back;
    seen_count = count;
    for (std::size_t i = 0; i < lent.size();) {
      Slot& slot = slots[lent[i]];
      const auto& mark = returns().slots[lent[i]];
      const bool renounced =
          slot.connection != now && mark.taken.load(std::memory_order_acquire) != slot.generation;
      if (!ended && !renounced &&
          mark.returned.load(std::memory_order_acquire) != slot.generation) {
        ++i;
        continue;
      }
      bytes -= slot.blob.size();
      back.push_back(std::move(slot.blob));
      free.push_back(lent[i]);
      lent[i] = lent.back();
      lent.pop_back();
    }
    return back;
  }

  /// True if no loan is left.
  bool reap() {
    std::vector<Blob> back;
    std::lock_guard lock(mutex);
    ended = ended || borrower.ended();
    back = come_back(true);
    return lent.empty();
  }

  mutable std::mutex mutex;
  SharedMemory marks;
  const Process borrower;
  const LoanLimits limits;
  std::vector<Slot> slots;
  std::vector<std::uint32_t> free, lent;
  std::size_t bytes = 0;
  std::uint64_t connection, generation = 0;
  std::uint64_t seen_count = 0;
  bool ended = false;
};

/// Loans of destroyed lenders, to borrowers that may still read.
class Lender::Orphans {
 public:
  static Orphans& of_process() {
    static Orphans& orphans = *new Orphans;
    return orphans;
  }
  void add(std::unique_ptr<State> state) {
    std::lock_guard lock(mutex_);
    states_.push_back(std::move(state));
  }
  void reap() {
    std::lock_guard lock(mutex_);
    std::erase_if(states_, [](const auto& state) { return state->reap(); });
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<State>> states_;
};

Lender::Lender(std::unique_ptr<State> state) : state_(std::move(state)) {}
Lender::Lender(Lender&&) noexcept = default;
Lender& Lender::operator=(Lender&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Lender::~Lender() {
  if (state_ && !state_->reap()) Orphans::of_process().add(std::move(state_));
}

Expected<Lender> Lender::create(const LoanOffer& offer, const LoanLimits& limits) {
  // In this order: if the process still runs after its memory was opened, the pidfd is of that
  // process.
  Process process(offer.returns.pid);
  if (!process.known()) return Error{concat("shared memory: pidfd_open: ", std::strerror(errno))};
  auto memory = SharedMemory::open(offer.returns);
  if (!memory) return memory.error();
  if (process.ended() || Returns::loans(memory->size()) == 0)
    return Error{"shared memory: the offer's process has ended, or offers too little"};
  return Lender(
      std::make_unique<State>(std::move(*memory), std::move(process), limits, offer.connection));
}

Status Lender::reconnect(const LoanOffer& offer) {
  std::lock_guard lock(state_->mutex);
  if (offer.returns != state_->marks.name())
    return Error{"shared memory: the offer names other memory than before"};
  state_->connection = offer.connection;
  return {};
}

std::optional<Loan> Lender::lend(const Blob& blob) {
  const auto offset = arena_offset(blob);
  if (!offset || blob.size() == 0) return std::nullopt;
  State& state = *state_;
  std::vector<Blob> back;
  std::lock_guard lock(state.mutex);
  back = state.come_back(false);
  if (state.ended || state.free.empty() || blob.size() > state.limits.lent_bytes - state.bytes)
    return std::nullopt;
  const std::uint32_t slot = state.free.back();
  state.free.pop_back();
  state.lent.push_back(slot);
  state.bytes += blob.size();
  state.slots[slot] = {blob, ++state.generation, state.connection};
  return Loan{*offset, blob.size(), state.generation, state.connection, slot};
}

void Lender::reap() {
  state_->reap();
  reap_gone();
}

void Lender::reap_gone() {
  Orphans::of_process().reap();
}

std::uint32_t Lender::loans() const {
  std::lock_guard lock(state_->mutex);
  return static_cast<std::uint32_t>(state_->lent.size());
}

std::size_t Lender::lent_bytes() const {
  std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

}  // namespace leeway
