#pragma once
// Dataset: numbered samples with targets, read in any order by many threads at once.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/expected.hpp"
#include "tensor/shape.hpp"

namespace leeway {

class Vocabulary;

/// The built-in data sets, and those that a scenario program brings along, implement this. All
/// members are const and may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Samples, numbered from 0.
  virtual std::int64_t size() const = 0;
  /// Shape of one sample, for example 1x28x28.
  virtual Shape sample_shape() const = 0;
  /// Classes of the labels 0..classes()-1, or 0 when the targets are numbers.
  virtual int classes() const = 0;
  /// Labels of a sample, where there are classes: one, or one for each place of a sequence.
  virtual std::int64_t label_count() const { return 1; }
  /// Numbers to predict for a sample; 0 when there are classes.
  virtual std::int64_t target_count() const = 0;

  /// Of text: the characters that samples and labels are numbers of; else null.
  virtual std::shared_ptr<const Vocabulary> vocabulary() const { return nullptr; }
  /// What an empty pixel reads as in a gathered image; new views of images are filled up with it.
  virtual float background() const { return 0; }

  /// Writes the named samples, in their order.
  /// x: (samples.size(), sample_shape()). labels: (samples.size(), label_count()), written iff
  /// classes() > 0, else may be null. targets: (samples.size(), target_count()), written iff
  /// target_count() > 0, else may be null.
  virtual void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
                      float* targets) const = 0;
  /// The labels or targets alone, for who computes a loss and reads no samples. As it is, gathers
  /// whole samples, one at a time, and throws the rest away.
  virtual void gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                             float* targets) const;
};

struct TrainTest {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
};

/// Makes the data set of a program, with the run's seed; called once per run.
using DataFactory = std::function<Expected<TrainTest>(std::uint64_t seed)>;

/// Makes plan::CustomData{name} known; a name registered again gets the new factory. Thread-safe.
void register_data(const std::string& name, DataFactory factory);

}  // namespace leeway
