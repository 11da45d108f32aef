#include "client/retry.h"

enum {
    GONE_TOTAL_MS = 30000,
    WITH_TOTAL_MS = 30000,
    SESSION_TOTAL_MS = 5000,
    UNAVAILABLE_RETRIES = 10,
    UNCONNECTED_RETRIES = 10,
    FORBIDDEN_RETRIES = 10,
    TOLD_WAIT_MAX_MS = 5000,
};

static const retry_answer GIVE_UP = {.again = false};

/* first, then twice as long each time, up to max. */
static uint32_t backoff(int tries, uint32_t first, uint32_t max) {
    uint64_t wait = tries < 20 ? (uint64_t)first << tries : max;
    return wait < max ? (uint32_t)wait : max;
}

/* Counts a wait against its total; false if that is spent. */
static bool spend(uint32_t *spent, uint32_t total, uint32_t *wait) {
    if (*spent >= total) {
        return false;
    }
    if (*wait > total - *spent) {
        *wait = total - *spent;
    }
    *spent += *wait ? *wait : 1;
    return true;
}

static retry_answer after_throttle(retry_state *s, const retry_limits *limits, const retry_fact *f) {
    uint32_t wait = f->retry_after_ms;
    if (s->throttled >= limits->throttle_retries || wait > limits->throttle_wait_ms - s->throttled_ms) {
        return GIVE_UP;
    }
    s->throttled++;
    s->throttled_ms += wait;
    return (retry_answer){.again = true, .wait_ms = wait};
}

/* The first retry is immediate: usually the ranges have changed, and reading them again is all that is needed. */
static retry_answer after_gone(retry_state *s, const retry_fact *f) {
    uint32_t wait = s->gone == 0 ? 0 : backoff(s->gone - 1, 50, 5000);
    if (f->routed && (f->substatus == 1002 || f->substatus == 1000)) {
        return (retry_answer){.refresh_ranges = true};
    }
    if (!spend(&s->gone_ms, GONE_TOTAL_MS, &wait)) {
        return GIVE_UP;
    }
    s->gone++;
    return (retry_answer){.again = true, .wait_ms = wait, .refresh_ranges = true};
}

bool client__retry_gone_spent(const retry_state *s) {
    return s->gone_ms >= GONE_TOTAL_MS;
}

static retry_answer after_conflict(retry_state *s) {
    uint32_t wait = backoff(s->with, 10, 1000);
    if (!spend(&s->with_ms, WITH_TOTAL_MS, &wait)) {
        return GIVE_UP;
    }
    s->with++;
    return (retry_answer){.again = true, .wait_ms = wait};
}

/* The second half of the tries goes to another region, which may be further ahead. */
static retry_answer after_session(retry_state *s) {
    uint32_t wait = backoff(s->session, 5, 500);
    if (!spend(&s->session_ms, SESSION_TOTAL_MS, &wait)) {
        return GIVE_UP;
    }
    s->session++;
    return (retry_answer){.again = true, .wait_ms = wait, .next_endpoint = s->session == 3, .refresh_ranges = s->session == 1};
}

static retry_answer counted(int *tries, int max, uint32_t told_ms, bool refresh_account) {
    if (*tries >= max) {
        return GIVE_UP;
    }
    uint32_t wait = !told_ms ? backoff(*tries, 50, 1000) : told_ms < TOLD_WAIT_MAX_MS ? told_ms : TOLD_WAIT_MAX_MS;
    ++*tries;
    return (retry_answer){.again = true, .wait_ms = wait, .next_endpoint = true, .refresh_account = refresh_account};
}

static retry_answer after_answer(retry_state *s, const retry_limits *limits, const retry_fact *f) {
    switch (f->status) {
    case 429:
        return after_throttle(s, limits, f);
    case 410:
        return after_gone(s, f);
    case 449:
        return after_conflict(s);
    case 404:
        return f->substatus == 1002 ? after_session(s) : GIVE_UP;
    case 403:
        return f->substatus == 3 ? counted(&s->forbidden, FORBIDDEN_RETRIES, 0, true) : GIVE_UP;
    case 408:
        return f->read ? counted(&s->unavailable, UNAVAILABLE_RETRIES / 2, 0, false) : GIVE_UP;
    case 503:
        return counted(&s->unavailable, UNAVAILABLE_RETRIES, f->retry_after_ms, false);
    default:
        return GIVE_UP;
    }
}

retry_answer client__retry_decide(retry_state *s, const retry_limits *limits, const retry_fact *f) {
    switch (f->broken) {
    case RETRY_ANSWERED:
        return after_answer(s, limits, f);
    case RETRY_UNSENT:
        return counted(&s->unconnected, UNCONNECTED_RETRIES, 0, false);
    case RETRY_BROKEN:
        return f->read ? counted(&s->unconnected, UNCONNECTED_RETRIES, 0, false) : GIVE_UP;
    case RETRY_TIMEOUT:
        return f->read ? counted(&s->unavailable, 2, 0, false) : GIVE_UP;
    case RETRY_NEVER:
        break;
    }
    return GIVE_UP;
}
