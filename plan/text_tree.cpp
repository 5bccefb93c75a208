#include "plan/text_tree.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/text.hpp"

namespace leeway {
namespace {

constexpr std::size_t kMaxDepth = 64;
/// Dots per line. Each may nest a table, and the parser recurses into every table.
constexpr std::ptrdiff_t kMaxDots = 1000;

TextNode make_node(TextNode::Kind kind, int line) {
  TextNode node;
  node.kind = kind;
  node.line = line;
  return node;
}

TextNode make_integer(bool negative, std::uint64_t magnitude, int line) {
  TextNode node = make_node(TextNode::Kind::integer, line);
  node.negative = negative;
  node.magnitude = magnitude;
  const auto value = static_cast<double>(magnitude);
  node.fraction = negative ? -value : value;
  node.text = concat(negative ? "-" : "", magnitude);
  return node;
}

TextNode make_integer(std::int64_t value, int line) {
  const auto bits = static_cast<std::uint64_t>(value);
  return make_integer(value < 0, value < 0 ? 0 - bits : bits, line);
}

TextNode make_fraction(double value, std::string as_written, int line) {
  TextNode node = make_node(TextNode::Kind::fraction, line);
  node.fraction = value;
  node.text = std::move(as_written);
  return node;
}

// ---- JSON ----

/// Iterates over the text and stores its position in `*seen`, for the event handler.
struct TrackedIterator {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** seen = nullptr;

  reference operator*() const { return *at; }
  TrackedIterator& operator++() {
    *seen = ++at;
    return *this;
  }
  TrackedIterator operator++(int) {
    TrackedIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const TrackedIterator& other) const { return at == other.at; }
};

/// Builds the tree from the parser's events. A member that returns false has set `failure_`.
class JsonHandler {
 public:
  JsonHandler(std::string_view text, const std::string& source)
      : source_(source), begin_(text.data()), seen_(text.data()), counted_(text.data()) {}

  TrackedIterator begin() { return {begin_, &seen_}; }
  TextNode take_root() { return std::move(root_); }
  Error failure() const { return Error{failure_}; }

  bool null() { return add(make_node(TextNode::Kind::null, line())); }
  bool boolean(bool value) {
    TextNode node = make_node(TextNode::Kind::boolean, line());
    node.boolean = value;
    return add(std::move(node));
  }
  // The parser reads one character beyond a number, which may be the end of the line.
  bool number_integer(std::int64_t value) { return add(make_integer(value, line(1))); }
  bool number_unsigned(std::uint64_t value) { return add(make_integer(false, value, line(1))); }
  bool number_float(double value, const std::string& as_written) {
    return add(make_fraction(value, as_written, line(1)));
  }
  bool string(std::string& value) {
    TextNode node = make_node(TextNode::Kind::text, line());
    node.text = std::move(value);
    return add(std::move(node));
  }
  bool binary(nlohmann::json::binary_t&) { return fail("JSON has no binary values"); }

  bool start_object(std::size_t) { return open(TextNode::Kind::table); }
  bool start_array(std::size_t) { return open(TextNode::Kind::list); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    auto& keys = open_.back()->keys;
    if (std::find(keys.begin(), keys.end(), name) != keys.end())
      return fail(concat('"', name, "\" is given twice; keep one of them"));
    keys.push_back(std::move(name));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const std::exception& error) {
    std::string text = error.what();
    for (const char* mark :
         {"] ", "column ", ": "})  // strips the library's prefix, a second position
      if (const auto at = text.find(mark); at != std::string::npos)
        text.erase(0, at + std::string_view(mark).size());
    const char* end = begin_ + (position > 0 ? position - 1 : 0);
    const auto rows = std::count(begin_, end, '\n');
    const char* row = end;
    while (row > begin_ && row[-1] != '\n') --row;
    failure_ = concat(source_, ':', rows + 1, ':', end - row + 1, ": ", text);
    return false;
  }

