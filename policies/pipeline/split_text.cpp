// Splits of a model as people write them.
#include <algorithm>

#include "core/text.hpp"
#include "policies/pipeline/partition.hpp"

namespace leeway::pipeline {

namespace {

std::vector<std::string> separated(const std::string& text, char by) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(by, begin), text.size());
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

Expected<int> find_piece(const std::string& word, const std::vector<Piece>& pieces) {
  std::vector<std::string> of_kind, names;
  int found = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].name == word) return static_cast<int>(i);
    names.push_back(pieces[i].name);
    if (pieces[i].kind != word) continue;
    of_kind.push_back(pieces[i].name);
    found = static_cast<int>(i);
  }
  if (of_kind.size() == 1) return found;
  if (!of_kind.empty())
    return Error{concat("there are several layers of the kind ", word, "; give one of ",
                        join(of_kind, ", "))};
  return Error{concat("there is no layer \"", word, "\" before which the model can be cut; it has ",
                      join(names, ", "))};
}

/// "0-3" or "4".
Expected<Part> parse_part(const std::string& text, const std::vector<Piece>& pieces) {
  const std::size_t dash = text.find('-');
  const auto first = find_piece(text.substr(0, dash), pieces);
  if (!first) return first.error();
  const auto last = dash == std::string::npos ? first : find_piece(text.substr(dash + 1), pieces);
  if (!last) return last.error();
  if (*last < *first)
    return Error{concat('"', text, "\" ends before it begins; give ",
                        pieces[static_cast<std::size_t>(*last)].name, '-',
                        pieces[static_cast<std::size_t>(*first)].name)};
  return Part{.first = *first, .end = *last + 1, .ns = {}};
}

}  // namespace

Expected<std::vector<int>> parse_split(const std::string& text, const std::vector<Piece>& pieces) {
  std::vector<int> ends;
  int covered = 0;
  const auto name = [&](int piece) { return pieces[static_cast<std::size_t>(piece)].name; };
  const auto wrong = [&](const std::string& what) {
    return Error{concat("the split \"", text, "\": ", what)};
  };
  for (const auto& word : separated(text, ',')) {
    const auto part = parse_part(word, pieces);
    if (!part) return wrong(part.error().text);
    if (part->first > covered)
      return wrong(concat("layer ", name(covered), " is in no part; begin \"", word, "\" with it"));
    if (part->first < covered)
      return wrong(concat(
          "layer ", name(part->first), " is there twice; begin \"", word, "\" with ",
          covered < static_cast<int>(pieces.size()) ? name(covered)
                                                    : std::string("no layer, all are taken")));
    covered = part->end;
    ends.push_back(covered);
  }
  if (covered < static_cast<int>(pieces.size()))
    return wrong(concat("layer ", name(covered), " is in no part; end with ",
                        name(static_cast<int>(pieces.size()) - 1)));
  return ends;
}

std::string text_of(const Part& part, const std::vector<Piece>& pieces) {
  const auto& first = pieces[static_cast<std::size_t>(part.first)].name;
  const auto& last = pieces[static_cast<std::size_t>(part.end) - 1].name;
  return first == last ? first : concat(first, '-', last);
}

std::string text_of(const Partition& partition, const std::vector<Piece>& pieces) {
  std::vector<std::string> parts;
  for (const Part& part : partition.parts) parts.push_back(text_of(part, pieces));
  return join(parts, ",");
}

}  // namespace leeway::pipeline
