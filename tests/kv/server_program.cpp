// A program for launch_test, with an updater: server_program [FLAGS] PROGRAM [ARGS...].
#include <algorithm>
#include <cstddef>

#include "kv.hpp"

int main(int argc, char** argv) {
  leeway::register_updater("keep largest", [](const leeway::UpdaterCall& call) {
    for (std::size_t i = 0; i < call.weights.size(); ++i)
      call.weights[i] = std::max(call.weights[i], call.gradient[i]);
  });
  return leeway::kv::serve(argc, argv);
}
