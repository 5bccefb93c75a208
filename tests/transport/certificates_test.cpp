// Certificates: new ones pass handshakes and the checks of the openssl command; invalid ones are
// refused with a remedy.
#include "transport/certificates.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "core/limits.hpp"
#include "tests/support/process.hpp"
#include "tests/transport/tls_handshake.hpp"

namespace leeway::test {
namespace {
namespace fs = std::filesystem;
using Catch::Contains;

constexpr std::time_t kDay = 24 * 3600;
constexpr std::time_t kYear = 365 * kDay;

CertificateOptions options_of(const std::string& folder, std::vector<std::string> nodes = {"node"},
                              std::time_t later = 0) {
  return {.folder = folder, .nodes = std::move(nodes), .now = std::time(nullptr) + later};
}

MadeCertificates make(const CertificateOptions& options) {
  auto made = make_certificates(options);
  INFO((made ? std::string() : made.error().text));
  REQUIRE(made);
  return *made;
}

/// "" on success.
std::string refusal_of(const CertificateOptions& options) {
  const auto made = make_certificates(options);
  return made ? "" : made.error().text;
}
std::string refusal_of(const std::string& tls_folder) {
  const auto good = check_tls_folder(tls_folder);
  return good ? "" : good.error().text;
}

Finished openssl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"/usr/bin/env", "openssl"});
  return run_program(std::move(arguments));
}

unsigned mode_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 0777;
}

void copy(const std::string& from, const std::string& to) {
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
}

/// Two clusters, "ours" with the nodes a and b, and "theirs" with the node c.
struct TwoClusters {
  TwoClusters() {
    make(options_of(folder / "ours", {"a", "b"}));
    make(options_of(folder / "theirs", {"c"}));
  }
  TemporaryFolder folder;
  const std::string a = folder / "ours/a", b = folder / "ours/b", c = folder / "theirs/c";
};

TEST_CASE("the openssl command verifies CA and nodes, as server and as client") {
  TwoClusters clusters;
  for (const auto& node : {clusters.a, clusters.b, clusters.c})
    for (const char* purpose : {"sslserver", "sslclient"}) {
      const auto verified = openssl({"verify", "-x509_strict", "-purpose", purpose, "-CAfile",
                                     node + "/ca.pem", node + "/node.pem"});
      INFO(verified.out << verified.err);
      CHECK(verified.code == 0);
    }
  CHECK(openssl({"verify", "-CAfile", clusters.c + "/ca.pem", clusters.a + "/node.pem"}).code != 0);
}

TEST_CASE("certificates contain their purpose and their owner") {
  TemporaryFolder folder;
  const auto made = make(options_of(folder / "ca", {"gpu-1.example", "10.0.0.7"}));
  const auto text_of = [&](const std::string& file) {
    return openssl({"x509", "-noout", "-text", "-in", folder / "ca/" + file}).out;
  };
  const std::string ca = text_of("ca.pem");
  CHECK_THAT(ca, Contains("Version: 3 ") && Contains("NIST CURVE: P-256") &&
                     Contains("CA:TRUE, pathlen:0") && Contains("Certificate Sign, CRL Sign"));
  CHECK_THAT(ca, Contains("Subject: CN = " + made.authority + "\n"));
  for (const char* name : {"gpu-1.example", "10.0.0.7"}) {
    const std::string node = text_of(std::string(name) + "/node.pem");
    CHECK_THAT(node, Contains("Version: 3 ") && Contains("NIST CURVE: P-256") &&
                         Contains("CA:FALSE") && Contains("X509v3 Key Usage: critical\n") &&
                         Contains("TLS Web Server Authentication, TLS Web Client Authentication"));
    CHECK_THAT(node, Contains("Issuer: CN = " + made.authority + "\n") &&
                         Contains(std::string("Subject: CN = ") + name + "\n"));
  }
  CHECK_THAT(text_of("gpu-1.example/node.pem"), Contains("DNS:gpu-1.example\n"));
  CHECK_THAT(text_of("10.0.0.7/node.pem"), Contains("IP Address:10.0.0.7\n"));
}

TEST_CASE("serial numbers are long, and serial numbers and names of CAs differ") {
  TwoClusters clusters;
  const auto ask = [](const std::string& file, const char* what) {
    return openssl({"x509", "-noout", what, "-in", file}).out;
  };
  const std::string a = ask(clusters.a + "/node.pem", "-serial");
  CHECK(a.size() >= std::string("serial=").size() + 32);
  CHECK(a != ask(clusters.b + "/node.pem", "-serial"));
  CHECK(ask(clusters.a + "/ca.pem", "-subject") != ask(clusters.c + "/ca.pem", "-subject"));
  CHECK(ask(clusters.a + "/ca.pem", "-serial") != ask(clusters.c + "/ca.pem", "-serial"));
}

