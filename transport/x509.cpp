#include "transport/x509.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/check.hpp"
#include "core/limits.hpp"
#include "core/text.hpp"

namespace leeway::transport {
namespace fs = std::filesystem;
namespace {

using Bio = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;

std::string text_of(BIO& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(&bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

Expected<std::string> read_file(const fs::path& file) {
  const auto broken = [&](const char* why) {
    return Error{concat(file.string(), " cannot be read: ", why)};
  };
  std::error_code error;
  if (fs::is_directory(file, error)) return broken("it is a folder");
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) return broken(errno ? std::strerror(errno) : "it does not open");
  std::string text(limits::kMaxCertificateBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return broken("reading fails");
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > limits::kMaxCertificateBytes)
    return broken("it is too large to be a certificate or a key");
  return text;
}

Bio reader_of(const std::string& text) {
  Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  require_openssl(bio != nullptr, "a buffer");
  return bio;
}

Bio writer() {
  Bio bio(BIO_new(BIO_s_mem()));
  require_openssl(bio != nullptr, "a buffer");
  return bio;
}

std::string common_name(const X509_NAME* name) {
  std::array<char, 256> text{};
  const int size = X509_NAME_get_text_by_NID(name, NID_commonName, text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

std::string day_of(const std::tm& time) {
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d", &time)};
}

unsigned permissions_of(const fs::path& file) {
  std::error_code error;
  const auto status = fs::status(file, error);
  return error || !fs::exists(status) ? 0 : static_cast<unsigned>(status.permissions()) & 0777;
}

}  // namespace

ErrorsForgotten::ErrorsForgotten() {
  ERR_set_mark();
}
ErrorsForgotten::~ErrorsForgotten() {
  ERR_pop_to_mark();
}

void require_openssl(bool done, const char* what) {
  if (done) return;
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  LW_CHECK(done, what, std::string(reason ? reason : "no reason given"));
}

std::string pem_of(EVP_PKEY& key) {
  const Bio bio = writer();
  require_openssl(
      PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
      "a key as text");
  return text_of(*bio);
}

std::string pem_of(X509& certificate) {
  const Bio bio = writer();
  require_openssl(PEM_write_bio_X509(bio.get(), &certificate) == 1, "a certificate as text");
  return text_of(*bio);
}

Expected<Key> read_key(const fs::path& file) {
  const auto text = read_file(file);
  if (!text) return text.error();
  bool asked = false;
  // Without this callback, OpenSSL asks for the passphrase at the terminal.
  const auto passphrase = [](char*, int, int, void* was_asked) {
    *static_cast<bool*>(was_asked) = true;
    return -1;
  };
  Key key(PEM_read_bio_PrivateKey(reader_of(*text).get(), nullptr, passphrase, &asked));
  if (asked) return Error{concat(file.string(), " is a key with a passphrase")};
  if (!key) return Error{concat(file.string(), " holds no private key in PEM form")};
  return key;
}

Expected<std::vector<Certificate>> read_certificates(const fs::path& file) {
  const auto text = read_file(file);
  if (!text) return text.error();
  const Bio bio = reader_of(*text);
  std::vector<Certificate> all;
  while (auto* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    all.emplace_back(certificate);
  if (all.empty()) return Error{concat(file.string(), " holds no certificate in PEM form")};
  return all;
}

std::string subject_of(const X509& certificate) {
  return common_name(X509_get_subject_name(&certificate));
}
std::string issuer_of(const X509& certificate) {
  return common_name(X509_get_issuer_name(&certificate));
}

std::string day_of(const ASN1_TIME& time) {
  std::tm parts{};
  return ASN1_TIME_to_tm(&time, &parts) == 1 ? day_of(parts) : "an unreadable day";
}
std::string day_of(std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  return day_of(parts);
}

unsigned open_to_others(const fs::path& file) {
  return permissions_of(file) & 0077;
}

std::string mode_of(const fs::path& file) {
  std::ostringstream text;
  text << '0' << std::oct << permissions_of(file);
  return text.str();
}

}  // namespace leeway::transport
