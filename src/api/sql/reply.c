/* Encoding shared by all answers: the service's fields, its error JSON, items and feeds as JSON. */
#include <math.h>
#include <stdio.h>

#include "api/sql/authorization.h"
#include "api/sql/binary.h"
#include "api/sql/recording.h"
#include "api/sql/triggers.h"
#include "base/recording.h"
#include "base/request_log.h"
#include "item/foreign.h"
#include "net/delay.h"
#include "throughput/charge.h"

enum { SCRIPTS_RETRY_MS = 200, MEMORY_RETRY_MS = 1000, FROZEN_RETRY_MS = 500, HELD_BACK_MS_MAX = 250 };

#define SDK_NAME "Microsoft.Azure.Documents.Common/2.14.0"

/* Sent with every answer. The version numbers are those of the service at the time its answers were recorded. */
static const char constant_fields[] = "Cache-Control: no-store, no-cache\r\n"
                                      "Pragma: no-cache\r\n"
                                      "Content-Type: application/json\r\n"
                                      "Server: tesela/" TESELA_VERSION "\r\n"
                                      "x-ms-gatewayversion: version=2.14.0\r\n"
                                      "x-ms-serviceversion: version=2.14.0.0\r\n";

static const char replica_fields[] = "x-ms-schemaversion: 1.19\r\n"
                                     "x-ms-current-replica-set-size: 4\r\n"
                                     "x-ms-current-write-quorum: 3\r\n"
                                     "x-ms-number-of-read-regions: 0\r\n"
                                     "x-ms-xp-role: 1\r\n";

void sql_write_charge(buf *out, double ru) {
    uint64_t cents = (uint64_t)llround(ru * 100);
    buf_add_u64(out, cents / 100);
    if (cents % 100) {
        buf_add_byte(out, '.');
        buf_add_byte(out, (char)('0' + cents % 100 / 10));
        if (cents % 10) {
            buf_add_byte(out, (char)('0' + cents % 10));
        }
    }
}

buf *sql_fields(sql_request *q) {
    return http_reply_fields(q->http);
}

void sql_field_text(sql_request *q, const char *name, slice value) {
    http_reply_field(q->http, name, value);
}

int64_t sql_elapsed_us(const sql_request *q) {
    return clock_monotonic_us(net_loop_clock(q->http->client->loop)) - q->started_us;
}

void sql_start(sql_request *q, unsigned status) {
    http_reply_start(q->http, status);
    q->status = (uint16_t)status;
    buf *out = sql_fields(q);
    buf_add_lit(out, constant_fields);
    buf_add_lit(out, "x-ms-activity-id: ");
    buf_add(out, q->activity, 36);
    buf_add_lit(out, "\r\nx-ms-request-charge: ");
    sql_write_charge(out, q->op.charge_ru);
    buf_add_lit(out, "\r\nx-ms-request-duration-ms: ");
    int64_t us = sql_elapsed_us(q);
    buf_add_u64(out, (uint64_t)us / 1000);
    buf_add_byte(out, '.');
    buf_add_byte(out, (char)('0' + us / 100 % 10));
    buf_add_byte(out, (char)('0' + us / 10 % 10));
    buf_add_lit(out, "\r\n");
}

rid sql_container_rid(const container *c) {
    rid r = {.n = sizeof c->rid};
    memcpy(r.bytes, c->rid, sizeof c->rid);
    return r;
}

/* Header fields carry names percent-encoded: everything except plain ASCII is escaped, as in a URL. */
static void add_name(buf *out, slice name) {
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c > 0x20 && c < 0x7F && c != '%') {
            buf_add_byte(out, (char)c);
        } else {
            buf_add_byte(out, '%');
            buf_add_hex(out, slice_of(&name.p[i], 1));
        }
    }
}

void sql_add_database_path(sql_request *q, const database *d) {
    buf *out = sql_fields(q);
    buf_add_lit(out, "x-ms-alt-content-path: dbs/");
    add_name(out, slice_str(d->id));
    buf_add_lit(out, "\r\n");
}

