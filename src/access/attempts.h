/* attempts.h — failed authentications: counted per address, and logged without anything that the client sent.
 *
 * The first failure of an address is logged at once; further ones are counted, and logged with their count once a minute. Addresses of one
 * IPv6 network (/64) count as one. The table holds ATTEMPTS_ADDRESSES of them; all others share one entry, so that a flood from many
 * addresses does not flood the log. Any thread; takes a short lock, and only on failures. */
#pragma once

#include "base/clock.h"
#include "base/err.h"

typedef struct access_attempts access_attempts;

/* Why authentication failed: no authorization, a malformed one, or a wrong one. */
typedef enum access_attempt { ATTEMPT_MISSING, ATTEMPT_MALFORMED, ATTEMPT_WRONG, ATTEMPT_COUNT } access_attempt;
extern const char *const access_attempt_names[ATTEMPT_COUNT];

enum { ATTEMPTS_INTERVAL_S = 60, ATTEMPTS_ADDRESSES = 128 };

access_attempts *access_attempts_new(const clock_source *clock);
void access_attempts_note(access_attempts *a, const uint8_t address[static 16], err code); /* codes of other kinds are ignored */
void access_attempts_tick(access_attempts *a); /* logs the addresses whose minute has passed; call now and then, from one thread */
uint64_t access_attempts_total(const access_attempts *a, access_attempt kind);
void access_attempts_free(access_attempts *a); /* logs the remaining counts first */
