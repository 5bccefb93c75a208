#pragma once
// UserRun: what a run whose workers compute in a program's own loops (kv/) gets from the program.
#include <memory>
#include <string>
#include <vector>

#include "actors/worker/user_loop.hpp"
#include "tensor/blob.hpp"

namespace leeway {

struct UserRun {
  std::shared_ptr<UserLoops> loops;   // of this process's workers; null: it has none
  std::vector<Blob> initial_weights;  // per parameter
  bool workers_return = false;        // their processes are started again
  /// Of `leeway launch`: the command up to its flags, and the program with its arguments. Its
  /// workers are the first nodes of the run.
  std::string command, program;
};

}  // namespace leeway
