#pragma once
// X509: owning pointers to OpenSSL's keys and certificates, and their files. Only for .cpp files:
// no other header names a type of OpenSSL.
#include <openssl/asn1.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway::transport {

/// Deletes what `kFree` frees.
template <auto kFree>
struct FreedBy {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, FreedBy<X509_free>>;

/// Removes the OpenSSL errors that this thread's queue receives during its life. A later read from
/// a TLS connection would report them.
class ErrorsForgotten {
 public:
  ErrorsForgotten();
  ~ErrorsForgotten();
  ErrorsForgotten(const ErrorsForgotten&) = delete;
  ErrorsForgotten& operator=(const ErrorsForgotten&) = delete;
};

/// Throws OpenSSL's reason unless `done`: out of memory, no random numbers.
void require_openssl(bool done, const char* what);

std::string pem_of(EVP_PKEY& key);
std::string pem_of(X509& certificate);

/// The errors of the next two give file and reason; the caller adds what to do.
Expected<Key> read_key(const std::filesystem::path& file);
/// All certificates of the file, at least one.
Expected<std::vector<Certificate>> read_certificates(const std::filesystem::path& file);

/// The common name, or "".
std::string subject_of(const X509& certificate);
std::string issuer_of(const X509& certificate);

/// "2029-02-24", in UTC.
std::string day_of(const ASN1_TIME& time);
std::string day_of(std::time_t time);

/// The mode's bits for group and others; 0 if the file is missing.
unsigned open_to_others(const std::filesystem::path& file);
/// "0644"
std::string mode_of(const std::filesystem::path& file);

}  // namespace leeway::transport
