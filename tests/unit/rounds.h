/* rounds.h — how often randomised tests repeat: the given number in optimised builds, a quarter of it under a sanitizer, where each step
 * takes several times as long. Tests of many items choose their number by SANITIZED. */
#pragma once

#ifndef __has_feature
#define __has_feature(name) 0
#endif

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define ROUNDS(n) (SANITIZED ? ((n) + 3) / 4 : (n))
