/* attempts.h — requests that were refused for who sent them (401): counted, and told in the log without a word of what they sent.
 *
 * An address that fails is told at once; then it is counted, and told again with its count once a minute while it goes on. Addresses of one
 * IPv6 network (/64) are one. There is room for some of them; the rest are told together, so that a flood from everywhere is as quiet as
 * one from somewhere. Any thread; costs a short lock, and only those who fail. */
#pragma once

#include "net/http.h"

typedef struct sql_attempts sql_attempts;

/* What was wrong with a request: no authorization, none that can be read, or one that is not right. */
typedef enum sql_attempt { ATTEMPT_MISSING, ATTEMPT_MALFORMED, ATTEMPT_WRONG, ATTEMPT_COUNT } sql_attempt;
extern const char *const sql_attempt_names[ATTEMPT_COUNT];

enum { ATTEMPTS_INTERVAL_S = 60, ATTEMPTS_ADDRESSES = 128 };

sql_attempts *sql_attempts_new(const clock_source *clock);
void sql_attempts_note(sql_attempts *a, const http_request *request, err code); /* others than 401 are passed over */
void sql_attempts_note_address(sql_attempts *a, const uint8_t address[static 16], err code);
void sql_attempts_tick(sql_attempts *a); /* tells those whose minute has passed: now and then, from one thread */
uint64_t sql_attempts_total(const sql_attempts *a, sql_attempt kind);
void sql_attempts_free(sql_attempts *a); /* and tells what was counted since */