/* The owner of what the answer is about: of a container its database, of everything in it the container. SDKs make links from it. */
void sql_add_container_paths(sql_request *q, const container *c) {
    buf *out = sql_fields(q);
    rid r = sql_container_rid(c);
    buf_add_lit(out, "x-ms-alt-content-path: dbs/");
    add_name(out, c->database_id);
    if (q->route.kind == SQL_CONTAINER || q->route.kind == SQL_CONTAINERS) {
        r = rid_database_of(&r);
    } else {
        buf_add_lit(out, "/colls/");
        add_name(out, c->id);
    }
    buf_add_lit(out, "\r\nx-ms-content-path: ");
    rid_write(out, &r);
    buf_add_lit(out, "\r\n");
}

static void add_number(buf *out, const char *name, uint64_t value) {
    buf_add(out, name, strlen(name));
    buf_add_u64(out, value);
    buf_add_lit(out, "\r\n");
}

void sql_add_range(sql_request *q, item_mark mark) {
    buf *out = sql_fields(q);
    q->range = (int64_t)mark.range_id + 1;
    buf_add_lit(out, replica_fields);
    add_number(out, "x-ms-documentdb-partitionkeyrangeid: ", mark.range_id);
    add_number(out, "x-ms-cosmos-physical-partition-id: ", mark.segment);
    add_number(out, "lsn: ", mark.lsn);
    add_number(out, "x-ms-cosmos-llsn: ", mark.lsn);
    add_number(out, "x-ms-global-committed-lsn: ", mark.lsn);
    buf_add_lit(out, "x-ms-session-token: ");
    buf_add_u64(out, mark.range_id);
    buf_add_lit(out, ":-1#");
    buf_add_u64(out, mark.lsn);
    buf_add_lit(out, "\r\n");
    sql_add_container_paths(q, q->container);
}

void sql_add_account(sql_request *q) {
    add_number(sql_fields(q), "x-ms-session-token: 0:-1#", account_lsn(q->front->account));
}

void sql_add_etag(sql_request *q, uint64_t version, uint32_t ts) {
    char etag[ITEM_ETAG_BYTES + 1];
    buf *out = sql_fields(q);
    item_etag(etag, version, ts);
    buf_add_lit(out, "etag: ");
    buf_add(out, etag, ITEM_ETAG_BYTES);
    buf_add_lit(out, "\r\n");
}

/* In KB. The quota is a physical partition's, as on the service; that of a fixed container is its own limit. */
void sql_add_usage(sql_request *q, range_usage usage) {
    if (!sql_access_covers_container(q)) {
        return;
    }
    buf *out = sql_fields(q);
    const account_rules *rules = account_get_rules(q->front->account);
    uint64_t quota = (q->container->key.n ? rules->range_bytes : rules->fixed_bytes) / 1024;
    buf_add_lit(out, "x-ms-resource-quota: documentSize=10240;documentsSize=");
    buf_add_u64(out, quota);
    buf_add_lit(out, ";documentsCount=-1;collectionSize=");
    buf_add_u64(out, quota);
    buf_add_lit(out, ";\r\nx-ms-resource-usage: documentSize=0;documentsSize=");
    buf_add_u64(out, usage.bytes / 1024);
    buf_add_lit(out, ";documentsCount=");
    buf_add_u64(out, usage.items);
    buf_add_lit(out, ";collectionSize=");
    buf_add_u64(out, (usage.bytes + usage.index_bytes) / 1024);
    buf_add_lit(out, ";\r\n");
}

buf *sql_start_body(sql_request *q) {
    return http_reply_body(q->http);
}

static void log_request(const sql_request *q) {
    int64_t us = sql_elapsed_us(q);
    unsigned wanted = request_log_wants(us, q->status >= 400);
    if (wanted) {
        request_log_write(wanted, &(request_log_entry){.api = "sql",
                                                       .verb = q->http->verb,
                                                       .path = q->http->path,
                                                       .status = q->status,
                                                       .substatus = q->substatus,
                                                       .charge_ru = q->op.charge_ru,
                                                       .us = us,
                                                       .failed = q->status >= 400,
                                                       .range = q->range - 1,
                                                       .activity = slice_of(q->activity, 36),
                                                       .explanation = q->explanation});
    }
}

