// A plugin of the Cap'n Proto compiler: reads a CodeGeneratorRequest from stdin and writes C++ into
// the working folder. See README.md in this folder.
#include <capnp/serialize.h>
#include <kj/debug.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "messages/generator/emit.hpp"
#include "messages/generator/reader.hpp"

namespace {

using namespace leeway::generator;

void write(const std::string& path, const std::string& text) {
  const std::filesystem::path file(path);
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  KJ_REQUIRE(out.good(), "cannot write; check the folder's permissions", path);
}

void generate(const File& file) {
  const std::string stem = file.stem;
  const std::size_t slash = stem.rfind('/') + 1;
  write(stem + ".hpp", emit_header(file));
  write(stem + ".wire.hpp", emit_wire_header(file));
  write(stem + ".cpp", emit_source(file));
  const std::string tests = "tests/" + stem.substr(0, slash), name = stem.substr(slash) + ".hpp";
  write(tests + "any_" + name, emit_arbitrary(file));
  write(tests + "fields_" + name, emit_fields(file));
}

}  // namespace

int main() {
  try {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 1u << 30;
    capnp::StreamFdMessageReader message(STDIN_FILENO, options);
    const auto request = message.getRoot<capnp::schema::CodeGeneratorRequest>();
    for (const auto requested : request.getRequestedFiles()) {
      ModelReader reader(request);
      generate(reader.file(requested));
    }
    return 0;
  } catch (const kj::Exception& exception) {
    std::cerr << "leeway_generator: " << exception.getDescription().cStr() << '\n';
    return 1;
  }
}
