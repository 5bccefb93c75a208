#include "models/datasets/test_share.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/rng.hpp"
#include "core/text.hpp"
#include "models/datasets/streams.hpp"

namespace leeway {

Expected<TestShare> draw_test_share(std::int64_t rows, double share, std::uint64_t seed,
                                    const std::string& key) {
  if (!(share > 0 && share < 1))
    return Error{concat(key, ".test_share: ", share,
                        " is not allowed; give a share between 0 and 1, or separate test data")};
  const std::int64_t count = std::llround(share * static_cast<double>(rows));
  if (count == 0 || count == rows)
    return Error{concat(key, ".test_share: ", share, " of ", rows, " samples leaves ",
                        count == 0 ? "no test samples" : "no training samples",
                        "; change the share, or give separate test data")};
  std::vector<std::size_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng::stream(seed, streams::kTestShare).shuffle(std::span(order));
  const auto middle = order.begin() + count;
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  return TestShare{{middle, order.end()}, {order.begin(), middle}};
}

}  // namespace leeway
