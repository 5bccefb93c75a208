// Commands in errors and notes.
#include "cluster/hints.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

namespace leeway::test {

using namespace leeway::cluster;

TEST_CASE("a TLS folder is named by its absolute path, quoted for a shell") {
  const std::string here = std::filesystem::current_path().string();
  CHECK(tls_flag("") == "");
  CHECK(tls_flag("/keys/127.0.0.1") == " --tls /keys/127.0.0.1");
  CHECK(tls_flag("/my keys/it's") == " --tls '/my keys/it'\\''s'");
  if (here.find_first_of(" '") == std::string::npos)
    CHECK(tls_flag("keys/../other") == " --tls " + here + "/other");
}

TEST_CASE("the commands of nodes on other hosts leave their folder open") {
  CHECK(node_command("127.0.0.1:4242", "") == "leeway node --listen 127.0.0.1:4242");
  CHECK(node_command("127.0.0.1:4242", "/keys") ==
        "leeway node --listen 127.0.0.1:4242 --tls /keys");
  CHECK(node_command("10.0.0.2:4242", "/keys") ==
        "leeway node --listen 10.0.0.2:4242 --tls DIR` with its folder of `leeway cert");
  CHECK(join_command("leeway", "127.0.0.1:5000", "/keys") ==
        "leeway join 127.0.0.1:5000 --tls /keys");
  CHECK(join_command("./mine", "10.0.0.1:5000", "/keys") ==
        "./mine join 10.0.0.1:5000 --listen $(hostname):0 --tls DIR` with its folder of "
        "`leeway cert");
}

}  // namespace leeway::test
