#pragma once
// Keys and certificates of OpenSSL, owned, and their files. For sources alone: other headers name
// no type of OpenSSL.
#include <openssl/asn1.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/expected.hpp"

namespace leeway::cluster {

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

/// Takes from this thread's queue of OpenSSL errors what is put there during its life: whoever
/// reads from a TLS connection later would take it for its own.
class ErrorsForgotten {
 public:
  ErrorsForgotten();
  ~ErrorsForgotten();
  ErrorsForgotten(const ErrorsForgotten&) = delete;
  ErrorsForgotten& operator=(const ErrorsForgotten&) = delete;
};

/// Throws unless `done`, with the reason that OpenSSL gives: out of memory, no random numbers.
void require_openssl(bool done, const char* what);

std::string pem_of(EVP_PKEY& key);
std::string pem_of(X509& certificate);

/// The errors of the two name file and reason; they do not say what to do.
Expected<Key> read_key(const std::filesystem::path& file);
/// All of the file, in its order, at least one.
Expected<std::vector<Certificate>> read_certificates(const std::filesystem::path& file);

/// The common name, "" if there is none.
std::string subject_of(const X509& certificate);
std::string issuer_of(const X509& certificate);

/// "2029-02-24", in UTC.
std::string day_of(const ASN1_TIME& time);
std::string day_of(std::time_t time);

/// Which bits of the mode let others than the owner in; 0 also if the file is not there.
unsigned open_to_others(const std::filesystem::path& file);
/// "0644"
std::string mode_of(const std::filesystem::path& file);

}  // namespace leeway::cluster
