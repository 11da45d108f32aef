/* Encoding shared by all answers: the fields of every answer, errors, the request log. */
#include <math.h>

#include "api/table/table_int.h"
#include "base/request_log.h"
#include "doc/json.h"
#include "net/delay.h"

enum { RETRY_MS_DEFAULT = 1000, HELD_BACK_MS_MAX = 250, CLIENT_ID_MAX = 1024 };

static const char constant_fields[] = "Cache-Control: no-cache\r\n"
                                      "Server: tesela/" TESELA_VERSION "\r\n"
                                      "X-Content-Type-Options: nosniff\r\n"
                                      "x-ms-version: " TABLE_REST_VERSION "\r\n";

static const char *const metadata_names[] = {"nometadata", "minimalmetadata", "fullmetadata"};

void table_make_guid(table_request *q, char text[static 37]) {
    char bytes[EDM_GUID_BYTES];
    buf out = {.p = text, .cap = 37, .max = 37};
    random_bytes(net_loop_random(q->http->client->loop), bytes, sizeof bytes);
    bytes[6] = (char)((bytes[6] & 0x0F) | 0x40); /* a random UUID, RFC 4122 */
    bytes[8] = (char)((bytes[8] & 0x3F) | 0x80);
    edm_guid_write(&out, slice_of(bytes, sizeof bytes));
    text[EDM_GUID_TEXT] = '\0';
}

buf *table_fields(table_request *q) {
    return http_reply_fields(q->http);
}

/* Two decimals; printf would take a tenth of a small answer's time. */
static void add_charge(buf *out, double ru) {
    uint64_t hundredths = (uint64_t)llround(ru * 100);
    char cents[] = {'.', (char)('0' + hundredths / 10 % 10), (char)('0' + hundredths % 10)};
    buf_add_u64(out, hundredths / 100);
    buf_add(out, cents, sizeof cents);
}

void table_start_bare(table_request *q, unsigned status) {
    slice client = table_get(q, TABLE_FIELD_CLIENT_ID);
    http_reply_start(q->http, status);
    q->status = (uint16_t)status;
    buf *out = table_fields(q);
    buf_add_lit(out, constant_fields);
    buf_add_lit(out, "x-ms-request-id: ");
    buf_add(out, q->id, EDM_GUID_TEXT);
    buf_add_lit(out, "\r\nx-ms-request-charge: ");
    add_charge(out, q->op.charge_ru);
    buf_add_lit(out, "\r\n");
    if (client.n && client.n <= CLIENT_ID_MAX) {
        http_reply_field(q->http, "x-ms-client-request-id", client);
    }
    if (q->fault) {
        buf_addf(out, "x-tesela-fault: %u\r\n", q->fault);
    }
}

void table_start(table_request *q, unsigned status) {
    table_start_bare(q, status);
    if (table_get(q, TABLE_FIELD_ORIGIN).n) {
        table_add_cors(q);
    }
}

buf *table_xml(table_request *q) {
    buf_add_lit(table_fields(q), "Content-Type: application/xml\r\n");
    return http_reply_body(q->http);
}

buf *table_json(table_request *q, entity_metadata metadata) {
    buf *out = table_fields(q);
    buf_add_lit(out, "Content-Type: application/json;odata=");
    buf_add_slice(out, slice_str(metadata_names[metadata]));
    buf_add_lit(out, ";streaming=true;charset=utf-8\r\n");
    return http_reply_body(q->http);
}

void table_add_etag(buf *out, slice body, uint64_t version, uint32_t ts) {
    buf_add_lit(out, "ETag: ");
    entity_etag(out, body, version, ts);
    buf_add_lit(out, "\r\n");
}

static void log_request(const table_request *q) {
    int64_t us = clock_monotonic_us(net_loop_clock(q->http->client->loop)) - q->started_us;
    unsigned wanted = request_log_wants(us, q->status >= 400);
    if (wanted) {
        request_log_write(wanted, &(request_log_entry){.api = "table",
                                                       .verb = q->http->verb,
                                                       .path = q->http->path,
                                                       .status = q->status,
                                                       .charge_ru = q->op.charge_ru,
                                                       .us = us,
                                                       .failed = q->status >= 400,
                                                       .range = -1,
                                                       .activity = slice_of(q->id, EDM_GUID_TEXT)});
    }
}

