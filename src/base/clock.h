/* clock.h — clocks behind a pointer, so that expiry, skew and timeouts can be tested without waiting. */
#pragma once

#include <stdint.h>

typedef struct clock_source clock_source;
struct clock_source {
    int64_t (*wall_ms)(const clock_source *);      /* since 1970, UTC */
    int64_t (*monotonic_us)(const clock_source *); /* never goes back */
};

extern const clock_source clock_system;

static inline int64_t clock_wall_ms(const clock_source *c) {
    return c->wall_ms(c);
}

static inline int64_t clock_monotonic_us(const clock_source *c) {
    return c->monotonic_us(c);
}

/* A timestamp as items store it: whole seconds in 32 bits, up to 2106-02-07T06:28:15Z. Later times are clamped. */
static inline uint32_t clock_ts(int64_t s) {
    return s < 0 ? 0 : s > UINT32_MAX ? UINT32_MAX : (uint32_t)s;
}

/* A clock that moves only by clock_manual_advance: for tests and simulations. */
typedef struct clock_manual {
    clock_source source;
    int64_t wall_ms;
    int64_t monotonic_us;
} clock_manual;

void clock_manual_init(clock_manual *c, int64_t wall_ms);
void clock_manual_advance(clock_manual *c, int64_t ms);
