/* From an answer of the SQL API to a frame. Java decodes a token by the type that it knows for the id: types must be exact. */
#include <stdlib.h>

#include "api/direct/carry.h"
#include "base/memory.h"
#include "base/percent.h"

enum {
    PAYLOAD_PRESENT = 0x00,
    LSN = 0x13,
    QUORUM_ACKED_LSN = 0x1A,
    CURRENT_WRITE_QUORUM = 0x1E,
    CURRENT_REPLICA_SET_SIZE = 0x1F,
    RANGE_ID = 0x21,
    XP_ROLE = 0x26,
    GLOBAL_COMMITTED_LSN = 0x29,
    NUMBER_OF_READ_REGIONS = 0x30,
    TRANSPORT_REQUEST_ID = 0x35,
    LOCAL_LSN = 0x3A,
    QUORUM_ACKED_LOCAL_LSN = 0x3B,
    SESSION_TOKEN = 0x3E,
};

/* ---- the table ---- */

/* How a text's bytes are written. */
typedef enum form {
    AS_IS,
    DECODED, /* percent-encoded in HTTP, and not here */
    ESCAPED, /* without ';', behind which SDKs cut continuations off, as those of an older server */
} form;

typedef struct rule {
    slice field; /* in lower case */
    uint16_t id;
    uint8_t type;
    form form;
} rule;

static const rule rules[] = {
    {SLICE_LIT("x-ms-continuation"), 0x03, DIRECT_TEXT16, ESCAPED},
    {SLICE_LIT("etag"), 0x04, DIRECT_TEXT16, AS_IS},
    {SLICE_LIT("x-ms-retry-after-ms"), 0x0C, DIRECT_U32, AS_IS},
    {SLICE_LIT("x-ms-resource-quota"), 0x0E, DIRECT_TEXT16, AS_IS},
    {SLICE_LIT("x-ms-resource-usage"), 0x0F, DIRECT_TEXT16, AS_IS},
    {SLICE_LIT("x-ms-schemaversion"), 0x10, DIRECT_TEXT8, AS_IS},
    {SLICE_LIT("x-ms-item-count"), 0x14, DIRECT_U32, AS_IS},
    {SLICE_LIT("x-ms-request-charge"), 0x15, DIRECT_DOUBLE, AS_IS},
    {SLICE_LIT("x-ms-alt-content-path"), 0x17, DIRECT_TEXT16, DECODED},
    {SLICE_LIT("x-ms-content-path"), 0x18, DIRECT_TEXT16, AS_IS},
    {SLICE_LIT("x-ms-substatus"), 0x1C, DIRECT_U32, AS_IS},
    {SLICE_LIT("x-ms-documentdb-collection-index-transformation-progress"), 0x1D, DIRECT_U32, AS_IS},
    {SLICE_LIT("x-ms-documentdb-script-log-results"), 0x25, DIRECT_TEXT16, AS_IS},
    {SLICE_LIT("x-ms-documentdb-query-metrics"), 0x28, DIRECT_TEXT16, AS_IS},
    {SLICE_LIT("x-ms-item-lsn"), 0x32, DIRECT_I64, AS_IS},
    {SLICE_LIT("x-ms-cosmos-item-llsn"), 0x3C, DIRECT_I64, AS_IS},
    {SLICE_LIT("x-ms-cosmos-index-utilization"), 0x44, DIRECT_TEXT16, AS_IS},
    {SLICE_LIT("x-ms-cosmos-query-execution-info"), 0x45, DIRECT_TEXT16, AS_IS},
    {SLICE_LIT("x-ms-request-duration-ms"), 0x51, DIRECT_DOUBLE, AS_IS},
};

static const rule *find_rule(slice field) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (rules[i].field.n == field.n && slice_eq_nocase(rules[i].field, field)) {
            return &rules[i];
        }
    }
    return NULL;
}

/* ---- values ---- */

static double number_of(slice text) {
    char copy[32];
    size_t n = text.n < sizeof copy - 1 ? text.n : sizeof copy - 1;
    memcpy(copy, text.p, n);
    copy[n] = '\0';
    return strtod(copy, NULL);
}

static void add_decoded(buf *out, const rule *r, slice value) {
    char *text = mem_alloc(value.n + 1);
    size_t n = 0;
    bool good = percent_decode(value, text, &n);
    direct_add_text(out, r->id, r->type, good ? slice_of(text, n) : value);
    free(text);
}

static void add_escaped(buf *out, const rule *r, slice value) {
    buf text = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] == ';' || value.p[i] == '%') {
            buf_add_byte(&text, '%');
            buf_add_hex(&text, slice_of(&value.p[i], 1));
        } else {
            buf_add_byte(&text, value.p[i]);
        }
    }
    direct_add_text(out, r->id, r->type, buf_view(&text));
    buf_free(&text);
}

