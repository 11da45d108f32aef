#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seed;
static uint64_t total;

void check_seed(uint64_t seed_used) {
    seed = seed_used;
}

void check_count(void) {
    total++;
}

uint64_t check_total(void) {
    return total;
}

void check_fail(const char *file, int line, const char *condition, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fprintf(stderr, "%s:%d: with --seed %" PRIu64 ": %s does not hold: ", file, line, seed, condition);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}
