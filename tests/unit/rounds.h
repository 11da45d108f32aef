/* rounds.h — how often randomised tests repeat: the given number in optimised builds, a quarter of it under a sanitizer, where each step
 * takes several times as long. */
#pragma once

#ifndef __has_feature
#define __has_feature(name) 0
#endif

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS(n) (((n) + 3) / 4)
#else
#define ROUNDS(n) (n)
#endif