TEST_CASE("a certificate is valid from yesterday, for its days, but no longer than its CA") {
  TemporaryFolder folder;
  auto options = options_of(folder / "ca");
  options.now = 1'800'000'000;  // 2027-01-15 08:00:00
  options.days = 100;
  const auto made = make(options);
  const auto dates_of = [&](const std::string& file) {
    return openssl({"x509", "-noout", "-dates", "-in", folder / "ca/" + file}).out;
  };
  CHECK(dates_of("node/node.pem") ==
        "notBefore=Jan 14 08:00:00 2027 GMT\nnotAfter=Apr 25 08:00:00 2027 GMT\n");
  CHECK(dates_of("ca.pem") ==
        "notBefore=Jan 14 08:00:00 2027 GMT\nnotAfter=Jan 12 08:00:00 2037 GMT\n");
  CHECK(made.nodes.at(0).until == "2027-04-25");
  CHECK(made.authority_until == "2037-01-12");

  options.now += 3600 * kDay;
  options.nodes = {"late"};
  CHECK(make(options).nodes.at(0).until == "2037-01-12");
  options.folder = folder / "long";
  options.days = limits::kMaxCertificateDays;
  CHECK(make(options).authority_until == "2136-10-30");
}

TEST_CASE("only the owner can read private keys, with any umask") {
  TemporaryFolder folder;
  const ::mode_t before = ::umask(0);
  make(options_of(folder / "deep/er/ca/", {"a"}));
  ::umask(before);
  CHECK(mode_of(folder / "deep/er/ca") == 0700);
  CHECK(mode_of(folder / "deep/er/ca/ca.key") == 0600);
  CHECK(mode_of(folder / "deep/er/ca/a") == 0700);
  CHECK(mode_of(folder / "deep/er/ca/a/node.key") == 0600);
}

TEST_CASE("a node that is added later uses the existing CA") {
  TemporaryFolder folder;
  const auto first = make(options_of(folder / "ca", {"a"}));
  const auto second = make(options_of(folder / "ca", {"b"}));
  CHECK(first.authority_is_new);
  CHECK_FALSE(second.authority_is_new);
  CHECK(second.authority == first.authority);
  CHECK(handshake(folder / "ca/a", folder / "ca/b") == "");
}

TEST_CASE("if one node of a command exists, no certificate is made") {
  TemporaryFolder folder;
  make(options_of(folder / "ca", {"a"}));
  const std::string key = read_text(folder / "ca/a/node.key");
  CHECK_THAT(refusal_of(options_of(folder / "ca", {"b", "a"})),
             Contains(folder / "ca/a exists already") && Contains("remove it"));
  CHECK(read_text(folder / "ca/a/node.key") == key);
  CHECK_FALSE(fs::exists(folder / "ca/b"));
  const auto entries = std::distance(fs::directory_iterator(folder / "ca"), {});
  CHECK(entries == 3);  // the CA's two files and the folder a
}

TEST_CASE("the error of a CA that cannot sign nodes names its file and a remedy") {
  TemporaryFolder folder;
  make(options_of(folder / "ca", {"a"}));
  const auto refused_after = [&](const std::string& change) {
    const std::string copied = folder / "copy";
    fs::remove_all(copied);
    copy(folder / "ca", copied);
    REQUIRE(std::system(("cd '" + copied + "' && " + change).c_str()) == 0);
    const std::string text = refusal_of(options_of(copied, {"b"}));
    CHECK_FALSE(fs::exists(copied + "/b"));
    return text;
  };
  CHECK_THAT(refused_after("rm ca.key"), Contains("run this where the CA was made"));
  CHECK_THAT(refused_after("rm ca.pem"), Contains("ca.pem cannot be read: No such file"));
  CHECK_THAT(refused_after("chmod 640 ca.key"), Contains("mode 0640") && Contains("chmod 600"));
  CHECK_THAT(refused_after("cp a/node.key ca.key"), Contains("is not the key of"));
  CHECK_THAT(refused_after("cp a/node.key ca.key && cp a/node.pem ca.pem"),
             Contains("is not the certificate of a CA"));
  CHECK_THAT(refused_after("echo nothing > ca.pem"), Contains("holds no certificate"));
  CHECK_THAT(refusal_of(options_of(folder / "ca", {"b"}, 11 * kYear)),
             Contains("expired on") && Contains("new folder"));
}

TEST_CASE("a folder that cannot be made is refused") {
  TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  for (const char* name : {"file", "file/ca"})
    CHECK_THAT(refusal_of(options_of(folder / name)),
               Contains("cannot be made: ") && Contains("name a folder"));
}

