#include "policies/optimizer/parameter_groups.hpp"

#include <catch2/catch.hpp>

using namespace leeway;

TEST_CASE("the first group that matches a parameter decides its factors") {
  plan::Optimizer optimizer;
  optimizer.groups = {{"0.*, 1.bias", 0.5, 2}, {"*.bias", 3, 0}, {"?.gain", 1, 0.5}};
  using Factors = ParameterFactors;
  CHECK(factors_of(optimizer, "0.weight", false) == Factors{0.5, 2});
  CHECK(factors_of(optimizer, "0.bias", true) == Factors{0.5, 2});
  CHECK(factors_of(optimizer, "1.bias", true) == Factors{0.5, 2});
  CHECK(factors_of(optimizer, "2.bias", true) == Factors{3, 0});
  CHECK(factors_of(optimizer, "3.gain", true) == Factors{1, 0.5});
  CHECK(factors_of(optimizer, "30.gain", true) == Factors{1, 1});
  CHECK(factors_of(optimizer, "10.weight", false) == Factors{1, 1});
}

TEST_CASE("biases and norms can be without weight decay, whatever their group") {
  plan::Optimizer optimizer{.no_decay_on_biases = true};
  optimizer.groups = {{"0.*", 2, 3}};
  CHECK(factors_of(optimizer, "0.bias", true) == ParameterFactors{2, 0});
  CHECK(factors_of(optimizer, "0.weight", false) == ParameterFactors{2, 3});
  CHECK(factors_of(optimizer, "1.bias", true) == ParameterFactors{1, 0});
}
