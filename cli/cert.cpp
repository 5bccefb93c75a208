// `leeway cert`: makes the certificates of a cluster.
#include <iostream>

#include "cli/commands.hpp"
#include "core/text.hpp"

namespace leeway::cli {
namespace {

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
            << ", and start its processes with it:\n\n  scp -rp " << shell_path(first.string())
            << ' ' << (first.filename() == "node" ? "MACHINE" : first.filename().string())
            << ":leeway-tls\n  --tls leeway-tls\n";
}

}  // namespace

int cert(const CertificateOptions& options) {
  if (const auto good = check(options); !good) return refuse(good.error());
  const auto made = make_certificates(options);
  if (!made) return refuse(made.error(), kExitFailed);
  print(*made, options.folder);
  return kExitOk;
}

}  // namespace leeway::cli
