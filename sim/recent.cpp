#include "sim/recent.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "sim/words.hpp"

namespace leeway::sim {

Recent::Entry& Recent::next() {
  if (ring_.size() < kKept) return ring_.emplace_back();
  Entry& entry = ring_[oldest_];
  oldest_ = (oldest_ + 1) % kKept;
  return entry;
}

void Recent::delivered(Instant at, const Letter& letter) {
  Entry& entry = next();
  entry.what = Entry::What::delivered;
  entry.at = at;
  entry.from = letter.from();
  entry.to = letter.to();
  entry.name = {};
  entry.bytes = letter.message().header().size_bytes();
  if (!letter.opened()) return;
  const Body& body = letter.open()->body;
  entry.name = name_of(body);
  entry.event.iteration = iteration_of(body).value_or(Iteration(-1));
}

void Recent::event(Instant at, Address actor, const Event& event) {
  Entry& entry = next();
  entry.what = Entry::What::event;
  entry.at = at;
  entry.from = entry.to = actor;
  entry.event = event;
  entry.event.name = {};  // a text of the moment
}

void Recent::ended(Instant at, Address actor) {
  Entry& entry = next();
  entry.what = Entry::What::ended;
  entry.at = at;
  entry.from = entry.to = actor;
}

bool Recent::concerns(const Entry& entry, Address actor) {
  return entry.from == actor || entry.to == actor ||
         (entry.what == Entry::What::event && address_of(entry.event.worker) == actor);
}

std::string Recent::line(const Entry& entry) {
  if (entry.what == Entry::What::event)
    return concat(in_words(entry.at), "  ", entry.from, ": ", in_words(entry.event));
  if (entry.what == Entry::What::ended)
    return concat(in_words(entry.at), "  ", entry.from, " ends");
  std::string text = concat(in_words(entry.at), "  ", entry.from, " -> ", entry.to, ": ");
  if (entry.name.empty()) return concat(text, "a message of ", entry.bytes, " bytes");
  text += entry.name;
  if (entry.event.iteration >= Iteration(0)) text += concat(", iteration ", entry.event.iteration);
  return text;
}

std::string Recent::about(std::span<const Address> actors) const {
  std::vector<std::string> lines;
  for (std::size_t i = ring_.size(); i > 0 && lines.size() < kTold; --i) {
    const Entry& entry = ring_[(oldest_ + i - 1) % ring_.size()];
    if (actors.empty() || std::any_of(actors.begin(), actors.end(),
                                      [&](Address actor) { return concerns(entry, actor); }))
      lines.push_back(concat("    ", line(entry)));
  }
  std::reverse(lines.begin(), lines.end());
  return join(lines, "\n");
}

}  // namespace leeway::sim
