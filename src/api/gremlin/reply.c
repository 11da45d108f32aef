/* Responses: statuses, the service's attributes, chunks of results, and the end of a request. */
#include "api/gremlin/graph.h"
#include "base/request_log.h"

/* ---- attributes ---- */

static gremlin_value retry_after(arena *a, uint32_t ms) { /* a TimeSpan of .NET */
    return gremlin_string(arena_printf(a, "%02u:%02u:%02u.%07u", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, ms % 1000 * 10000));
}

static void add(arena *a, gremlin_pairs *pairs, const char *name, gremlin_value v) {
    gremlin_pairs_add(a, pairs, gremlin_string(slice_str(name)), v);
}

/* Charge and time of this response, and of the request so far. */
static gremlin_value attributes_of(gremlin_eval *q, int ms_status) {
    arena *a = q->frame->arena;
    int64_t now = clock_monotonic_us(net_loop_clock(q->frame->client.loop));
    gremlin_pairs pairs = {0};
    add(a, &pairs, "x-ms-status-code", gremlin_int(ms_status));
    add(a, &pairs, "x-ms-activity-id", gremlin_string(slice_of(q->activity, 36)));
    add(a, &pairs, "x-ms-request-charge", gremlin_double(q->op.charge_ru - q->sent_ru));
    add(a, &pairs, "x-ms-total-request-charge", gremlin_double(q->op.charge_ru));
    add(a, &pairs, "x-ms-server-time-ms", gremlin_double((double)(now - q->sent_us) / 1000));
    add(a, &pairs, "x-ms-total-server-time-ms", gremlin_double((double)(now - q->started_us) / 1000));
    if (ms_status == 429) {
        add(a, &pairs, "x-ms-retry-after-ms", retry_after(a, q->op.retry_after_ms ? q->op.retry_after_ms : 10));
    }
    q->sent_ru = q->op.charge_ru;
    q->sent_us = now;
    return gremlin_pairs_map(a, &pairs, GREMLIN_MAP);
}

/* ---- ending ---- */

static void log_request(const gremlin_eval *q, int status) {
    int64_t us = clock_monotonic_us(net_loop_clock(q->frame->client.loop)) - q->started_us;
    bool failed = status >= 400 && status != 407;
    unsigned wanted = request_log_wants(us, failed);
    if (wanted) {
        slice path = arena_printf(q->frame->arena, "/dbs/%s/colls/%s", q->conn->database, q->conn->container);
        request_log_write(wanted, &(request_log_entry){.api = "gremlin",
                                                       .verb = q->request.op.n ? q->request.op : SLICE_LIT("?"),
                                                       .path = path,
                                                       .status = (unsigned)status,
                                                       .charge_ru = q->op.charge_ru,
                                                       .us = us,
                                                       .activity = slice_of(q->activity, 36),
                                                       .failed = failed,
                                                       .range = q->call.any.marked ? (int64_t)q->call.any.mark.range_id : -1});
    }
}

/* Everything that the request holds is released before its frame, which has its memory. */
void gremlin_release(gremlin_eval *q) {
    gremlin_atomic_end(q);
    if (q->graph) {
        gremlin_graph_free(q->graph);
    }
    if (q->run) {
        gremlin_run_free(q->run);
    }
    gremlin_results_free(&q->results);
    if (q->container) {
        container_give(q->container);
    }
    frames_end(q->frame);
}

/* A request that ends within a turn is released after it. */
static void finish(gremlin_eval *q, int status) {
    log_request(q, status);
    if (q->going) {
        q->over = true;
    } else {
        gremlin_release(q);
    }
}

static void write_status(gremlin_eval *q, int status, int ms_status, slice message, const gremlin_results *results) {
    q->frame->text = false;
    gremlin_response_write(frames_out(q->frame), &q->request, status, message, attributes_of(q, ms_status), results);
}

void gremlin_reply_status(gremlin_eval *q, int status, int ms_status, slice message) {
    write_status(q, status, ms_status, message, NULL);
    finish(q, status);
}

void gremlin_discard(gremlin_eval *q) {
    finish(q, 0);
}

void gremlin_reply_part(gremlin_eval *q, void (*go_on)(frames_request *frame)) {
    q->frame->context = q;
    write_status(q, 206, 200, SLICE_EMPTY, &q->results);
    gremlin_results_clear(&q->results);
    q->sent = true;
    frames_flush(q->frame, go_on);
}

void gremlin_reply_end(gremlin_eval *q) {
    bool nothing = q->results.n == 0 && !q->sent;
    write_status(q, nothing ? 204 : 200, 200, SLICE_EMPTY, nothing ? NULL : &q->results);
    finish(q, nothing ? 204 : 200);
}

void gremlin_fail(gremlin_eval *q, err code) {
    const err_entry *entry = err_lookup(code);
    int status = q->op.protocol_code ? q->op.protocol_code : entry->gremlin_status;
    bool malformed = q->malformed == E_BAD_REQUEST;
    slice message = q->op.detail_n ? slice_of(q->op.detail, q->op.detail_n) : slice_str(entry->sentence);
    gremlin_reply_status(q, malformed ? 498 : status, entry->gremlin_ms_status, message);
}