void table_end(table_request *q) {
    if (request_log_may_want(q->status >= 400)) {
        log_request(q);
    }
    access_reach_end(&q->reach);
    if (q->container) {
        container_give(q->container);
    }
    buf_free(&q->rows);
    http_reply_end(q->http);
}

void table_empty(table_request *q, unsigned status) {
    table_start(q, status);
    http_reply_body(q->http);
    table_end(q);
}

/* ---- errors ---- */

table_refusal table_refusal_for(const table_request *q, err code) {
    return q->error != TABLE_FINE && code == E_BAD_REQUEST ? *table_refusal_of(q->error) : table_refusal_of_core(code);
}

/* A message may repeat bytes that the client sent; these need not be UTF-8. */
static void add_readable(buf *out, slice text) {
    bool valid = bson_utf8_validate(text.p, text.n, true);
    for (size_t i = 0; i < text.n; i++) {
        buf_add_byte(out, valid || (unsigned char)text.p[i] < 0x80 ? text.p[i] : '?');
    }
}

void table_write_error(buf *out, const table_request *q, err code) {
    table_refusal refusal = table_refusal_for(q, code);
    buf message = buf_init(BUF_NO_LIMIT), now = buf_init(BUF_NO_LIMIT);
    if (q->failed) { /* SDKs read the index of the failed operation here */
        buf_addf(&message, "%zu:", q->failed - 1);
    }
    add_readable(&message, q->op.detail_n ? slice_of(q->op.detail, q->op.detail_n) : slice_str(refusal.sentence));
    edm_time_write(&now, net_loop_wall_ms(q->http->client->loop) * EDM_TICKS_PER_MS);
    buf_addf(&message, "\nRequestId:%s\nTime:%.*s", q->id, (int)now.n, now.p);
    buf_addf(out, "{\"odata.error\":{\"code\":\"%s\",\"message\":{\"lang\":\"en-US\",\"value\":", refusal.code);
    json_add_string(out, buf_view(&message));
    buf_add_lit(out, "}}}");
    buf_free(&message);
    buf_free(&now);
}

static void answer_error(table_request *q, err code) {
    table_refusal refusal = table_refusal_for(q, code);
    table_start(q, refusal.status);
    buf *out = table_fields(q);
    buf_addf(out, "x-ms-error-code: %s\r\n", refusal.code);
    if (refusal.status == 429 || refusal.status == 503) {
        uint32_t ms = q->op.retry_after_ms ? q->op.retry_after_ms : RETRY_MS_DEFAULT;
        buf_addf(out, "Retry-After: %u\r\nx-ms-retry-after-ms: %u\r\n", (ms + 999) / 1000, ms);
    }
    table_write_error(table_json(q, ENTITY_MINIMAL_METADATA), q, code);
    table_end(q);
}

typedef struct held_back {
    net_delay delay; /* must be first */
    table_request *q;
    err code;
} held_back;

static void answer_held_back(net_delay *delay) {
    held_back *h = (held_back *)delay;
    answer_error(h->q, h->code);
}

/* If the client retries before its retry-after time, its next rejection is delayed: a rejection costs the loop as much as a point read. */
void table_fail(table_request *q, err code) {
    bool waits = code == E_THROTTLED || code == E_TENANT_BUSY || code == E_WORK_BUSY;
    unsigned ms = waits ? http_told_to_wait(q->http, q->op.retry_after_ms) : 0;
    ms = ms < HELD_BACK_MS_MAX ? ms : HELD_BACK_MS_MAX;
    if (ms == 0) {
        answer_error(q, code);
        return;
    }
    held_back *h = arena_new(q->http->arena, held_back);
    *h = (held_back){.q = q, .code = code};
    q->op.retry_after_ms = q->op.retry_after_ms > ms ? q->op.retry_after_ms - ms : 1;
    net_delay_start(q->http->client->loop, &h->delay, ms, answer_held_back);
}
