#pragma once
// Text: windows of characters, each to be told from those before it.
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

/// Windows of T = `context` characters that follow each other without a gap. Sample: the numbers of
/// the characters, (T). Labels: of each the number of the next, (T).
class TextWindows final : public Dataset {
 public:
  using Characters = std::shared_ptr<const std::vector<std::int32_t>>;

  /// As many windows as fit into characters `begin` to `end`, of which the last is a label alone.
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
  /// Where the sample begins; one character behind it begin its labels.
  const std::int32_t* window(std::int64_t sample) const;

  Characters characters_;
  std::int64_t begin_, context_, size_;
  std::shared_ptr<const Vocabulary> vocabulary_;
};

/// Reads the file, or has Debian's `bible` print the King James Bible; the last `test_share` of its
/// characters is for tests. Errors: no such file, no such program, bytes that are not UTF-8, and
/// texts too short for a window each.
Expected<TrainTest> load_text(const plan::TextCorpus& source);

/// The same of a text in memory; `name` is for errors.
Expected<TrainTest> windows_of(std::string_view text, const plan::TextCorpus& source,
                               const std::string& name);

}  // namespace leeway