void sql_end(sql_request *q) {
    if (request_log_may_want(q->status >= 400)) {
        log_request(q);
    }
    if (recording_is_on) {
        sql_record(q);
    }
    call_commit_give(&q->commit);
    sql_triggers_give(q->triggers);
    database_give(q->database);
    user_give(q->user);
    access_reach_end(&q->reach);
    if (q->container) {
        container_give(q->container);
    }
    sql_has(q, FIELD_SUPPORTED_FORMATS) || sql_has(q, FIELD_CONTENT_FORMAT) ? sql_binary_end(q) : http_reply_end(q->http);
}

void sql_add_session_token(sql_request *q) {
    q->container ? sql_add_range(q, range_mark_first(q->container)) : sql_add_account(q);
}

void sql_not_modified(sql_request *q, uint64_t version, uint32_t ts) {
    sql_start(q, 304);
    sql_add_etag(q, version, ts);
    sql_add_session_token(q);
    sql_start_body(q);
    sql_end(q);
}

void sql_deleted(sql_request *q) {
    op_charge(&q->op, CHARGE_METADATA_DELETE);
    if (sql_change_code(q) != OK) {
        sql_fail(q, sql_change_code(q));
        return;
    }
    sql_start(q, 204);
    sql_add_account(q);
    sql_start_body(q);
    sql_end(q);
}

/* ---- errors ---- */

/* SDKs use the session token of errors too. An unauthenticated client gets none. */
static void add_session(sql_request *q, const err_entry *entry) {
    const container *c = q->container;
    if (c && c->space) {
        sql_add_range(q, q->marked ? q->mark : range_mark_first(c));
    } else if (entry->http_status != 401) {
        sql_add_account(q);
    }
}

/* The service wraps errors of its store as {"Errors":[…]} in the message; errors of its gateway are plain text. */
static bool is_of_gateway(unsigned status) {
    return status == 401 || status == 400 || status == 403 || status == 405;
}

/* An error message may repeat bytes that the client sent; these need not be UTF-8. */
static slice readable(arena *a, slice sentence) {
    if (bson_utf8_validate(sentence.p, sentence.n, false)) {
        return sentence;
    }
    char *copy = arena_text(a, sentence);
    for (size_t i = 0; i < sentence.n; i++) {
        copy[i] = (unsigned char)copy[i] >= 0x80 ? '?' : copy[i];
    }
    return slice_of(copy, sentence.n);
}

static void answer_error(sql_request *q, err code) {
    const err_entry *entry = err_lookup(code);
    arena *a = q->http->arena;
    slice sentence = q->op.detail_n ? readable(a, slice_of(q->op.detail, q->op.detail_n)) : slice_str(entry->sentence);
    slice message;
    if (is_of_gateway(entry->http_status)) {
        message = arena_printf(a, "%.*s\r\nActivityId: %s, " SDK_NAME, (int)sentence.n, sentence.p, q->activity);
    } else {
        buf quoted = buf_init(BUF_NO_LIMIT);
        json_add_string(&quoted, sentence);
        message = arena_printf(a, "Message: {\"Errors\":[%.*s]}\r\nActivityId: %s, Request URI: %.*s, RequestStats: , SDK: " SDK_NAME,
                               (int)quoted.n, quoted.p, q->activity, (int)(q->http->path.n < 1024 ? q->http->path.n : 1024),
                               q->http->path.p ? q->http->path.p : "");
        buf_free(&quoted);
    }
    if (code == E_SCRIPTS_BUSY || code == E_BUSY_MEMORY || code == E_FROZEN) {
        q->op.retry_after_ms = code == E_SCRIPTS_BUSY ? SCRIPTS_RETRY_MS : code == E_FROZEN ? FROZEN_RETRY_MS : MEMORY_RETRY_MS;
    }
    sql_start(q, entry->http_status);
    q->substatus = q->substatus ? q->substatus : entry->http_substatus;
    if (q->substatus) {
        add_number(sql_fields(q), "x-ms-substatus: ", q->substatus);
    }
    if (code == E_THROTTLED || q->op.retry_after_ms) {
        add_number(sql_fields(q), "x-ms-retry-after-ms: ", q->op.retry_after_ms);
    }
    if (q->fault) {
        add_number(sql_fields(q), "x-tesela-fault: ", q->fault);
    }
    add_session(q, entry);
    if (code == E_UNAUTHORIZED || code == E_NO_AUTHORIZATION || code == E_BAD_AUTHORIZATION) {
        buf_add_lit(sql_fields(q), "www-authenticate: Basic realm=\"\"\r\n");
    }
    buf *out = sql_start_body(q);
    if (entry->http_status != 304) {
        buf_add_lit(out, "{\"code\":");
        json_add_string(out, slice_str(entry->word));
        buf_add_lit(out, ",\"message\":");
        json_add_string(out, message);
        buf_add_byte(out, '}');
    }
    sql_end(q);
}

