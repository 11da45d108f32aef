/* trace.h — traces of requests that asked for one, as the tables system_traces.sessions and events show them.
 *
 * The newest CASS_TRACES are kept, in memory: a client asks for its trace right after the answer. Each has the request, its times and its
 * charge, and a bounded beginning of the statement. Any thread. */
#pragma once

#include "base/err.h"
#include "base/slice.h"

enum { CASS_TRACES = 512, CASS_TRACE_TEXT_MAX = 1000 };

typedef struct cass_trace {
    uint8_t id[16];     /* a timeuuid; all zero: the request is not traced */
    int64_t started_us; /* wall clock, since 1970 */
    uint32_t decoded_us, duration_us;
    uint8_t client[16]; /* its address, as IPv6 */
    uint16_t consistency;
    int32_t page_size;
    size_t message_bytes;
    double charge_ru;
    int32_t status; /* 0, or the code of the error */
    const char *verb;
    uint16_t text_n;
    char text[CASS_TRACE_TEXT_MAX];
} cass_trace;

typedef struct cass_traces cass_traces;

cass_traces *cass_traces_new(void);
void cass_traces_free(cass_traces *t);

void cass_traces_keep(cass_traces *t, const cass_trace *trace);

/* Copies those that are kept, oldest first. `into` has room for CASS_TRACES. */
size_t cass_traces_copy(cass_traces *t, cass_trace *into);
