#pragma once
// Certificates: what the processes of a cluster need to trust each other, and nobody else, by TLS.
//
// A cluster has a certificate authority (CA) of its own, in a folder that stays where it was made:
//
//   FOLDER/ca.pem, ca.key                    the CA: with ca.key, anybody can make a node
//   FOLDER/NODE/ca.pem, node.pem, node.key   a TLS folder: what the processes of one machine need
//
// Whoever shows a certificate of the CA is trusted, for as long as that is valid; the names in it
// are for people. Private keys are of mode 0600, folders of mode 0700. Times are seconds since
// 1970.
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

/// Days for which a node's certificate is valid, and a CA's at least.
inline constexpr int kCertificateDays = 825;
inline constexpr int kAuthorityDays = 3650;

struct CertificateOptions {
  std::filesystem::path folder;
  std::vector<std::string> nodes = {"node"};  // also folders: host names, addresses
  int days = kCertificateDays;                // of the nodes, which do not outlive their CA
  std::time_t now = std::time(nullptr);       // valid from a day before: clocks differ
};

/// What is now there; `until` is the day on which it expires, as in "2029-02-24".
struct MadeCertificates {
  struct Node {
    std::filesystem::path folder;
    std::string until;
  };
  std::string authority;  // its name
  bool authority_is_new = false;
  std::string authority_until;
  std::vector<Node> nodes;
};

/// Whether names and days can be used.
Status check(const CertificateOptions& options);

/// Makes the nodes, and before them the CA unless the folder has one. Nothing that is there is
/// overwritten: if one of the nodes is, none is made.
Expected<MadeCertificates> make_certificates(const CertificateOptions& options);

/// Whether a process can use the TLS folder: its files are there and can be read, the key fits the
/// certificate, that is of the CA beside it, and both are valid now.
Status check_tls_folder(const std::filesystem::path& folder, std::time_t now = std::time(nullptr));

/// What is unwise about a TLS folder that can be used: a key that others may read, an end that is
/// near.
std::vector<std::string> tls_folder_warnings(const std::filesystem::path& folder,
                                             std::time_t now = std::time(nullptr));

}  // namespace leeway
