/* wire.h — Gremlin Server's protocol: requests, responses, and values in the formats that drivers use.
 *
 * A request is one WebSocket message: a byte with the length of the mime type, the mime type, the payload. A text message has no such
 * prefix and is JSON. A response has the format of its request, without a prefix.
 *
 * Formats: GraphSON 1 (what the service returns, whatever was asked for), 2 untyped, 2, 3, and GraphBinary 1. All of them are read into
 * the same values (value.h) and traversals (traversal.h); numbers without a type become int, long or double. Reading is bounded by
 * the limits, and by the operation's budget. */
#pragma once

#include "gremlin/traversal.h"

typedef enum gremlin_format {
    GREMLIN_GRAPHSON_1,
    GREMLIN_GRAPHSON_2_UNTYPED,
    GREMLIN_GRAPHSON_2,
    GREMLIN_GRAPHSON_3,
    GREMLIN_GRAPHBINARY_1
} gremlin_format;

/* "application/vnd.gremlin-v2.0+json" and others. application/json is GraphSON 3, as in Gremlin Server. */
bool gremlin_format_of(slice mime, gremlin_format *format_out);
const char *gremlin_format_mime(gremlin_format format);

/* ---- requests ---- */

typedef struct gremlin_request {
    gremlin_format format; /* of the request, and so of its responses */
    uint8_t id[16];
    bool has_id;        /* false: it could not be read */
    slice op;           /* "eval", "bytecode", "authentication", "close" … */
    slice processor;    /* "", "traversal", "session" */
    gremlin_value args; /* a map, as the client sent it; what follows is from it */

    slice script;                       /* eval: the text; empty: none */
    const gremlin_traversal *traversal; /* bytecode; NULL: none */
    gremlin_value bindings;             /* a map; null: none */
    slice language;                     /* empty: gremlin-groovy */
    slice sasl, sasl_mechanism;         /* authentication; base64, or the bytes themselves */
    slice session;
    slice user_agent;
    int64_t batch_size; /* 0: not given */
    int64_t timeout_ms; /* evaluationTimeout; -1: not given */
    bool bare;          /* materializeProperties: tokens */
    bool texts;         /* results of scripts are wanted as texts: the mime type of the Gremlin console */
} gremlin_request;

/* Reads a whole message. On E_BAD_REQUEST (the message is malformed: 498) or E_BAD_QUERY (its bytecode is refused: 597) the operation's
 * detail explains it, and `request_out` has what was read so far: the format, and mostly the id. */
MUST_CHECK err gremlin_request_read(op *o, const gremlin_limits *limits, slice message, bool is_text, gremlin_request *request_out);

/* ---- responses ---- */

/* Results in the response's format, one after the other. */
typedef struct gremlin_results {
    gremlin_format format;
    bool traversers; /* answers bytecode: each result is a traverser with its bulk */
    bool texts;      /* each result is its text, as Java's toString() has it */
    buf bytes;
    size_t n;
} gremlin_results;

static inline gremlin_results gremlin_results_init(gremlin_format format, bool traversers, budget *b) {
    return (gremlin_results){.format = format, .traversers = traversers, .bytes = buf_init_counted(BUF_NO_LIMIT, b)};
}
/* A result that occurs `bulk` times. False: this format has no form for it (599), or the budget is exceeded; nothing was added. */
MUST_CHECK bool gremlin_results_add(gremlin_results *r, gremlin_value v, int64_t bulk);
void gremlin_results_clear(gremlin_results *r); /* for the next chunk */
void gremlin_results_free(gremlin_results *r);

/* Appends a response. `attributes`: a map from strings to strings and numbers, or null. `results` NULL: the data are null, as for 204, 407
 * and errors. */
void gremlin_response_write(buf *out, const gremlin_request *request, int code, slice message, gremlin_value attributes,
                            const gremlin_results *results);

/* ---- values by themselves ---- */

/* JSON text or GraphBinary bytes of one value; the whole slice. */
MUST_CHECK err gremlin_value_read(op *o, const gremlin_limits *limits, gremlin_format format, slice bytes, gremlin_value *value_out);
/* False: there is no form for it. Elements that are not loaded are written as references. */
bool gremlin_value_write(buf *out, gremlin_format format, gremlin_value v);
