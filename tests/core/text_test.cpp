#include "core/text.hpp"

#include <rapidcheck/catch.h>

#include <catch2/catch.hpp>

using namespace leeway;

namespace {

/// Uses only three different letters, so that words are similar.
std::string any_word() {
  return *rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c'));
}

const std::vector<std::string> kOptimizers = {"sgd", "momentum", "nesterov", "adam", "adagrad"};

}  // namespace

TEST_CASE("concat prints its arguments one after the other") {
  CHECK(concat("worker ", 3, ", share ", 0.5, ' ', std::string("x")) == "worker 3, share 0.5 x");
}

TEST_CASE("join puts the separator only between items") {
  CHECK(join({}, ", ") == "");
  CHECK(join({"a"}, ", ") == "a");
  CHECK(join({"a", "", "b"}, ", ") == "a, , b");
}

TEST_CASE("trimmed removes spaces at both ends and keeps those inside") {
  CHECK(trimmed("") == "");
  CHECK(trimmed(" \t\r ") == "");
  CHECK(trimmed("a") == "a");
  CHECK(trimmed("\t a b\r") == "a b");
}

TEST_CASE("the items of a list lie between its commas, and may be empty") {
  using Items = std::vector<std::string>;
  CHECK(comma_separated("") == Items{""});
  CHECK(comma_separated("a") == Items{"a"});
  CHECK(comma_separated("a, b") == Items{"a", " b"});
  CHECK(comma_separated(",a,,b,") == Items{"", "a", "", "b", ""});
}

TEST_CASE("sizes are printed in a suitable unit") {
  CHECK(size_text(0) == "0 B");
  CHECK(size_text(999) == "999 B");
  CHECK(size_text(1000) == "1.0 kB");
  CHECK(size_text(16'384) == "16.4 kB");
  CHECK(size_text(999'949) == "999.9 kB");
  CHECK(size_text(999'950) == "1.0 MB");
  CHECK(size_text(1'600'000) == "1.6 MB");
  CHECK(size_text(std::uint64_t{1} << 63) == "9.2 EB");
}

TEST_CASE("shell words are quoted if a shell would change them") {
  CHECK(shell_word("/keys/a-1.pem") == "/keys/a-1.pem");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("two words") == "'two words'");
  CHECK(shell_word("it's $5") == "'it'\\''s $5'");
  CHECK(shell_path("-x y") == "'./-x y'");
  CHECK(shell_path("runs/a") == "runs/a");
}

TEST_CASE("the edit distance counts changed letters") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("adam", "adam") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("stalenes", "staleness") == 1);
  CHECK(edit_distance("wokrers", "workers") == 1);  // neighbours swapped
  CHECK(edit_distance("ca", "abc") == 3);           // 2 if a letter could be edited twice
}

TEST_CASE("the edit distance is symmetric, and a single edit costs one") {
  rc::prop("symmetry and bounds", [] {
    const auto a = any_word();
    const auto b = any_word();
    const auto distance = edit_distance(a, b);
    RC_ASSERT(distance == edit_distance(b, a));
    RC_ASSERT((distance == 0) == (a == b));
    RC_ASSERT(distance <= std::max(a.size(), b.size()));
    RC_ASSERT(distance >= std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
  });
  rc::prop("single edits cost one", [] {
    const auto word = any_word() + "x";
    const auto at = *rc::gen::inRange<std::size_t>(0, word.size());
    auto inserted = word, deleted = word, replaced = word;
    inserted.insert(at, 1, 'z');
    deleted.erase(at, 1);
    replaced[at] = 'z';
    RC_ASSERT(edit_distance(word, inserted) == 1u);
    RC_ASSERT(edit_distance(word, deleted) == 1u);
    RC_ASSERT(edit_distance(word, replaced) == 1u);
    if (at + 1 < word.size() && word[at] != word[at + 1]) {
      auto swapped = word;
      std::swap(swapped[at], swapped[at + 1]);
      RC_ASSERT(edit_distance(word, swapped) == 1u);
    }
  });
}

TEST_CASE("nearest finds the candidate for a typo, or returns an empty string") {
  CHECK(nearest("momentun", kOptimizers) == "momentum");
  CHECK(nearest("adma", kOptimizers) == "adam");
  CHECK(nearest("adagard", kOptimizers) == "adagrad");
  CHECK(nearest("lbfgs", kOptimizers) == "");
  CHECK(nearest("xy", {"a", "bc"}) == "");  // too far: all letters differ
  CHECK(nearest("anything", {}) == "");
  CHECK(nearest("bspp", {"bspa", "bsp"}) == "bspa");  // the first of two equally near words
}

TEST_CASE("the nearest candidate to an exact match is the match") {
  rc::prop("exact words win", [] {
    std::vector<std::string> candidates;
    for (int i = *rc::gen::inRange(1, 6); i > 0; --i) candidates.push_back(any_word() + "a");
    const auto word = *rc::gen::elementOf(candidates);
    RC_ASSERT(nearest(word, candidates) == word);
  });
}

TEST_CASE("a suggestion names the nearest candidate, or all candidates") {
  CHECK(suggest("momentun", kOptimizers) == "; did you mean \"momentum\"?");
  CHECK(suggest("lbfgs", {"sgd", "adam"}) == "; known are sgd, adam");
}
