#pragma once
// Exit codes of Leeway's programs.
namespace leeway {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;   // the run, or a check of it
inline constexpr int kExitRefused = 2;  // nothing has run: a flag, a plan or a node is wrong
inline constexpr int kExitInterrupted = 130;

}  // namespace leeway
