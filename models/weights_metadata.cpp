#include "models/weights_metadata.hpp"

namespace leeway {

Metadata weights_metadata(const Plan& plan, const Preprocessing* preprocessing) {
  Plan of_model;
  of_model.name = plan.name;
  of_model.seed = plan.seed;
  of_model.data = plan.data;
  of_model.model = plan.model;
  of_model.loss = plan.loss;
  Metadata metadata{{"format", "pt"}, {"leeway", plan.name}, {kPlanKey, to_json(of_model)}};
  if (preprocessing) metadata[kPreprocessingKey] = preprocessing->to_json();
  return metadata;
}

}  // namespace leeway
