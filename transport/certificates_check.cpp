#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "core/text.hpp"
#include "transport/certificates.hpp"
#include "transport/x509.hpp"

namespace leeway {
namespace fs = std::filesystem;
using namespace transport;
namespace {

constexpr int kWarnDays = 30;

constexpr const char* kCopyAgain =
    "; copy the node's folder here as a whole, from where leeway cert made it";
constexpr const char* kRenewNode =
    "; where the CA is, remove the node's folder, make it anew with leeway cert, and copy it here";
constexpr const char* kRenewAuthority =
    "; make a CA in a new folder with leeway cert, and copy its nodes' folders to all machines";

/// The error if the folder is no node's folder.
Status check_is_node(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return Error{concat('"', folder.string(),
                        "\" is not a folder; make one with leeway cert, and name it with --tls")};
  if (fs::exists(folder / "ca.key", error) && !fs::exists(folder / "node.pem", error))
    return Error{concat(folder.string(),
                        " is the folder of a CA; name the folder of a node in it, "
                        "for example ",
                        (folder / "node").string())};
  return {};
}

/// The reason for which the chain in `context` is refused.
Error refusal(const fs::path& folder, const X509& node, const X509& authority,
              X509_STORE_CTX& context) {
  const int code = X509_STORE_CTX_get_error(&context);
  const X509* at = X509_STORE_CTX_get_current_cert(&context);
  if (!at) at = &node;
  const bool at_node = X509_STORE_CTX_get_error_depth(&context) == 0;
  const std::string file = (folder / (at_node ? "node.pem" : "ca.pem")).string();
  if (code == X509_V_ERR_CERT_HAS_EXPIRED)
    return Error{concat(file, " expired on ", day_of(*X509_get0_notAfter(at)),
                        at_node ? kRenewNode : kRenewAuthority)};
  if (code == X509_V_ERR_CERT_NOT_YET_VALID)
    return Error{concat(file, " is valid from ", day_of(*X509_get0_notBefore(at)),
                        " on, which is yet to come by this machine's clock; set the clock")};
  return Error{concat((folder / "node.pem").string(), " cannot be used: ",
                      X509_verify_cert_error_string(code), " (it is of \"", issuer_of(node),
                      "\", and ca.pem is \"", subject_of(authority), "\")", kCopyAgain)};
}

using Chain = std::vector<Certificate>;

/// Checks the chain as OpenSSL does for a connection, which trusts only ca.pem.
Status check_chain(const fs::path& folder, const Chain& node, const Chain& authorities, int purpose,
                   std::time_t now) {
  const std::unique_ptr<X509_STORE, FreedBy<X509_STORE_free>> store(X509_STORE_new());
  const std::unique_ptr<X509_STORE_CTX, FreedBy<X509_STORE_CTX_free>> context(X509_STORE_CTX_new());
  // The stack borrows its certificates.
  const auto free_stack = [](STACK_OF(X509) * stack) { sk_X509_free(stack); };
  const std::unique_ptr<STACK_OF(X509), decltype(free_stack)> between(sk_X509_new_null(),
                                                                      free_stack);
  require_openssl(store && context && between, "a check");
  for (const auto& authority : authorities)
    require_openssl(X509_STORE_add_cert(store.get(), authority.get()) == 1, "a CA");
  for (const auto& certificate : node) {
    const bool is_first = &certificate == &node.front();
    require_openssl(is_first || sk_X509_push(between.get(), certificate.get()) > 0, "a chain");
  }
  require_openssl(
      X509_STORE_CTX_init(context.get(), store.get(), node.front().get(), between.get()) == 1,
      "a check");
  X509_STORE_CTX_set_purpose(context.get(), purpose);
  X509_STORE_CTX_set_time(context.get(), 0, now);
  if (X509_verify_cert(context.get()) == 1) return {};
  return refusal(folder, *node.front(), *authorities.front(), *context);
}

}  // namespace

Status check_tls_folder(const fs::path& folder, std::time_t now) {
  const ErrorsForgotten quiet;
  if (auto is_node = check_is_node(folder); !is_node) return is_node;
  const auto authorities = read_certificates(folder / "ca.pem");
  if (!authorities) return Error{authorities.error().text + kCopyAgain};
  const auto node = read_certificates(folder / "node.pem");
  if (!node) return Error{node.error().text + kCopyAgain};
  const auto key = read_key(folder / "node.key");
  if (!key) return Error{key.error().text + kCopyAgain};
  if (X509_check_private_key(node->front().get(), key->get()) != 1)
    return Error{concat((folder / "node.key").string(), " is not the key of ",
                        (folder / "node.pem").string(), kCopyAgain)};
  // A process is client and server.
  for (const int purpose : {X509_PURPOSE_SSL_SERVER, X509_PURPOSE_SSL_CLIENT})
    if (auto good = check_chain(folder, *node, *authorities, purpose, now); !good) return good;
  return {};
}

std::string last_day_of(const fs::path& tls_folder) {
  const ErrorsForgotten quiet;
  const auto certificates = read_certificates(tls_folder / "node.pem");
  return certificates ? day_of(*X509_get0_notAfter(certificates->front().get())) : "";
}

std::vector<std::string> tls_folder_warnings(const fs::path& folder, std::time_t now) {
  const ErrorsForgotten quiet;
  std::vector<std::string> warnings;
  const fs::path key = folder / "node.key";
  if (open_to_others(key))
    warnings.push_back(concat(key.string(), " is open to others on this machine (mode ",
                              mode_of(key), "); close it: chmod 600 ", key.string()));
  std::time_t soon = now + kWarnDays * 24 * 3600;
  for (const char* name : {"node.pem", "ca.pem"}) {
    const auto certificates = read_certificates(folder / name);
    if (!certificates) continue;
    const ASN1_TIME* end = X509_get0_notAfter(certificates->front().get());
    if (X509_cmp_time(end, &soon) < 0)
      warnings.push_back(concat((folder / name).string(), " expires on ", day_of(*end),
                                name[0] == 'n' ? kRenewNode : kRenewAuthority));
  }
  return warnings;
}

}  // namespace leeway
