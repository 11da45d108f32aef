#include "base/clock.h"

#include <time.h>

static int64_t system_wall_ms(const clock_source *c) {
    (void)c;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t system_monotonic_us(const clock_source *c) {
    (void)c;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

const clock_source clock_system = {system_wall_ms, system_monotonic_us};

static int64_t manual_wall_ms(const clock_source *c) {
    return ((const clock_manual *)c)->wall_ms;
}

static int64_t manual_monotonic_us(const clock_source *c) {
    return ((const clock_manual *)c)->monotonic_us;
}

void clock_manual_init(clock_manual *c, int64_t wall_ms) {
    *c = (clock_manual){{manual_wall_ms, manual_monotonic_us}, wall_ms, 0};
}

void clock_manual_advance(clock_manual *c, int64_t ms) {
    c->wall_ms += ms;
    c->monotonic_us += ms * 1000;
}
