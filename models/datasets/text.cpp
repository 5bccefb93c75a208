#include "models/datasets/text.hpp"

#include <algorithm>

#include "core/check.hpp"
#include "core/memory.hpp"
#include "core/text.hpp"
#include "models/datasets/file.hpp"
#include "models/datasets/preprocessing.hpp"
#include "models/datasets/program_output.hpp"

namespace leeway {

namespace {

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Expected<std::vector<std::byte>> king_james() {
  // The whole Bible in lines of at most 79 characters; -p is the data folder of Debian's package.
  return program_output({"bible", "-p", "/usr/lib", "-l79", "gen1:1-rev22:21"},
                        "apt-get install bible-kjv bible-kjv-text, or give --data FILE");
}

}  // namespace

TextWindows::TextWindows(Characters characters, std::int64_t begin, std::int64_t end,
                         std::int64_t context, std::shared_ptr<const Vocabulary> vocabulary)
    : characters_(std::move(characters)),
      begin_(begin),
      context_(context),
      size_(std::max<std::int64_t>(0, (end - begin - 1) / context)),
      vocabulary_(std::move(vocabulary)) {
  LW_CHECK(context > 0 && begin >= 0 && end <= std::ssize(*characters_), context, begin, end);
}

const std::int32_t* TextWindows::window(std::int64_t sample) const {
  LW_CHECK(sample >= 0 && sample < size_, sample, size_);
  return characters_->data() + begin_ + sample * context_;
}

void TextWindows::gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
                         float*) const {
  for (const std::int64_t sample : samples) {
    const auto* const from = window(sample);
    x = std::copy_n(from, context_, x);
    labels = std::copy_n(from + 1, context_, labels);
  }
}

void TextWindows::gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                                float*) const {
  for (const std::int64_t sample : samples)
    labels = std::copy_n(window(sample) + 1, context_, labels);
}

Expected<TrainTest> windows_of(std::string_view text, const plan::TextCorpus& source,
                               const std::string& name) {
  if (Status fits =
          check_memory(name, "its characters", text.size() * sizeof(std::int32_t), kTooLargeAdvice);
      !fits)
    return fits.error();
  const auto vocabulary = Vocabulary::of(text, name);
  if (!vocabulary) return vocabulary.error();
  auto numbers = (*vocabulary)->numbers(text, name);
  LW_CHECK(bool(numbers), "made of the same text");
  const auto characters = std::make_shared<const std::vector<std::int32_t>>(std::move(*numbers));
  const std::int64_t count = std::ssize(*characters), context = source.context;
  const auto test_count = static_cast<std::int64_t>(static_cast<double>(count) * source.test_share);
  const std::int64_t border = count - test_count;
  auto train = std::make_shared<TextWindows>(characters, 0, border, context, *vocabulary);
  auto test = std::make_shared<TextWindows>(characters, border, count, context, *vocabulary);
  if (train->size() == 0 || test->size() == 0)
    return Error{concat(name, ": has ", border, " characters for training and ", test_count,
                        " for tests, but a sample needs ", context + 1,
                        "; give a longer text, or a smaller data.text.context")};
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->kind = Preprocessing::Kind::text;
  preprocessing->shape = {context};
  preprocessing->split.test_share = source.test_share;
  for (int i = 0; i < (*vocabulary)->size(); ++i)
    preprocessing->characters.push_back((*vocabulary)->character(i));
  return TrainTest{train, test, preprocessing};
}

Expected<TrainTest> load_text(const plan::TextCorpus& source) {
  const auto bytes = source.file.empty()
                         ? king_james()
                         : read_file(source.file, "give --data FILE, a text in UTF-8");
  if (!bytes) return Error{concat("data.text: ", bytes.error().text)};
  return windows_of(as_text(*bytes), source,
                    source.file.empty() ? "data.text: the King James Bible"
                                        : concat("data.text: \"", source.file, '"'));
}

}  // namespace leeway
