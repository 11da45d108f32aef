/* echo_front.h — a minimal front end that uses every call: the example of docs/front-end.md, tested by call_front.c.
 *
 * A frame is: u32 length of the whole frame · u32 stream · a BSON document; in an answer, rows follow: BSON documents one after the
 * other. Numbers are little-endian. A connection begins with {"do": "auth", "sasl": message}; then {"do": verb, "db": database, "in":
 * container, …}, with the verbs of echo_verbs.c. Answers are {"code": the error's name or "OK", "why": sentence, "retry_ms": …, "ru":
 * charge, "range": …, "lsn": …, …}; a client may send range and lsn with its next request, as what it has seen. */
#pragma once

#include "access/attempts.h"
#include "access/keys.h"
#include "call/call.h"
#include "net/frames.h"

/* The caller sets core, keys and attempts, which outlive the server. */
typedef struct echo_front {
    frames_front frames;
    call_core core;
    const access_keys *keys;
    access_attempts *attempts;
} echo_front;

MUST_CHECK err echo_listen(echo_front *e, net_server *server, uint16_t *port_out, char *why, size_t why_n);
