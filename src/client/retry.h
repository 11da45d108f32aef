/* retry.h — whether a failed request is sent again, when, and where: the rules of the official SDKs, as a function of what happened.
 *
 * Pure: time comes in as a parameter. One retry_state per logical request. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef enum retry_broken { /* how an attempt without an answer ended */
                            RETRY_ANSWERED,
                            RETRY_UNSENT,  /* no connection: the server cannot have received the request */
                            RETRY_BROKEN,  /* it may have */
                            RETRY_TIMEOUT, /* it may have, and took too long */
                            RETRY_NEVER,   /* sending it again does not help: the certificate is not trusted, the response is too long */
} retry_broken;

typedef struct retry_fact {
    retry_broken broken;
    int status, substatus;   /* RETRY_ANSWERED */
    uint32_t retry_after_ms; /* 0: the server did not tell */
    bool read;               /* the request changes nothing */
    bool routed;             /* it names a range: after 410 the caller must choose others */
} retry_fact;

typedef struct retry_limits {
    int throttle_retries;
    uint32_t throttle_wait_ms;
} retry_limits;

typedef struct retry_state {
    int throttled, gone, with, session, unavailable, unconnected, forbidden;
    uint32_t throttled_ms, gone_ms, with_ms, session_ms;
} retry_state;

typedef struct retry_answer {
    bool again;
    uint32_t wait_ms;
    bool next_endpoint; /* try another region */
    bool refresh_account;
    bool refresh_ranges; /* the container's ranges, or its name, are stale */
} retry_answer;

/* Whether the time for 410 is spent: then choosing ranges again does not help. */
bool client__retry_gone_spent(const retry_state *state);

retry_answer client__retry_decide(retry_state *state, const retry_limits *limits, const retry_fact *fact);
