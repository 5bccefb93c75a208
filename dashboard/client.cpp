#include "dashboard/client.hpp"

#include <httplib.h>

#include "core/text.hpp"

namespace leeway::dashboard {
namespace {

constexpr int kSecondsToConnect = 2, kSecondsToRead = 10;
constexpr int kNoState = 503;

/// Adds what a short address leaves out.
std::string whole_url(const std::string& url, bool has_tls) {
  if (url.find("://") != std::string::npos) return url;
  const bool is_port = url.find_first_not_of("0123456789") == std::string::npos;
  return concat(has_tls ? "https://" : "http://", is_port ? "127.0.0.1:" : "", url);
}

/// Sends a request for `path`, and returns the body of the answer.
Expected<std::string> request(const std::string& url, const std::string& authority,
                              const std::string& path, bool posts) {
  const std::string whole = whole_url(url, !authority.empty());
  const auto host = whole.find("://") + 3, query = whole.find('?');
  httplib::Client client(whole.substr(0, whole.find_first_of("/?", host)));
  if (!client.is_valid()) return Error{concat('"', url, "\" is not the URL of a page")};
  client.set_connection_timeout(kSecondsToConnect);
  client.set_read_timeout(kSecondsToRead);
  if (!authority.empty()) client.set_ca_cert_path(authority.c_str());
  const std::string target = path + (query == std::string::npos ? "" : whole.substr(query));
  const auto answer = posts ? client.Post(target) : client.Get(target);
  if (!answer)
    return Error{concat("no page answers at ", url, " (", httplib::to_string(answer.error()),
                        "); give the URL that a run with --serve has printed")};
  if (answer->status == kNoState && !answer->body.empty())
    return Error{concat(url, ": ", answer->body)};
  if (answer->status >= 300)
    return Error{concat(url, " answers with status ", answer->status,
                        "; give the whole URL that the run has printed, with its token")};
  return answer->body;
}

}  // namespace

Expected<std::string> fetch_state(const std::string& url, const std::string& authority) {
  return request(url, authority, "/state", false);
}

Status request_stop(const std::string& url, const std::string& authority) {
  const auto answer = request(url, authority, "/stop", true);
  return answer ? Status() : Status(answer.error());
}

}  // namespace leeway::dashboard
