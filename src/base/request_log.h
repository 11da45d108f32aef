/* request_log.h — logs a line for each request, or for a sample of them, and a line for each slow request, with details of what took long.
 *
 *   … info  access: GET /dbs/shop/colls/orders/docs/7 api=sql status=200 substatus=0 ru=1.00 ms=0.21 range=0 activity=0a1b…
 *   … warn  slow: POST /dbs/shop/colls/orders/docs api=sql … ms=812.40 … rows=10 loaded=5000 …
 *
 * For all protocols. A front end calls request_log_wants when it answers, which costs a load and a branch while both logs are off, and then
 * fills in an entry. An entry may contain names of resources, but no authorization, tokens, query texts or bodies. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

typedef struct request_log_rules {
    unsigned one_of; /* one line per this many requests; 0: none */
    int64_t slow_us; /* a line for each request that took at least this long; 0: none */
} request_log_rules;

void request_log_set(const request_log_rules *rules); /* at start-up, before there are requests */

/* Which logs should record a request. */
typedef enum request_log_kind {
    REQUEST_LOG_NONE = 0,
    REQUEST_LOG_ACCESS = 1,
    REQUEST_LOG_SLOW = 2,
    REQUEST_LOG_RECENT = 4, /* the last requests, in memory (request_recent.h) */
} request_log_kind;

extern bool request_log_is_on;          /* set by request_log_set */
bool request_log_may_want(bool failed); /* cheap, for callers that must compute the time first */
unsigned request_log_choose(int64_t us, bool failed);
static inline unsigned request_log_wants(int64_t us, bool failed) {
    return request_log_may_want(failed) ? request_log_choose(us, failed) : REQUEST_LOG_NONE;
}

/* Whether the slow log records a request that took this long, so that an explanation is needed. */
bool request_log_is_slow(int64_t us);
bool request_log_explains(void); /* whether the slow log is on, so that figures for an explanation must be collected */

typedef struct request_log_entry {
    const char *api; /* "sql", "mongo", … */
    slice verb, path;
    unsigned status, substatus;
    double charge_ru;
    int64_t us;
    int64_t range; /* negative: none */
    slice activity;
    bool failed;
    slice explanation; /* for a slow request: "name=number name=number"; empty: none */
} request_log_entry;

void request_log_write(unsigned wanted, const request_log_entry *entry);

/* Makes client input safe to show: keeps visible ASCII except quotes, and shows everything else as '?'. "-" if it is empty. */
void request_log_plain(char *into, size_t into_n, slice text);
