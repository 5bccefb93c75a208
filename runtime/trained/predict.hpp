#pragma once
// Predicts the labels of samples in a file with a trained model.
#include <functional>
#include <string>

#include "runtime/trained/model.hpp"

namespace leeway {

/// Receives the predictions line by line, without line ends.
using LineSink = std::function<Status(const std::string& line)>;

/// Predicts the samples of a table or of a file of images, in their order, as CSV. With classes, a
/// line has the most probable class and the probability of each class, under the header
/// `predicted,CLASS,CLASS,...`; otherwise it has the prediction in the unit of the data, under
/// `predicted`, or several under `predicted 1`, `predicted 2`, ... A table may lack the label.
/// Errors: files that cannot be read or do not fit the model, outputs that are not finite, and
/// errors of `write`.
Status predict(const TrainedModel& trained, const std::string& path, const LineSink& write);

}  // namespace leeway