/* ---- clients that ignore retry-after ---- */

typedef struct held_back {
    net_delay delay; /* must be first */
    sql_request *q;
    void (*answer)(sql_request *q, err code);
    err code;
} held_back;

static void answer_held_back(net_delay *delay) {
    held_back *h = (held_back *)delay;
    h->answer(h->q, h->code);
}

void sql_refuse(sql_request *q, err code, void (*answer)(sql_request *q, err code)) {
    unsigned ms = http_told_to_wait(q->http, q->op.retry_after_ms);
    ms = ms < HELD_BACK_MS_MAX ? ms : HELD_BACK_MS_MAX;
    if (ms == 0) {
        answer(q, code);
        return;
    }
    held_back *h = arena_new(q->http->arena, held_back);
    *h = (held_back){.q = q, .answer = answer, .code = code};
    q->op.retry_after_ms = q->op.retry_after_ms > ms ? q->op.retry_after_ms - ms : 1;
    net_delay_start(q->http->client->loop, &h->delay, ms, answer_held_back);
}

void sql_fail(sql_request *q, err code) {
    bool waits = code == E_THROTTLED || code == E_TENANT_BUSY || code == E_WORK_BUSY;
    waits ? sql_refuse(q, code, answer_error) : answer_error(q, code);
}

/* ---- items and feeds ---- */

void sql_write_item(buf *out, const container *c, slice body, const item_head *head) {
    char etag[ITEM_ETAG_BYTES + 1];
    rid in = sql_container_rid(c), database = rid_database_of(&in), item = rid_child(in, RID_DOCUMENT, head->number);
    const item_owner *owner = item_owner_shows_ids(c);
    json_from_bson_open(out, body);
    if (owner) {
        item_add_shown_id(out, owner, body);
    }
    buf_add_lit(out, ",\"_rid\":\"");
    rid_write(out, &item);
    buf_add_lit(out, "\",\"_self\":\"dbs/");
    rid_write(out, &database);
    buf_add_lit(out, "/colls/");
    rid_write(out, &in);
    buf_add_lit(out, "/docs/");
    rid_write(out, &item);
    buf_add_lit(out, "/\",\"_etag\":\"\\");
    item_etag(etag, item_version(head), head->ts);
    buf_add(out, etag, ITEM_ETAG_BYTES - 1);
    buf_add_lit(out, "\\\"\",\"_attachments\":\"attachments/\",\"_ts\":");
    buf_add_u64(out, head->ts);
    buf_add_byte(out, '}');
}

void sql_feed_open(buf *out, const rid *parent, const char *name) {
    buf_add_lit(out, "{\"_rid\":\"");
    rid_write(out, parent);
    buf_add_lit(out, "\",\"");
    buf_add(out, name, strlen(name));
    buf_add_lit(out, "\":[");
}

void sql_feed_close(buf *out, size_t count) {
    buf_add_lit(out, "],\"_count\":");
    buf_add_u64(out, count);
    buf_add_byte(out, '}');
}

err sql_continuation_number(sql_request *q, uint32_t *after_out) {
    slice text = sql_get(q, FIELD_CONTINUATION);
    uint64_t value = 0;
    if (text.n && (!slice_to_u64(text, &value) || value > UINT32_MAX)) {
        return E_BAD_CONTINUATION;
    }
    *after_out = (uint32_t)value;
    return OK;
}

void sql_add_continuation_number(sql_request *q, uint32_t last) {
    add_number(sql_fields(q), "x-ms-continuation: ", last);
}