TEST_CASE("invalid host names and invalid numbers of days are refused") {
  TemporaryFolder folder;
  for (const std::string name :
       {"", "a/b", "..", ".", "-a", "a b", "a,DNS:b", "h\xc3\xa4", "ca.key", "ca.pem"})
    CHECK_THAT(refusal_of(options_of(folder / "ca", {name})), Contains("cannot name a node"));
  CHECK_THAT(refusal_of(options_of(folder / "ca", {std::string(65, 'a')})), Contains("64 letters"));
  CHECK_THAT(refusal_of(options_of(folder / "ca", {"a", "a"})), Contains("given twice"));
  for (const int days : {0, -1, limits::kMaxCertificateDays + 1}) {
    auto options = options_of(folder / "ca");
    options.days = days;
    CHECK_THAT(refusal_of(options), Contains("give 1 to 36500"));
  }
  CHECK_FALSE(fs::exists(folder / "ca"));
  CHECK(refusal_of(options_of(folder / "ca", {std::string(64, 'a')})) == "");
}

TEST_CASE(
    "two nodes of one CA connect, and each refuses a process without a certificate of that CA") {
  TwoClusters clusters;
  CHECK(handshake(clusters.a, clusters.b) == "");
  CHECK(handshake(clusters.a, clusters.a) == "");  // a node's folder may be shared
  CHECK_THAT(handshake(clusters.a, clusters.c), Contains("certificate verify failed"));
  CHECK_THAT(handshake(clusters.c, clusters.a), Contains("certificate verify failed"));
  CHECK_THAT(handshake(clusters.a, ""), Contains("peer did not return a certificate"));
}

TEST_CASE("a certificate that only one end trusts is refused by the other") {
  TwoClusters clusters;
  const std::string spy = clusters.folder / "spy";  // trusts our CA, but has another certificate
  copy(clusters.c, spy);
  fs::copy_file(clusters.a + "/ca.pem", spy + "/ca.pem", fs::copy_options::overwrite_existing);
  CHECK(handshake(clusters.a, spy) == "the server: certificate verify failed");
  CHECK(handshake(spy, clusters.a) == "the client: certificate verify failed");
}

TEST_CASE("an expired node is refused by its own check and by the others") {
  TemporaryFolder folder;
  make(options_of(folder / "ca", {"a"}));
  auto options = options_of(folder / "ca", {"old"}, -5 * kDay);
  options.days = 1;
  make(options);
  CHECK(handshake(folder / "ca/a", folder / "ca/old") == "the server: certificate verify failed");
  CHECK_THAT(refusal_of(folder / "ca/old"),
             Contains("ca/old/node.pem expired on ") && Contains("make it anew with leeway cert"));
}

TEST_CASE("a valid TLS folder passes the check, and an invalid one is refused with the reason") {
  TwoClusters clusters;
  CHECK(refusal_of(clusters.a) == "");
  CHECK(refusal_of(clusters.c) == "");
  const auto refused_after = [&](const std::string& change) {
    const std::string copied = clusters.folder / "copy";
    fs::remove_all(copied);
    copy(clusters.a, copied);
    REQUIRE(std::system(("cd '" + copied + "' && " + change).c_str()) == 0);
    const std::string text = refusal_of(copied);
    CHECK_THAT(text, Contains(copied) && Contains("; "));
    return text;
  };
  CHECK_THAT(refused_after("rm ca.pem"), Contains("ca.pem cannot be read: No such file"));
  CHECK_THAT(refused_after("rm node.pem"), Contains("node.pem cannot be read: No such file"));
  CHECK_THAT(refused_after("rm node.key"), Contains("node.key cannot be read: No such file"));
  CHECK_THAT(refused_after("rm node.key && mkdir node.key"), Contains("it is a folder"));
  CHECK_THAT(refused_after("truncate -s 2M node.pem"), Contains("too large"));
  CHECK_THAT(refused_after("head -c 100 node.key > x && mv x node.key"),
             Contains("holds no private key"));
  CHECK_THAT(refused_after("cp ../ours/b/node.key ."), Contains("is not the key of"));
  CHECK_THAT(refused_after("cp ../theirs/c/ca.pem ."),
             Contains("(it is of \"Leeway cluster CA ") && Contains("copy the node's folder"));
  CHECK_THAT(refused_after("cp ../ours/ca.pem node.pem && cp ../ours/ca.key node.key"),
             Contains("node.pem cannot be used: "));
  CHECK_THAT(refused_after("openssl ec -in ../ours/a/node.key -aes128 -passout pass:secret "
                           "-out node.key 2> log"),
             Contains("is a key with a passphrase"));
  CHECK_THAT(refusal_of(clusters.folder / "ours"),
             Contains("is the folder of a CA") && Contains("ours/node"));
  CHECK_THAT(refusal_of(clusters.folder / "missing"), Contains("is not a folder"));
  CHECK_THAT(refusal_of(""), Contains("\"\" is not a folder"));
}

