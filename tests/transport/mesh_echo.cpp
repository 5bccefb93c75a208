// A process whose mesh returns every message to its sender, for tests of the mesh. Prints its port
// and calls the given ports. Ends with its parent.
//
//   mesh_echo [--tls FOLDER] [--silence MILLISECONDS] [PORT...]
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>

#include "tests/transport/mesh_recorder.hpp"

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  using namespace leeway;
  MeshOptions options;
  std::vector<std::uint16_t> ports;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--tls")
      options.tls = argv[++i];
    else if (argument == "--silence")
      options.silence = milliseconds(std::stoi(argv[++i]));
    else
      ports.push_back(static_cast<std::uint16_t>(std::stoi(argument)));
  }
  test::Station station(options, true);
  std::printf("%d\n", station.mesh().port());
  std::fflush(stdout);
  for (const std::uint16_t port : ports) station.must_call(port);
  while (true) pause();
}
