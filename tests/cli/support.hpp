#pragma once
// Runs commands in a shell, for tests.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

namespace leeway::cli {

struct Result {
  int code = -1;
  std::string output;  // both streams
};

/// Runs a command line in a shell, without input.
inline Result run_line(const std::string& line) {
  Result result;
  FILE* pipe = ::popen((line + " 2>&1 </dev/null").c_str(), "r");
  REQUIRE(pipe);
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, n);
  const int status = ::pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

}  // namespace leeway::cli
