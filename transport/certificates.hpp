#pragma once
// Certificates: mutual TLS between the processes of a cluster.
//
// Each cluster has a certificate authority (CA), in a folder that stays where it was made:
//
//   FOLDER/ca.pem, ca.key                    the CA; its owner can make nodes
//   FOLDER/NODE/ca.pem, node.pem, node.key   a TLS folder, for the processes of one machine
//
// A process trusts every valid certificate of the CA; the names in it are for people. Private keys
// have mode 0600, folders 0700. Times are seconds since 1970.
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway {

/// Validity of a node's certificate in days; a CA's is at least as long.
inline constexpr int kCertificateDays = 825;
inline constexpr int kAuthorityDays = 3650;

struct CertificateOptions {
  std::filesystem::path folder;
  std::vector<std::string> nodes = {"node"};  // also folders: host names, addresses
  int days = kCertificateDays;                // of the nodes; at most until their CA expires
  std::time_t now = std::time(nullptr);       // valid from a day earlier, as clocks differ
};

/// The made files; `until` is the day of expiry, "2029-02-24".
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

/// Checks names and days.
Status check(const CertificateOptions& options);

/// Makes the nodes, and before them the CA unless the folder has one. Overwrites nothing: if one of
/// the nodes exists, none is made.
Expected<MadeCertificates> make_certificates(const CertificateOptions& options);

/// Checks a TLS folder: the files are readable, the key fits the certificate, the CA has signed it,
/// and both are valid now.
Status check_tls_folder(const std::filesystem::path& folder, std::time_t now = std::time(nullptr));

/// The last day of the node's certificate, "2029-02-24"; empty if it cannot be read.
std::string last_day_of(const std::filesystem::path& tls_folder);

/// Warnings about a usable TLS folder: a key that others may read, an expiry that is near.
std::vector<std::string> tls_folder_warnings(const std::filesystem::path& folder,
                                             std::time_t now = std::time(nullptr));

}  // namespace leeway
