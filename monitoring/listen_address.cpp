#include "monitoring/listen_address.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>

#include "core/descriptor.hpp"
#include "core/number.hpp"
#include "core/text.hpp"

namespace leeway {
namespace {

constexpr std::string_view kLoopback = "127.0.0.1";

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

/// Host and port of [HOST:]PORT, without looking the host up.
Expected<ListenAddress> split_listen_address(const std::string& text) {
  ListenAddress address;
  const std::size_t colon = text.rfind(':');
  std::string_view port = text;
  address.host = kLoopback;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    port.remove_prefix(colon + 1);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
    else if (address.host.find(':') != std::string::npos)
      return Error{"an IPv6 address needs brackets, such as [::1]:9464"};
    if (address.host.empty()) return Error{"no host before the colon; give 0.0.0.0:PORT or PORT"};
  }
  const auto number = parse_number<decltype(address.port)>(port);
  if (!number)
    return Error{concat('"', port, "\" is not a port; give [HOST:]PORT with a port of 0 to 65535")};
  address.port = *number;
  return address;
}

/// The first address of the host; prefers IPv4 if a name has both.
const addrinfo& first_address(const Addresses& all) {
  for (const addrinfo* each = all.get(); each; each = each->ai_next)
    if (each->ai_family == AF_INET) return *each;
  return *all;
}

/// Whether the system lets this process listen there.
Status try_to_listen(const addrinfo& address) {
  const Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  if (socket.get() >= 0) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket.get() < 0 || ::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0 ||
      ::listen(socket.get(), 1) != 0)
    return Error{system_reason()};
  return {};
}

}  // namespace

Expected<ListenAddress> find_listen_address(std::string_view flag, const std::string& text) {
  const auto fail = [&](const std::string& why) {
    return Error{concat(flag, ' ', text, ": ", why)};
  };
  auto address = split_listen_address(text);
  if (!address) return fail(address.error().text);
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const std::string port = std::to_string(address->port);
  const int unknown = ::getaddrinfo(address->host.c_str(), port.c_str(), &hints, &list);
  if (unknown != 0)
    return fail(concat("the host cannot be found: ", gai_strerror(unknown),
                       "; give a host of this machine, or only a port"));
  const Addresses all(list, ::freeaddrinfo);
  const addrinfo& chosen = first_address(all);
  if (const auto listens = try_to_listen(chosen); !listens)
    return fail(concat("cannot listen there: ", listens.error().text,
                       "; give another port, or 0 for any free port"));
  char numeric[NI_MAXHOST] = "";
  ::getnameinfo(chosen.ai_addr, chosen.ai_addrlen, numeric, sizeof numeric, nullptr, 0,
                NI_NUMERICHOST);
  address->numeric = chosen.ai_family == AF_INET6 ? concat('[', numeric, ']') : numeric;
  return address;
}

void knock(const ListenAddress& address) {
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST;
  std::string host = address.numeric;
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  if (::getaddrinfo(host.c_str(), std::to_string(address.port).c_str(), &hints, &list) != 0) return;
  const Addresses all(list, ::freeaddrinfo);
  const Descriptor socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  (void)!::connect(socket.get(), list->ai_addr, list->ai_addrlen);
}

std::string http_url(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return concat("http://", is_ipv6 ? concat('[', host, ']') : host, ':', port);
}

}  // namespace leeway
