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

struct Preprocessing;
class Vocabulary;

/// Interface of the built-in data sets and of those that a scenario program defines. All members
/// are const and may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// Samples, numbered from 0.
  virtual std::int64_t size() const = 0;
  /// False for a description of data that are elsewhere, which cannot be gathered.
  virtual bool has_contents() const { return true; }
  /// Shape of one sample, for example 1x28x28.
  virtual Shape sample_shape() const = 0;
  /// Classes of the labels 0..classes()-1, or 0 if the data has numeric targets.
  virtual int classes() const = 0;
  /// Labels of a sample, for data with classes: one, or one per position of a sequence.
  virtual std::int64_t label_count() const { return 1; }
  /// Numbers to predict for a sample; 0 for data with classes.
  virtual std::int64_t target_count() const = 0;

  /// For text: the vocabulary that the tokens in samples and labels index; otherwise null.
  virtual std::shared_ptr<const Vocabulary> vocabulary() const { return nullptr; }
  /// Value of an empty pixel in a gathered image; augmentation fills shifted images with it.
  virtual float background() const { return 0; }

  /// Writes the samples with these numbers, in this order.
  /// x: (samples.size(), sample_shape()). labels: (samples.size(), label_count()), written iff
  /// classes() > 0, otherwise may be null. targets: (samples.size(), target_count()), written iff
  /// target_count() > 0, otherwise may be null.
  virtual void gather(std::span<const std::int64_t> samples, float* x, std::int32_t* labels,
                      float* targets) const = 0;
  /// Writes only labels or targets, for the last stage of a pipeline, which reads no samples. The
  /// default gathers one whole sample at a time and discards its x.
  virtual void gather_labels(std::span<const std::int64_t> samples, std::int32_t* labels,
                             float* targets) const;
};

struct TrainTest {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
  /// How raw input becomes these samples. Null for data that a program makes, and for data that
  /// another process sent.
  std::shared_ptr<const Preprocessing> preprocessing = nullptr;
};

/// Makes the data set of a program, with the run's seed; called once per run.
using DataFactory = std::function<Expected<TrainTest>(std::uint64_t seed)>;

/// Registers a data set for plan::CustomData{name}; a later registration of the same name replaces
/// the factory. Thread-safe.
void register_data(const std::string& name, DataFactory factory);

}  // namespace leeway
