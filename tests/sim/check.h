/* check.h — what must hold at every moment of the simulation. A failure says what, where and with which seed, and ends the program. */
#pragma once

#include <stdint.h>

void check_seed(uint64_t seed); /* to be told when something fails */

#define CHECK(condition, ...) ((condition) ? (void)check_count() : check_fail(__FILE__, __LINE__, #condition, __VA_ARGS__))

void check_count(void);
uint64_t check_total(void); /* checks that held */

_Noreturn void check_fail(const char *file, int line, const char *condition, const char *format, ...) __attribute__((format(printf, 4, 5)));
