#pragma once
// Text: windows of characters, to predict each character from those before it.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.hpp"
#include "models/datasets/dataset.hpp"
#include "models/datasets/vocabulary.hpp"
#include "plan/plan.hpp"

namespace leeway {

/// Consecutive windows of T = `context` characters. Sample: the characters' numbers, (T). Labels:
/// the numbers of the next characters, (T).
class TextWindows final : public Dataset {
 public:
  using Characters = std::shared_ptr<const std::vector<std::int32_t>>;

  /// As many windows as fit into the characters [begin, end). The last character is only a label.
  TextWindows(Characters characters, std::int64_t begin, std::int64_t end, std::int64_t context,
              std::shared_ptr<const Vocabulary> vocabulary);

  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return {context_}; }
  int classes() const override { return vocabulary_->size(); }
  std::int64_t label_count() const override { return context_; }
  std::int64_t target_count() const override { return 0; }
  std::shared_ptr<const Vocabulary> vocabulary() const override { return vocabulary_; }
  void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
              float* targets) const override;
  void gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                     float* targets) const override;

 private:
  /// The first character of the sample; its labels begin one character later.
  const std::int32_t* window(std::int64_t sample) const;

  Characters characters_;
  std::int64_t begin_, context_, size_;
  std::shared_ptr<const Vocabulary> vocabulary_;
};

/// Reads the file, or without one the King James Bible from Debian's program `bible`. The last
/// `test_share` of the characters is the test set. Errors: a missing file or program, bytes that
/// are not UTF-8, and a text that is too short for one window in each set.
Expected<TrainTest> load_text(const plan::TextCorpus& source);

/// The same for a text in memory; `name` is for errors.
Expected<TrainTest> windows_of(std::string_view text, const plan::TextCorpus& source,
                               const std::string& name);

}  // namespace leeway
