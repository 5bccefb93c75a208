#pragma once
// serve(): the main function of a server program, whose shards update keys with its functions.
//
// Example, started as `./server --workers 4 --shards 2 ./my-loop`, where my-loop calls
// store.set_updater("keep-largest"):
//
//   #include <algorithm>
//   #include <leeway/kv.hpp>
//   using namespace leeway;
//   int main(int argc, char** argv) {
//     register_updater("keep-largest", [](const UpdaterCall& call) {
//       for (std::size_t i = 0; i < call.weights.size(); ++i)
//         call.weights[i] = std::max(call.weights[i], call.gradient[i]);
//     });
//     return kv::serve(argc, argv);
//   }
#include "policies/optimizer/updater.hpp"

namespace leeway::kv {

/// The command `leeway launch` with the updaters that the program has registered; also its
/// subcommands `node` and `join`, for shards on other hosts. Returns the exit code.
int serve(int argc, char** argv);

}  // namespace leeway::kv