 private:
  /// Line of the character `back` places before the last one read.
  int line(std::ptrdiff_t back = 0) {
    const char* now = seen_ - std::min(back, seen_ - counted_);
    line_ += static_cast<int>(std::count(counted_, now, '\n'));
    counted_ = now;
    return line_;
  }
  bool fail(const std::string& text) {
    failure_ = concat(source_, ':', line(), ": ", text);
    return false;
  }
  bool add(TextNode node) {
    if (open_.empty())
      root_ = std::move(node);
    else
      open_.back()->items.push_back(std::move(node));
    return true;
  }
  bool open(TextNode::Kind kind) {
    if (open_.size() >= kMaxDepth)
      return fail(concat("is nested deeper than ", kMaxDepth, " levels; nest it less deeply"));
    add(make_node(kind, line()));
    // A parent's items do not move while one of them is open.
    open_.push_back(open_.empty() ? &root_ : &open_.back()->items.back());
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string source_;
  const char* begin_;
  const char* seen_;     // one past the last character read
  const char* counted_;  // `line_` counts the line ends before it
  int line_ = 1;
  TextNode root_;
  std::vector<TextNode*> open_;
  std::string failure_;
};

// ---- TOML ----

int line_of(const toml::source_region& region) {
  return static_cast<int>(region.begin.line);
}

std::string shortest(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return std::string(digits, end);
}

/// Returns false if `in` is nested too deeply.
bool convert(const toml::node& in, std::size_t depth, TextNode& out) {
  const int line = line_of(in.source());
  if (depth > kMaxDepth) return false;
  if (const auto* table = in.as_table()) {
    out = make_node(TextNode::Kind::table, line);
    for (const auto& [key, value] : *table) {
      out.keys.emplace_back(key.str());
      if (!convert(value, depth + 1, out.items.emplace_back())) return false;
      if (key.source().begin.line > 0) out.items.back().line = line_of(key.source());
    }
  } else if (const auto* list = in.as_array()) {
    out = make_node(TextNode::Kind::list, line);
    for (const auto& value : *list)
      if (!convert(value, depth + 1, out.items.emplace_back())) return false;
  } else if (const auto* text = in.as_string()) {
    out = make_node(TextNode::Kind::text, line);
    out.text = text->get();
  } else if (const auto* integer = in.as_integer()) {
    out = make_integer(integer->get(), line);
  } else if (const auto* fraction = in.as_floating_point()) {
    out = make_fraction(fraction->get(), shortest(fraction->get()), line);
  } else if (const auto* boolean = in.as_boolean()) {
    out = make_node(TextNode::Kind::boolean, line);
    out.boolean = boolean->get();
  } else {
    out = make_node(TextNode::Kind::date, line);
  }
  return true;
}

/// The number of the first line with more than kMaxDots dots, or 0.
int overlong_path(std::string_view text) {
  for (int line = 1; !text.empty(); ++line) {
    const auto end = std::min(text.find('\n'), text.size());
    if (std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '.') > kMaxDots)
      return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}

}  // namespace

std::string describe(const TextNode& node) {
  switch (node.kind) {
    case TextNode::Kind::null:
      return "null";
    case TextNode::Kind::boolean:
      return node.boolean ? "true" : "false";
    case TextNode::Kind::integer:
    case TextNode::Kind::fraction:
      return node.text;
    case TextNode::Kind::text:
      return concat('"', node.text.substr(0, 60), '"');
    case TextNode::Kind::list:
      return "a list";
    case TextNode::Kind::table:
      return "a table";
    case TextNode::Kind::date:
      return "a date";
  }
  return "?";
}

Expected<TextNode> parse_json(std::string_view text, const std::string& source) {
  JsonHandler handler(text, source);
  const char* end = text.data() + text.size();
  TrackedIterator last{end, nullptr};
  if (!nlohmann::json::sax_parse(handler.begin(), last, &handler)) return handler.failure();
  return handler.take_root();
}

Expected<TextNode> parse_toml(std::string_view text, const std::string& source) {
  const auto too_deep = [&](int line) {
    return Error{concat(source, ':', line, ": is nested deeper than ", kMaxDepth,
                        " levels; nest it less deeply")};
  };
  if (const int line = overlong_path(text)) return too_deep(line);
  try {
    TextNode root;
    if (!convert(toml::parse(text, source), 0, root)) return too_deep(1);
    return root;
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    return Error{concat(source, ':', at.line, ':', at.column, ": ", error.description())};
  }
}

}  // namespace leeway
