#include "dashboard/page_text.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

namespace leeway::dashboard {

TEST_CASE("absolute paths are shown without their folders") {
  const auto check = [](const std::string& text, const std::string& shown) {
    CHECK(without_folders(text) == shown);
  };
  check("/home/me/run/3: cannot be written: No space left on device",
        "3: cannot be written: No space left on device");
  check("\"/home/me/plan.json\" is missing", "\"plan.json\" is missing");
  check("checkpoint 3 was not written: /home/my runs/a, b/3: cannot be flushed",
        "checkpoint 3 was not written: 3: cannot be flushed");
  check("rename(/tmp/a/b, /tmp/c/d) failed", "rename(b, d) failed");
  check("[/tmp/a/] --out=/srv/x/y", "[a/] --out=y");
  check("file:///srv/x/y.bin, //srv/z", "file:y.bin, z");
  check("/srv/a:/srv/b and /srv/c/d", "a:b and d");
}

TEST_CASE("texts without absolute paths stay as they are") {
  for (const std::string text :
       {"", "/", "a / b", "1,200 samples/s", "runs/a/checkpoints/3: cannot be written",
        "open http://127.0.0.1:8080/?token=a/b or https://host/a/b", "worker 3 was evicted"})
    CHECK(without_folders(text) == text);
}

TEST_CASE("no folder of a path remains, whatever the text around it") {
  rc::prop("folders", [] {
    const auto name = rc::gen::nonEmpty(
        rc::gen::container<std::string>(rc::gen::elementOf(std::string("abcXYZ019._- "))));
    const auto folders = *rc::gen::container<std::vector<std::string>>(name);
    std::string path;
    for (const std::string& folder : folders) path += "/secret" + folder + "secret";
    const std::string file = "/file" + std::to_string(*rc::gen::inRange(0, 1000));
    const std::string before = *rc::gen::element<std::string>("", "error: ", "\"", "(", "at ");
    const std::string after = *rc::gen::element<std::string>("", ": failed", "\"", ") ", ", and");
    const std::string shown = without_folders(before + path + file + after);
    RC_ASSERT(shown == before + file.substr(1) + after);
  });
}

}  // namespace leeway::dashboard
