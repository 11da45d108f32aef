/* attempts.h — failed authentications: counted per address, and logged without a word of what was sent.
 *
 * An address that fails is told at once; then it is counted, and told again with its count once a minute while it goes on. Addresses of one
 * IPv6 network (/64) are one. There is room for some of them; the rest are told together, so that a flood from everywhere is as quiet as
 * one from somewhere. Any thread; costs a short lock, and only those who fail. */
#pragma once

#include "base/clock.h"
#include "base/err.h"

typedef struct access_attempts access_attempts;

/* What was wrong with a request: no authorization, none that can be read, or one that is not right. */
typedef enum access_attempt { ATTEMPT_MISSING, ATTEMPT_MALFORMED, ATTEMPT_WRONG, ATTEMPT_COUNT } access_attempt;
extern const char *const access_attempt_names[ATTEMPT_COUNT];

enum { ATTEMPTS_INTERVAL_S = 60, ATTEMPTS_ADDRESSES = 128 };

access_attempts *access_attempts_new(const clock_source *clock);
void access_attempts_note(access_attempts *a, const uint8_t address[static 16],
                          err code);           /* others than these three kinds are passed over */
void access_attempts_tick(access_attempts *a); /* tells those whose minute has passed: now and then, from one thread */
uint64_t access_attempts_total(const access_attempts *a, access_attempt kind);
void access_attempts_free(access_attempts *a); /* and tells what was counted since */