/// Makes a root, an intermediate CA and a node with the openssl command: a TLS folder `node`.
constexpr const char* kOtherOrigin = R"(set -e
exec >log 2>&1
mkdir node
new="openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout"
sign="openssl x509 -req -days 9 -set_serial"
printf 'basicConstraints=critical,CA:TRUE\n' >ca.ext
printf 'extendedKeyUsage=%s\n' "$USES" >node.ext
$new root.key -x509 -days 9 -subj /CN=root -addext basicConstraints=critical,CA:TRUE -out root.pem
$new mid.key -subj /CN=mid -out mid.csr
$sign 1 -in mid.csr -CA root.pem -CAkey root.key -extfile ca.ext -out mid.pem
$new node/node.key -subj /CN=n -out n.csr
$sign 2 -in n.csr -CA mid.pem -CAkey mid.key -extfile node.ext -out node.pem
cat node.pem mid.pem >node/node.pem
cp root.pem node/ca.pem
)";

TEST_CASE("certificates of another tool work if they allow both ends of a connection") {
  for (const char* uses : {"serverAuth,clientAuth", "serverAuth", "clientAuth"}) {
    TemporaryFolder folder;
    std::ofstream(folder / "make.sh") << "cd " << folder / ""
                                      << "\nUSES=" << uses << "\n"
                                      << kOtherOrigin;
    REQUIRE(run_program({"/bin/sh", folder / "make.sh"}).code == 0);
    const std::string refusal = refusal_of(folder / "node");
    const std::string failure = handshake(folder / "node", folder / "node");
    INFO(uses << ": " << refusal << ", " << failure);
    CHECK(refusal.empty() == failure.empty());
    CHECK(refusal.empty() == (std::string(uses) == "serverAuth,clientAuth"));
  }
}

TEST_CASE("a ca.pem with two CAs trusts the nodes of both") {
  TwoClusters clusters;
  const auto both = read_text(clusters.c + "/ca.pem") + read_text(clusters.a + "/ca.pem");
  std::ofstream(clusters.a + "/ca.pem") << both;
  std::ofstream(clusters.c + "/ca.pem") << both;
  CHECK(refusal_of(clusters.a) == "");
  CHECK(refusal_of(clusters.c) == "");
  CHECK(handshake(clusters.a, clusters.c) == "");
}

TEST_CASE("outside the period of validity, the error names the clock or the file") {
  TemporaryFolder folder;
  make(options_of(folder / "ca", {"a"}));
  const auto text_at = [&](std::time_t later) {
    const auto good = check_tls_folder(folder / "ca/a", std::time(nullptr) + later);
    return good ? "" : good.error().text;
  };
  CHECK(text_at(-kDay / 2) == "");
  CHECK_THAT(text_at(-3 * kDay), Contains("is yet to come") && Contains("set the clock"));
  CHECK(text_at(824 * kDay) == "");
  CHECK_THAT(text_at(826 * kDay), Contains("a/node.pem expired on "));
  CHECK_THAT(text_at(11 * kYear), Contains("a/ca.pem expired on ") && Contains("to all machines"));
}

TEST_CASE("a key that other users may read, and a near expiry, give warnings") {
  TemporaryFolder folder;
  make(options_of(folder / "ca", {"a"}));
  const std::string a = folder / "ca/a";
  CHECK(tls_folder_warnings(a).empty());
  REQUIRE(::chmod((a + "/node.key").c_str(), 0644) == 0);
  const auto open = tls_folder_warnings(a);
  REQUIRE(open.size() == 1);
  CHECK_THAT(open[0], Contains("mode 0644") && Contains("chmod 600 " + a + "/node.key"));
  CHECK(check_tls_folder(a));
  const auto late = tls_folder_warnings(a, std::time(nullptr) + 800 * kDay);
  REQUIRE(late.size() == 2);
  CHECK_THAT(late[1], Contains("a/node.pem expires on "));
}

TEST_CASE("failures leave no error in OpenSSL's queue for the next connection") {
  TwoClusters clusters;
  fs::copy_file(clusters.b + "/node.key", clusters.a + "/node.key",
                fs::copy_options::overwrite_existing);
  ERR_clear_error();
  CHECK(refusal_of(clusters.a) != "");
  CHECK(ERR_peek_error() == 0);
  fs::remove(clusters.b + "/ca.pem");
  CHECK(tls_folder_warnings(clusters.b).empty());
  CHECK(ERR_peek_error() == 0);
  std::ofstream(clusters.folder / "ours/ca.pem") << "nothing";
  CHECK(refusal_of(options_of(clusters.folder / "ours", {"d"})) != "");
  CHECK(ERR_peek_error() == 0);
}

}  // namespace
}  // namespace leeway::test
