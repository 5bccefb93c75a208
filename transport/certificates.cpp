#include "transport/certificates.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "core/limits.hpp"
#include "core/text.hpp"
#include "transport/x509.hpp"

namespace leeway {
namespace fs = std::filesystem;
using namespace transport;
namespace {

struct Authority {
  Certificate certificate;
  Key key;
  bool is_new = false;
};

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  require_openssl(key != nullptr, "a key");
  return key;
}

/// Random, and long enough to be unique in a CA without a list.
void give_random_serial(X509& certificate) {
  const std::unique_ptr<BIGNUM, FreedBy<BN_free>> number(BN_new());
  require_openssl(
      number != nullptr && BN_rand(number.get(), 128, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1,
      "a random number");
  require_openssl(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(&certificate)) != nullptr,
                  "a serial number");
}

void give_name(X509& certificate, const std::string& name) {
  const auto* text = reinterpret_cast<const unsigned char*>(name.data());
  require_openssl(
      X509_NAME_add_entry_by_NID(X509_get_subject_name(&certificate), NID_commonName, MBSTRING_UTF8,
                                 text, static_cast<int>(name.size()), -1, 0) == 1,
      "a name");
}

void extend(X509& certificate, X509& issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, FreedBy<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()));
  require_openssl(extension && X509_add_ext(&certificate, extension.get(), -1) == 1,
                  "an extension");
}

/// All but issuer, extensions and signature.
Certificate make_certificate(const std::string& name, EVP_PKEY& key, std::time_t now, int days) {
  Certificate certificate(X509_new());
  require_openssl(certificate != nullptr, "a certificate");
  require_openssl(X509_set_version(certificate.get(), X509_VERSION_3) == 1, "a version");
  give_random_serial(*certificate);
  give_name(*certificate, name);
  require_openssl(X509_set_pubkey(certificate.get(), &key) == 1 &&
                      X509_time_adj_ex(X509_getm_notBefore(certificate.get()), -1, 0, &now) &&
                      X509_time_adj_ex(X509_getm_notAfter(certificate.get()), days, 0, &now),
                  "key and days");
  return certificate;
}

