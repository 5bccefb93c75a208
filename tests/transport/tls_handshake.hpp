#pragma once
// A TLS handshake between two folders of `leeway cert`, by the OpenSSL library. As in CAF, both
// ends present a certificate and require one of the other end.
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <memory>
#include <string>

#include "core/check.hpp"

namespace leeway::test {

/// One end of a connection in memory.
class TlsEnd {
 public:
  TlsEnd(const std::string& folder, BIO* wire, bool calls) : context_(SSL_CTX_new(TLS_method())) {
    SSL_CTX* context = context_.get();
    const auto file = [&](const char* name) { return folder + "/" + name; };
    if (!folder.empty())
      LW_CHECK(SSL_CTX_use_certificate_chain_file(context, file("node.pem").c_str()) == 1 &&
                   SSL_CTX_use_PrivateKey_file(context, file("node.key").c_str(),
                                               SSL_FILETYPE_PEM) == 1 &&
                   SSL_CTX_load_verify_locations(context, file("ca.pem").c_str(), nullptr) == 1,
               folder);
    // An end without a folder has no certificate and trusts every other end.
    SSL_CTX_set_verify(
        context,
        folder.empty() ? SSL_VERIFY_NONE : SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
        nullptr);
    LW_CHECK(SSL_CTX_set_cipher_list(context, "HIGH:!aNULL:!MD5") == 1);
    ssl_.reset(SSL_new(context));
    SSL_set_bio(ssl_.get(), wire, wire);
    calls ? SSL_set_connect_state(ssl_.get()) : SSL_set_accept_state(ssl_.get());
  }

  /// Advances the handshake. False if one end refuses the other: see reason().
  bool step() {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) return done_ = true;
    const int error = SSL_get_error(ssl_.get(), result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return true;
    const char* text = ERR_reason_error_string(ERR_peek_last_error());
    reason_ = text ? text : "no reason";
    ERR_clear_error();
    return false;
  }
  bool done() const { return done_; }
  const std::string& reason() const { return reason_; }

  bool send(char byte) { return SSL_write(ssl_.get(), &byte, 1) == 1; }
  char receive() {
    char byte = 0;
    return SSL_read(ssl_.get(), &byte, 1) == 1 ? byte : '\0';
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  bool done_ = false;
  std::string reason_;
};

/// "" if a byte passes in both directions, otherwise the end that refuses and its reason. With
/// folder "", an end has no certificate.
inline std::string handshake(const std::string& server_folder, const std::string& client_folder) {
  BIO *server_wire = nullptr, *client_wire = nullptr;
  LW_CHECK(BIO_new_bio_pair(&server_wire, 0, &client_wire, 0) == 1);
  TlsEnd server(server_folder, server_wire, false);
  TlsEnd client(client_folder, client_wire, true);
  for (int round = 0; round < 100 && !(server.done() && client.done()); ++round) {
    if (!client.done() && !client.step()) return "the client: " + client.reason();
    if (!server.done() && !server.step()) return "the server: " + server.reason();
  }
  if (!server.done() || !client.done()) return "the handshake does not end";
  if (!server.send('s') || client.receive() != 's') return "no byte reaches the client";
  if (!client.send('c') || server.receive() != 'c') return "no byte reaches the server";
  return "";
}

}  // namespace leeway::test
