/* rounds.h — how often a test repeats what it chooses at random: as often as it says in the optimised build, a quarter of that under a
 * sanitizer, where a step takes several times as long. */
#pragma once

#ifndef __has_feature
#define __has_feature(name) 0
#endif

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS(n) (((n) + 3) / 4)
#else
#define ROUNDS(n) (n)
#endif
