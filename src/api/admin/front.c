/* From a request to its endpoint and back: authorization, dispatch, and the queues. */
#include <stdlib.h>

#include "api/admin/admin_int.h"
#include "base/memory.h"
#include "base/request_log.h"
#include "doc/json.h"
#include "net/websocket.h"

enum { WAITING_MAX = 100 };

#define ARRAY_N(a) (sizeof(a) / sizeof *(a))
#define PREFIX "/_tesela/"
#define JSON "application/json"

static const admin_endpoint endpoints[] = {
    {PREFIX, VERB_GET, admin_overview, QUEUE_REPORTS, JSON},
    {PREFIX "ranges", VERB_GET, admin_ranges, QUEUE_REPORTS, JSON},
    {PREFIX "history", VERB_GET, admin_history, QUEUE_REPORTS, JSON},
    {PREFIX "hotkeys", VERB_GET, admin_hotkeys, QUEUE_HOTKEYS, JSON},
    {PREFIX "events", VERB_GET, admin_events, QUEUE_REPORTS, JSON},
    {PREFIX "store", VERB_GET, admin_store, QUEUE_REPORTS, JSON},
    {PREFIX "explain", VERB_POST, admin_explain, QUEUE_QUERIES, JSON},
    {PREFIX "price", VERB_POST, admin_price, QUEUE_QUERIES, JSON},
    {PREFIX "split", VERB_POST, admin_split, QUEUE_CHANGES, JSON},
    {PREFIX "merge", VERB_POST, admin_merge, QUEUE_CHANGES, JSON},
    {PREFIX "claim", VERB_POST, admin_claim, QUEUE_CHANGES, JSON},
    {PREFIX "freeze", VERB_POST, admin_freeze, QUEUE_CHANGES, JSON},
    {PREFIX "thaw", VERB_POST, admin_thaw, QUEUE_CHANGES, JSON},
    {PREFIX "switch", VERB_POST, admin_switch, QUEUE_CHANGES, JSON},
    {PREFIX "keys", VERB_GET, admin_keys_list, QUEUE_KEYS, JSON},
    {PREFIX "keys/regenerate", VERB_POST, admin_keys_regenerate, QUEUE_KEYS, JSON},
    {PREFIX "keys/reload", VERB_POST, admin_keys_reload, QUEUE_KEYS, JSON},
    {PREFIX "faults", VERB_GET, admin_faults_list, QUEUE_NONE, JSON},
    {PREFIX "faults", VERB_POST, admin_faults_add, QUEUE_NONE, JSON},
    {PREFIX "faults", VERB_DELETE, admin_faults_remove, QUEUE_NONE, JSON},
    {"/metrics", VERB_GET, admin_metrics, QUEUE_REPORTS, "text/plain; version=0.0.4; charset=utf-8"},
};

void admin_add_paths(buf *out) {
    buf_add_byte(out, '[');
    for (size_t i = 0; i < ARRAY_N(endpoints); i++) {
        bool again = i > 0 && strcmp(endpoints[i].path, endpoints[i - 1].path) == 0;
        if (!again) {
            buf_add(out, ",", i > 0);
            json_add_string(out, slice_str(endpoints[i].path));
        }
    }
    buf_add_byte(out, ']');
}

/* ---- answering ---- */

static void write_error(admin_request *q) {
    const err_entry *entry = err_lookup(q->code);
    slice sentence = q->op.detail_n ? slice_of(q->op.detail, q->op.detail_n) : slice_str(entry->sentence);
    q->status = entry->http_status;
    buf_clear(&q->body);
    buf_add_lit(&q->body, "{\"code\":");
    json_add_string(&q->body, slice_str(entry->word));
    buf_add_lit(&q->body, ",\"message\":");
    json_add_string(&q->body, bson_utf8_validate(sentence.p, sentence.n, false) ? sentence : slice_str(entry->sentence));
    buf_add_lit(&q->body, "}\n");
}

static void add_allowed(http_request *http) {
    buf *out = http_reply_fields(http);
    static const char *const verbs[] = {[VERB_GET] = "GET", [VERB_POST] = "POST", [VERB_DELETE] = "DELETE"};
    const char *between = "Allow: ";
    for (size_t i = 0; i < ARRAY_N(endpoints); i++) {
        if (slice_eq(http->path, slice_str(endpoints[i].path))) {
            buf_addf(out, "%s%s", between, verbs[endpoints[i].method]);
            between = ", ";
        }
    }
    buf_add_lit(out, "\r\n");
}

