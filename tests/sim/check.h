/* check.h — checks during the simulation. A failure prints the condition, the place and the seed, and ends the program. */
#pragma once

#include <stdint.h>

void check_seed(uint64_t seed); /* printed if a check fails */

#define CHECK(condition, ...) ((condition) ? (void)check_count() : check_fail(__FILE__, __LINE__, #condition, __VA_ARGS__))

void check_count(void);
uint64_t check_total(void); /* checks passed so far */

_Noreturn void check_fail(const char *file, int line, const char *condition, const char *format, ...) __attribute__((format(printf, 4, 5)));
