// The text form of splits.
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
  return Error{concat("there is no layer \"", word,
                      "\" before which the model can be split; it has ", join(names, ", "))};
}

/// "0-3" or "4".
Expected<PieceRange> parse_chunk(const std::string& text, const std::vector<Piece>& pieces) {
  const std::size_t dash = text.find('-');
  const auto first = find_piece(text.substr(0, dash), pieces);
  if (!first) return first.error();
  const auto last = dash == std::string::npos ? first : find_piece(text.substr(dash + 1), pieces);
  if (!last) return last.error();
  if (*last < *first)
    return Error{concat('"', text, "\" ends before it begins; give ",
                        pieces[static_cast<std::size_t>(*last)].name, '-',
                        pieces[static_cast<std::size_t>(*first)].name)};
  return PieceRange{.first = *first, .end = *last + 1, .ns = {}};
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
    const auto chunk = parse_chunk(word, pieces);
    if (!chunk) return wrong(chunk.error().text);
    if (chunk->first > covered)
      return wrong(
          concat("layer ", name(covered), " is in no chunk; begin \"", word, "\" with it"));
    if (chunk->first < covered)
      return wrong(
          concat("layer ", name(chunk->first), " is in two chunks; ",
                 covered < static_cast<int>(pieces.size())
                     ? concat("begin \"", word, "\" with ", name(covered))
                     : concat("remove \"", word, "\", the chunks before it have all layers")));
    covered = chunk->end;
    ends.push_back(covered);
  }
  if (covered < static_cast<int>(pieces.size()))
    return wrong(concat("layer ", name(covered), " is in no chunk; end with ",
                        name(static_cast<int>(pieces.size()) - 1)));
  return ends;
}

std::string text_of(const PieceRange& chunk, const std::vector<Piece>& pieces) {
  const auto& first = pieces[static_cast<std::size_t>(chunk.first)].name;
  const auto& last = pieces[static_cast<std::size_t>(chunk.end) - 1].name;
  return first == last ? first : concat(first, '-', last);
}

std::string text_of(const Partition& partition, const std::vector<Piece>& pieces) {
  std::vector<std::string> chunks;
  for (const PieceRange& chunk : partition.chunks) chunks.push_back(text_of(chunk, pieces));
  return join(chunks, ",");
}

}  // namespace leeway::pipeline