static void add_value(buf *out, const rule *r, slice value) {
    if (r->form == DECODED) {
        add_decoded(out, r, value);
    } else if (r->form == ESCAPED) {
        add_escaped(out, r, value);
    } else if (r->type == DIRECT_DOUBLE) {
        direct_add_double(out, r->id, number_of(value));
    } else if (r->type == DIRECT_TEXT8 || r->type == DIRECT_TEXT16) {
        direct_add_text(out, r->id, r->type, value);
    } else {
        direct_add_number(out, r->id, r->type, (uint64_t)number_of(value));
    }
}

/* ---- where the answer stands ---- */

/* Of which range it tells, and how far that has come. */
typedef struct place {
    slice range;
    slice session; /* without the range before it */
    uint64_t lsn;
} place;

/* "3:-1#7": the SDK puts the range's id before the token again. */
static void read_session(place *p, slice value) {
    const char *colon = memchr(value.p, ':', value.n), *hash = memchr(value.p, '#', value.n);
    if (!colon || !hash || hash < colon) {
        return;
    }
    size_t at = (size_t)(colon - value.p);
    uint64_t lsn;
    p->range = p->range.n ? p->range : slice_of(value.p, at);
    p->session = slice_skip(value, at + 1);
    p->lsn = slice_to_u64(slice_skip(value, (size_t)(hash - value.p) + 1), &lsn) && lsn > p->lsn ? lsn : p->lsn;
}

static void read_place(place *p, slice name, slice value) {
    if (slice_eq_nocase(name, SLICE_LIT("x-ms-session-token"))) {
        read_session(p, value);
    } else if (slice_eq_nocase(name, SLICE_LIT("x-ms-documentdb-partitionkeyrangeid"))) {
        p->range = value;
    }
}

/* An lsn of 0 is none to SDKs: their quorum reads would wait for another. */
static void add_place(buf *out, const place *p) {
    static const uint16_t lsns[] = {LSN, QUORUM_ACKED_LSN, GLOBAL_COMMITTED_LSN, LOCAL_LSN, QUORUM_ACKED_LOCAL_LSN};
    for (size_t i = 0; i < sizeof lsns / sizeof *lsns; i++) {
        direct_add_number(out, lsns[i], DIRECT_I64, p->lsn ? p->lsn : 1);
    }
    if (p->session.n) {
        direct_add_text(out, RANGE_ID, DIRECT_TEXT16, p->range);
        direct_add_text(out, SESSION_TOKEN, DIRECT_TEXT16, p->session);
    }
}

/* ---- the frame ---- */

static bool next_line(slice *rest, slice *name_out, slice *value_out) {
    const char *end = rest->n ? memchr(rest->p, '\r', rest->n) : NULL;
    if (!end) {
        return false;
    }
    slice line = slice_of(rest->p, (size_t)(end - rest->p));
    const char *colon = memchr(line.p, ':', line.n);
    size_t at = colon ? (size_t)(colon - line.p) : line.n;
    *name_out = slice_of(line.p, at);
    *value_out = slice_trim(slice_skip(line, at + 1));
    *rest = slice_skip(*rest, line.n + 2);
    return true;
}

static void add_fields(buf *out, slice lines) {
    slice name, value;
    place p = {0};
    while (next_line(&lines, &name, &value)) {
        const rule *r = find_rule(name);
        if (r) {
            add_value(out, r, value);
        } else {
            read_place(&p, name, value);
        }
    }
    add_place(out, &p);
}

/* As the account says that it is replicated: 4 replicas, of which 3 make a write. No other region is read, so none is waited for. */
static void add_replicas(buf *out) {
    direct_add_number(out, CURRENT_WRITE_QUORUM, DIRECT_U32, 3);
    direct_add_number(out, CURRENT_REPLICA_SET_SIZE, DIRECT_U32, 4);
    direct_add_number(out, NUMBER_OF_READ_REGIONS, DIRECT_U32, 0);
    direct_add_number(out, XP_ROLE, DIRECT_U32, 1);
}

void direct_answer(buf *out, const direct_request *q, const http_answer *answer) {
    size_t at = out->n;
    direct_frame_begin(out, answer->status, q->activity);
    direct_add_number(out, PAYLOAD_PRESENT, DIRECT_BYTE, answer->body.n > 0);
    add_fields(out, answer->fields);
    add_replicas(out);
    direct_add_number(out, TRANSPORT_REQUEST_ID, DIRECT_U32, q->id);
    direct_frame_end(out, at);
    if (answer->body.n) {
        direct_put(out, answer->body.n, 4);
        buf_add_slice(out, answer->body);
    }
}
