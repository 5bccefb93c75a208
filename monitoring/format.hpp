#pragma once
// Formats numbers for people.
#include <cstdint>
#include <string>

namespace leeway {

/// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);
/// 1 and "pull" as "1 pull", 2,000 as "2,000 pulls".
std::string counted(std::uint64_t number, const char* thing);
/// `number` with `digits` digits after the decimal point.
std::string fixed(double number, int digits);
/// 0.8854 as "88.54%".
std::string percent(double share);
/// 0.051 as "+5.1%".
std::string signed_percent(double share);
/// "1.5 GB instead of 6.0 GB, 4 times fewer". Empty if no codec has changed the bytes.
std::string codec_text(std::uint64_t bytes, std::uint64_t bytes_without_codec);
/// Seconds as "850 ms", "12.3 s", "3 min 20 s" or "2 h 5 min".
std::string duration(double seconds);

}  // namespace leeway
