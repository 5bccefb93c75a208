#include <iostream>

#include "cli/commands.hpp"

namespace leeway::cli {
namespace {

/// Quotes a word for the shell if necessary.
std::string quote_for_shell(const std::string& word) {
  if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                             "./_-+=,@%") == std::string::npos)
    return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + '\'';
}

void print(const MadeCertificates& made, const std::filesystem::path& folder) {
  std::cout << (made.authority_is_new ? "Created " : "Used ") << "the CA in " << folder.string()
            << ", \"" << made.authority << "\", valid until " << made.authority_until << ".\n";
  if (made.authority_is_new)
    std::cout << "Its key, " << (folder / "ca.key").string()
              << ", must stay secret: its owner can join the cluster.\n";
  for (const auto& node : made.nodes)
    std::cout << "Created " << node.folder.string() << ", valid until " << node.until << ".\n";
  const auto& first = made.nodes.front().folder;
  std::cout << (made.nodes.size() == 1 ? "\nCopy it to its machine"
                                       : "\nCopy each to its machine, for example the first")
            << ", and start its processes with it:\n\n  scp -rp " << quote_for_shell(first.string())
            << ' ' << (first.filename() == "node" ? "MACHINE" : first.filename().string())
            << ":leeway-tls\n  --tls leeway-tls\n";
}

}  // namespace

int cert(const CertificateOptions& options) {
  if (const auto good = check(options); !good) {
    std::cerr << "leeway: " << good.error().text << '\n';
    return kBadUsage;
  }
  const auto made = make_certificates(options);
  if (!made) {
    std::cerr << "leeway: " << made.error().text << '\n';
    return kRunFailed;
  }
  print(*made, options.folder);
  return kOk;
}

}  // namespace leeway::cli