/// "Leeway cluster CA 3f9a1c2b": the number distinguishes clusters.
std::string new_authority_name() {
  std::array<unsigned char, 4> bytes{};
  const std::unique_ptr<BIGNUM, FreedBy<BN_free>> number(BN_new());
  require_openssl(number != nullptr &&
                      BN_rand(number.get(), 32, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
                      BN_bn2binpad(number.get(), bytes.data(), bytes.size()) == bytes.size(),
                  "a random number");
  std::string name = "Leeway cluster CA ";
  for (const unsigned char byte : bytes)
    for (const int digit : {byte >> 4, byte & 15}) name += "0123456789abcdef"[digit];
  return name;
}

Authority make_authority(const CertificateOptions& options) {
  Authority made;
  made.is_new = true;
  made.key = make_key();
  made.certificate = make_certificate(new_authority_name(), *made.key, options.now,
                                      std::max(options.days, kAuthorityDays));
  X509& certificate = *made.certificate;
  require_openssl(X509_set_issuer_name(&certificate, X509_get_subject_name(&certificate)) == 1,
                  "an issuer");
  extend(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(certificate, certificate, NID_subject_key_identifier, "hash");
  require_openssl(X509_sign(&certificate, made.key.get(), EVP_sha256()) != 0, "a signature");
  return made;
}

Expected<Certificate> make_node(const std::string& name, EVP_PKEY& key, const Authority& authority,
                                const CertificateOptions& options) {
  Certificate made = make_certificate(name, key, options.now, options.days);
  X509& issuer = *authority.certificate;
  if (ASN1_TIME_compare(X509_get0_notAfter(made.get()), X509_get0_notAfter(&issuer)) > 0)
    require_openssl(X509_set1_notAfter(made.get(), X509_get0_notAfter(&issuer)) == 1, "days");
  require_openssl(X509_set_issuer_name(made.get(), X509_get_subject_name(&issuer)) == 1,
                  "an issuer");
  in_addr address{};
  const char* kind = ::inet_pton(AF_INET, name.c_str(), &address) == 1 ? "IP:" : "DNS:";
  extend(*made, issuer, NID_basic_constraints, "critical,CA:FALSE");
  extend(*made, issuer, NID_key_usage, "critical,digitalSignature");
  extend(*made, issuer, NID_ext_key_usage, "serverAuth,clientAuth");
  extend(*made, issuer, NID_subject_key_identifier, "hash");
  extend(*made, issuer, NID_authority_key_identifier, "keyid");
  extend(*made, issuer, NID_subject_alt_name, kind + name);
  if (X509_sign(made.get(), authority.key.get(), EVP_sha256()) == 0)
    return Error{concat((options.folder / "ca.key").string(),
                        " cannot sign with SHA-256; let leeway cert make a CA in a new folder")};
  return made;
}

/// Writes a new file; leaves none behind on failure.
Status write_new(const fs::path& file, const std::string& text, ::mode_t mode) {
  const auto broken = [&] {
    return Error{concat(file.string(), " cannot be written: ", std::strerror(errno),
                        "; name a folder that can be written to")};
  };
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (descriptor < 0) return broken();
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = ::write(descriptor, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    written += static_cast<std::size_t>(n);
  }
  const bool whole = written == text.size();
  if (whole & (::close(descriptor) == 0)) return {};
  const Error error = broken();
  ::unlink(file.c_str());
  return error;
}

Status make_folder(fs::path folder) {
  if (!folder.has_filename()) folder = folder.parent_path();  // "certs/"
  std::error_code error;
  if (fs::is_directory(folder, error)) return {};
  if (folder.has_parent_path()) fs::create_directories(folder.parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) == 0) return {};
  return Error{concat(folder.string(), " cannot be made: ", std::strerror(errno),
                      "; name a folder that can be written to")};
}

Status write_authority(const fs::path& folder, const Authority& authority) {
  if (auto made = make_folder(folder); !made) return made;
  if (auto key = write_new(folder / "ca.key", pem_of(*authority.key), 0600); !key) return key;
  auto certificate = write_new(folder / "ca.pem", pem_of(*authority.certificate), 0644);
  if (!certificate) ::unlink((folder / "ca.key").c_str());
  return certificate;
}

Error already_there(const fs::path& node) {
  return Error{concat(node.string(),
                      " exists already and is kept; remove it to make a new one, or give another "
                      "name with --node")};
}

/// The folder appears complete, or not at all.
Status write_node(const fs::path& folder, const Authority& authority, X509& certificate,
                  EVP_PKEY& key) {
  std::string draft = (folder.parent_path() / ".leeway-cert-XXXXXX").string();
  if (!::mkdtemp(draft.data()))
    return Error{concat(folder.string(), " cannot be made: ", std::strerror(errno),
                        "; name a folder that can be written to")};
  Status done = write_new(fs::path(draft) / "node.key", pem_of(key), 0600);
  if (done) done = write_new(fs::path(draft) / "node.pem", pem_of(certificate), 0644);
  if (done) done = write_new(fs::path(draft) / "ca.pem", pem_of(*authority.certificate), 0644);
  if (done && ::rename(draft.c_str(), folder.c_str()) != 0) done = already_there(folder);
  std::error_code ignored;
  if (!done) fs::remove_all(draft, ignored);
  return done;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

/// Reads the CA of a folder that has at least one of its files.
Expected<Authority> read_authority(const CertificateOptions& options) {
  const fs::path file = options.folder / "ca.pem";
  const fs::path key_file = options.folder / "ca.key";
  if (!is_there(key_file))
    return Error{concat(file.string(), " exists, but ", key_file.string(),
                        " does not; run this where the CA was made, or name a new folder")};
  constexpr const char* kAnother = "; bring the CA's files back, or name a new folder";
  auto certificates = read_certificates(file);
  if (!certificates) return Error{certificates.error().text + kAnother};
  auto key = read_key(key_file);
  if (!key) return Error{key.error().text + kAnother};
  if (open_to_others(key_file))
    return Error{concat(key_file.string(), " is open to others (mode ", mode_of(key_file),
                        "), who could make nodes; close it: chmod 600 ", key_file.string())};
  X509& certificate = *certificates->front();
  if (X509_check_private_key(&certificate, key->get()) != 1)
    return Error{concat(key_file.string(), " is not the key of ", file.string(), kAnother)};
  if (X509_check_ca(&certificate) == 0)
    return Error{concat(file.string(), " is not the certificate of a CA", kAnother)};
  std::time_t now = options.now;
  if (X509_cmp_time(X509_get0_notAfter(&certificate), &now) < 0)
    return Error{concat(file.string(), " expired on ", day_of(*X509_get0_notAfter(&certificate)),
                        "; make a CA in a new folder, and all nodes with it")};
  return Authority{std::move(certificates->front()), std::move(*key)};
}

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

Status check_name(const std::string& name) {
  const auto refused = [&](const char* why) {
    return Error{concat('"', name, "\" cannot name a node: ", why)};
  };
  if (name.empty() || name.size() > limits::kMaxNodeNameBytes)
    return refused("give 1 to 64 letters");
  if (!std::all_of(name.begin(), name.end(), is_name_letter))
    return refused("give a host's name or IPv4 address (letters, digits, '.', '-', '_')");
  if (name[0] == '.' || name[0] == '-') return refused("begin with a letter or digit");
  if (name == "ca.pem" || name == "ca.key") return refused("that is the CA's file; give another");
  return {};
}

}  // namespace

Status check(const CertificateOptions& options) {
  if (options.folder.empty()) return Error{"the folder has no name; give one for the CA"};
  if (options.nodes.empty()) return Error{"no node is named; give one with --node"};
  if (options.days < 1 || options.days > limits::kMaxCertificateDays)
    return Error{concat("--days: ", options.days, " is not allowed; give 1 to ",
                        limits::kMaxCertificateDays)};
  std::set<std::string> seen;
  for (const auto& name : options.nodes) {
    if (auto good = check_name(name); !good) return good;
    if (!seen.insert(name).second)
      return Error{concat('"', name, "\" is given twice; give each node once")};
  }
  return {};
}

Expected<MadeCertificates> make_certificates(const CertificateOptions& options) {
  const ErrorsForgotten quiet;
  if (const auto good = check(options); !good) return good.error();
  for (const auto& name : options.nodes)
    if (is_there(options.folder / name)) return already_there(options.folder / name);

  const bool known = is_there(options.folder / "ca.pem") || is_there(options.folder / "ca.key");
  auto authority = known ? read_authority(options) : make_authority(options);
  if (!authority) return authority.error();
  if (authority->is_new)
    if (const auto written = write_authority(options.folder, *authority); !written)
      return written.error();

  MadeCertificates made;
  made.authority = subject_of(*authority->certificate);
  made.authority_is_new = authority->is_new;
  made.authority_until = day_of(*X509_get0_notAfter(authority->certificate.get()));
  for (const auto& name : options.nodes) {
    const Key key = make_key();
    const auto certificate = make_node(name, *key, *authority, options);
    if (!certificate) return certificate.error();
    const fs::path folder = options.folder / name;
    if (const auto written = write_node(folder, *authority, **certificate, *key); !written)
      return written.error();
    made.nodes.push_back({folder, day_of(*X509_get0_notAfter(certificate->get()))});
  }
  return made;
}

}  // namespace leeway
