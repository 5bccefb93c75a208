#include "sim/recent.hpp"

#include <algorithm>

#include "core/text.hpp"
#include "messages/event_queries.hpp"
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
  entry.message = {};
  entry.iteration.reset();
  entry.bytes = letter.message().header().size_bytes();
  if (!letter.opened()) return;
  const Body& body = letter.open()->body;
  entry.message = name_of(body);
  entry.iteration = iteration_of(body);
}

void Recent::event(Instant at, Address actor, const Event& event) {
  Entry& entry = next();
  entry.what = Entry::What::event;
  entry.at = at;
  entry.from = entry.to = actor;
  entry.event = event;
}

void Recent::ended(Instant at, Address actor) {
  Entry& entry = next();
  entry.what = Entry::What::ended;
  entry.at = at;
  entry.from = entry.to = actor;
}

bool Recent::concerns(const Entry& entry, Address actor) {
  if (entry.from == actor || entry.to == actor) return true;
  if (entry.what != Entry::What::event) return false;
  const auto worker = worker_of(entry.event);
  return worker && address_of(*worker) == actor;
}

std::string Recent::line(const Entry& entry) {
  if (entry.what == Entry::What::event)
    return concat(in_words(entry.at), "  ", entry.from, ": ", in_words(entry.event));
  if (entry.what == Entry::What::ended)
    return concat(in_words(entry.at), "  ", entry.from, " ends");
  std::string text = concat(in_words(entry.at), "  ", entry.from, " -> ", entry.to, ": ");
  if (entry.message.empty()) return concat(text, "a message of ", entry.bytes, " bytes");
  text += entry.message;
  if (entry.iteration) text += concat(", iteration ", *entry.iteration);
  return text;
}

std::string Recent::about(std::span<const Address> actors) const {
  std::vector<std::string> lines;
  for (std::size_t i = ring_.size(); i > 0 && lines.size() < kReported; --i) {
    const Entry& entry = ring_[(oldest_ + i - 1) % ring_.size()];
    if (actors.empty() || std::any_of(actors.begin(), actors.end(),
                                      [&](Address actor) { return concerns(entry, actor); }))
      lines.push_back(concat("    ", line(entry)));
  }
  std::reverse(lines.begin(), lines.end());
  return join(lines, "\n");
}

}  // namespace leeway::sim
