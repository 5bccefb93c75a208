#pragma once
// ProgramPage: asks the program of a node's job for the state of its page, for a page that the node
// serves.
//
// The threads of the page's server wait for the answers; everything else happens on the thread of
// process.poll().
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>

#include "cluster/process.hpp"

namespace leeway {

class ProgramPage {
 public:
  /// Sends a request to the program of the job; false without a job that runs here.
  using Send = std::function<bool(const node::PageRequest&)>;

  ProgramPage(Process& process, Send send) : process_(process), send_(std::move(send)) {}

  // ---- from any other thread ----

  /// The state, or its change since a revision of the same job. Waits for it for a few seconds at
  /// most. Errors: this node has no job or another one, the program serves no page or does not
  /// answer.
  Expected<node::PageState> state(std::uint64_t since);
  /// Stops the run as a viewer of the program's own page does. Errors as above.
  Status stop();

  // ---- on the thread of process.poll() ----

  void handle(node::PageState state);
  /// The requests under way get no answer.
  void job_ended();
  /// Further requests fail at once, as no thread polls any more.
  void close();

 private:
  using Answer = std::promise<Expected<node::PageState>>;

  Expected<node::PageState> ask(node::PageRequest request);
  void fail_all(const std::string& reason);

  Process& process_;
  const Send send_;
  std::atomic<bool> closed_{false};
  std::atomic<std::uint64_t> job_{1};  // counts the jobs of this process
  std::uint64_t last_ = 0;             // the number of the last request, over all jobs
  std::map<std::uint64_t, std::shared_ptr<Answer>> waiting_;
};

}  // namespace leeway
