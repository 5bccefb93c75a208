#pragma once
// UserWorker: a worker whose iterations a program computes in its own loop (see UserLoop).
//
//   user's thread: begin -> computes -> push ... -> finish -> begin -> ...
//
// `begin` is answered when the iteration has samples and its weights have arrived. Pushes leave at
// once, and only `flush` waits for their acknowledgements. After `close`, or when the run stops
// between two iterations, the loop is over. If the worker fails, so does the loop.
//
// The weights of the next iteration are pulled when the user finishes one, before it asks for them.
#include <memory>
#include <optional>

#include "actors/worker/user_loop.hpp"
#include "actors/worker/whole_worker.hpp"

namespace leeway {

class UserWorker final : public WholeWorker {
 public:
  UserWorker(std::shared_ptr<const Job> job, WorkerId id, std::uint32_t launch = 1);
  ~UserWorker() override;

  void on_part(Work& work, int part, Outbox& out) override;
  void on_link(Address peer, Outbox& out) override;

 private:
  void started(const msg::Start& start, Outbox& out) override;
  void advance(Outbox& out) override;
  void forget() override;
  bool is_iterating() const override { return iterating_; }

  template <class Call>
  void ending_loop_if_it_fails(Call call);
  /// advance(), which also ends the loop if it fails.
  void take_steps(Outbox& out);

  /// Lets the user's thread run until its next call.
  void listen(Outbox& out);
  /// The user's thread has called, or the time that it has asked for is over.
  void turn_over(Work& work, Outbox& out);
  void answer(UserAnswer answer, Outbox& out);
  /// Handles a call that has just been made.
  void handle(UserCall& call, Outbox& out);
  /// Leaves the run if the user has closed, or the loop is over.
  void leave_if_closed(Outbox& out);
  void stop_if_done(Outbox& out);
  /// Ends an iteration without pushes, whose samples are leased again.
  void give_back(Outbox& out);
  /// Becomes idle, to wait at a barrier or because it has given samples back, when all its pushes
  /// are acknowledged.
  void pause(Outbox& out);
  void begin_iteration(Outbox& out);
  void push_layers(UserCall& call, Outbox& out);
  void finish_iteration(UserCall& call, Outbox& out);
  bool waits_for(UserCall::Kind kind) const { return call_ && call_->kind == kind; }
  bool is_present(const UserCall& call) const {
    return iterating_ && call.iteration == pushed_.iteration;
  }

  const std::shared_ptr<UserLoop> loop_;
  std::shared_ptr<Work> work_;    // the user's thread runs, or takes time
  std::optional<UserCall> call_;  // the user's thread waits for its answer
  bool is_over_ = false;          // the loop has ended
  bool leaves_ = false;
  bool gives_back_ = false;     // until it is started again
  std::uint64_t barriers_ = 0;  // that the user's thread has called

  bool iterating_ = false;  // the user computes
  std::vector<Version> versions_;
  std::vector<bool> layers_pushed_;
};

}  // namespace leeway
