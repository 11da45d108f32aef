/* request_log.h — one line of the log for each request, or for some of them; and one for each that was slow, with what took its time.
 *
 *   … info  access: GET /dbs/shop/colls/orders/docs/7 api=sql status=200 substatus=0 ru=1.00 ms=0.21 range=0 activity=0a1b…
 *   … warn  slow: POST /dbs/shop/colls/orders/docs api=sql … ms=812.40 … rows=10 loaded=5000 …
 *
 * For all protocols: a front end asks request_log_wants when it answers, which costs a load and a branch while both logs are off, and then
 * fills an entry. Names of resources may be in an entry; authorization, tokens, query texts and bodies may not. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

typedef struct request_log_rules {
    unsigned one_of; /* a line for one of so many requests; 0: for none */
    int64_t slow_us; /* one for each that took so long; 0: none */
} request_log_rules;

void request_log_set(const request_log_rules *rules); /* at the start, before there are requests */

/* Which of the two logs want a request that took this long. */
typedef enum request_log_kind { REQUEST_LOG_NONE = 0, REQUEST_LOG_ACCESS = 1, REQUEST_LOG_SLOW = 2 } request_log_kind;

extern bool request_log_is_on; /* request_log_set's */
unsigned request_log_choose(int64_t us);
static inline unsigned request_log_wants(int64_t us) {
    return request_log_is_on ? request_log_choose(us) : REQUEST_LOG_NONE;
}

/* Does the slow log want it: is it worth to say why? */
bool request_log_is_slow(int64_t us);
bool request_log_explains(void); /* the slow log is on: measure what an explanation needs */

typedef struct request_log_entry {
    const char *api; /* "sql", "mongo", … */
    slice verb, path;
    unsigned status, substatus;
    double charge_ru;
    int64_t us;
    int64_t range; /* below 0: none */
    slice activity;
    slice explanation; /* of a slow one: "name=number name=number"; empty: none */
} request_log_entry;

void request_log_write(unsigned wanted, const request_log_entry *entry);