static void log_request(const admin_request *q) {
    int64_t us = clock_monotonic_us(net_loop_clock(q->http->client->loop)) - q->started_us;
    unsigned wanted = request_log_wants(us, false) & ~(unsigned)REQUEST_LOG_RECENT; /* the portal does not watch itself */
    if (wanted) {
        request_log_write(wanted, &(request_log_entry){.api = "admin",
                                                       .verb = q->http->verb,
                                                       .path = q->http->path,
                                                       .status = q->status,
                                                       .charge_ru = q->op.charge_ru,
                                                       .us = us,
                                                       .range = -1,
                                                       .activity = SLICE_LIT("-")});
    }
}

static void answer(admin_request *q) {
    http_request *http = q->http;
    if (q->code != OK) {
        write_error(q);
    }
    http_reply_start(http, q->status);
    http_reply_field(http, "Content-Type", slice_str(q->code == OK ? q->endpoint->type : JSON));
    buf_add_lit(http_reply_fields(http), "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
    if (q->status == 401) {
        buf_add_lit(http_reply_fields(http), "WWW-Authenticate: Bearer realm=\"tesela\"\r\n");
    }
    if (q->status == 405) {
        add_allowed(http);
    }
    buf_add_slice(http_reply_body(http), buf_view(&q->body));
    buf_free(&q->body);
    log_request(q);
    http_reply_end(http);
}

static void fail(admin_request *q, err code) {
    q->code = code;
    answer(q);
}

/* ---- queues ---- */

static void start(admin_request *q);

static void run_task(net_task *task) {
    start((admin_request *)((char *)task - offsetof(admin_request, task)));
}

/* Releases the queue and posts its next request to that request's loop, which starts it. */
static void leave_queue(admin_request *q) {
    admin *a = q->admin;
    lane *l = &a->lanes[q->endpoint->lane];
    pthread_mutex_lock(&a->lock);
    admin_request *next = a->stopping ? NULL : l->first;
    l->busy = next != NULL;
    if (next) {
        l->first = next->next;
        l->waiting--;
    }
    pthread_mutex_unlock(&a->lock);
    if (next) {
        next->task = (net_task){.run = run_task};
        net_post(next->http->client->loop, &next->task);
    }
}

/* *turn_out: the queue was free, start now; otherwise the request waits in it. False: too many are waiting. */
static bool enter_queue(admin_request *q, bool *turn_out) {
    admin *a = q->admin;
    lane *l = &a->lanes[q->endpoint->lane];
    bool fits = true;
    pthread_mutex_lock(&a->lock);
    *turn_out = !l->busy && !a->stopping;
    if (*turn_out) {
        l->busy = true;
    } else if (l->waiting == WAITING_MAX || a->stopping) {
        fits = false;
    } else {
        *(l->first ? &l->last->next : &l->first) = q;
        l->last = q;
        l->waiting++;
    }
    pthread_mutex_unlock(&a->lock);
    return fits;
}

bool admin_is_stopping(admin *a) {
    pthread_mutex_lock(&a->lock);
    bool stopping = a->stopping;
    pthread_mutex_unlock(&a->lock);
    return stopping;
}

void admin_enter_work(admin *a) {
    pthread_mutex_lock(&a->lock);
    a->working++;
    pthread_mutex_unlock(&a->lock);
}

void admin_leave_work(admin *a) {
    pthread_mutex_lock(&a->lock);
    if (--a->working == 0) {
        pthread_cond_broadcast(&a->idle);
    }
    pthread_mutex_unlock(&a->lock);
}

static void on_worker(call *c) {
    admin_request *q = (admin_request *)c;
    admin *a = q->admin;
    q->begun = true;
    c->code = admin_is_stopping(a) ? E_UNAVAILABLE : q->endpoint->run(q);
    admin_leave_work(a);
}

static void worker_done(call *c) {
    admin_request *q = (admin_request *)c;
    q->code = c->code;
    if (!q->begun) {
        admin_leave_work(q->admin);
    }
    leave_queue(q);
    answer(q);
}

static void start(admin_request *q) {
    admin *a = q->admin;
    admin_enter_work(a);
    call_init(&q->call, &a->core, q->http->client, &q->op, NULL, worker_done);
    call_work(&q->call, NET_ADMIN, on_worker);
}

static void run(admin_request *q) {
    bool turn;
    if (q->endpoint->lane == QUEUE_NONE) {
        q->code = q->endpoint->run(q);
        answer(q);
    } else if (!enter_queue(q, &turn)) {
        op_fail(&q->op, E_BUSY, "Too many requests of this kind are waiting. Please retry.");
        fail(q, E_BUSY);
    } else if (turn) {
        start(q);
    }
}

/* ---- authentication ---- */

static err check_bearer(admin_request *q, slice token, access_key *key_out) {
    if (!access_ring_find(access_keys_ring(q->admin->keys), slice_trim(token), key_out)) {
        return op_fail(&q->op, E_UNAUTHORIZED, "This is none of the account's keys.");
    }
    return OK;
}

/* Whether requests need no key: the server is local and has the public emulator key. Requests from web pages are rejected earlier
 * (net/guard.h). */
bool admin_is_open(const admin *a) {
    access_key unused;
    return a->local && access_ring_find(access_keys_ring(a->keys), slice_str(access_key_emulator), &unused);
}

static err authenticate(admin_request *q) {
    slice authorization = q->admin->authorization(q->http);
    slice scheme = slice_of(authorization.p, authorization.n < 7 ? authorization.n : 7);
    q->key = ACCESS_KEY_COUNT;
    if (authorization.n == 0 && admin_is_open(q->admin)) {
        return OK;
    }
    TRY(slice_eq_nocase(scheme, SLICE_LIT("Bearer "))
            ? check_bearer(q, slice_skip(authorization, 7), &q->key)
            : q->admin->check_signature(&q->op, access_keys_ring(q->admin->keys), q->http, &q->key));
    q->read_only = access_key_is_read_only(q->key);
    return OK;
}

static err check_change(admin_request *q) {
    bool reads = q->http->method == VERB_GET || (q->endpoint && q->endpoint->lane == QUEUE_QUERIES);
    return q->read_only && !reads ? op_fail(&q->op, E_FORBIDDEN, "Changes are not permitted with a read-only key.") : OK;
}

/* ---- requests ---- */

static err find_endpoint(admin_request *q) {
    err code = E_NOT_FOUND;
    for (size_t i = 0; i < ARRAY_N(endpoints); i++) {
        if (slice_eq(q->http->path, slice_str(endpoints[i].path))) {
            code = code == OK ? OK : E_METHOD;
            if (endpoints[i].method == q->http->method) {
                q->endpoint = &endpoints[i];
                code = OK;
            }
        }
    }
    return code == E_NOT_FOUND ? op_fail(&q->op, code, "There is no such path. GET " PREFIX " lists those there are.") : code;
}

static err prepare(admin_request *q) {
    err code = authenticate(q);
    if (code != OK) {
        uint8_t address[16];
        http_peer_address(q->http, address);
        access_attempts_note(q->admin->attempts, address, code);
        return code;
    }
    http_trust(q->http);
    err found = find_endpoint(q);
    TRY(check_change(q));
    TRY(found);
    return q->http->body_too_large ? E_TOO_LARGE : OK;
}

bool admin_handle(void *context, http_request *http) {
    if (!slice_starts(http->path, SLICE_LIT(PREFIX)) && !slice_eq(http->path, SLICE_LIT("/metrics"))) {
        return false;
    }
    if (websocket_wanted(http) && slice_eq(http->path, SLICE_LIT(PREFIX "live"))) {
        admin_live_accept(context, http);
        return true;
    }
    admin_request *q = arena_new(http->arena, admin_request);
    q->admin = context;
    q->http = http;
    q->status = 200;
    q->started_us = clock_monotonic_us(net_loop_clock(http->client->loop));
    q->body = buf_init(BUF_NO_LIMIT);
    op_init(&q->op, http->arena, net_loop_wall_ms(http->client->loop) / 1000);
    err code = prepare(q);
    code == OK ? run(q) : fail(q, code);
    return true;
}

/* ---- life ---- */

admin *admin_open(const admin_options *options) {
    admin *a = mem_zero(sizeof *a);
    a->core = (call_core){.account = options->account, .scripts = options->scripts};
    a->account = options->account;
    a->faults = options->faults;
    a->keys = options->keys;
    a->attempts = options->attempts;
    a->server = options->server;
    a->scripts = options->scripts;
    a->local = options->local;
    a->authorization = options->authorization;
    a->check_signature = options->check_signature;
    a->started_ms = clock_wall_ms(account_items(a->account)->clock);
    admin_live_init(a);
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->idle, NULL);
    return a;
}

void admin_stop(admin *a) {
    pthread_mutex_lock(&a->lock);
    a->stopping = true;
    while (a->working) {
        pthread_cond_wait(&a->idle, &a->lock);
    }
    pthread_mutex_unlock(&a->lock);
}

void admin_close(admin *a) {
    pthread_mutex_destroy(&a->lock);
    pthread_cond_destroy(&a->idle);
    free(a);
}
