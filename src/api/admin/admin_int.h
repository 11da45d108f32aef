/* admin_int.h — within api/admin: the state of one request. */
#pragma once

#include "account/report.h"
#include "api/admin/admin.h"
#include "call/call.h"
#include "doc/path.h"
#include "item/hot.h"
#include "item/range_info.h"
#include "net/frames.h"

typedef struct admin_request admin_request;

/* Writes the answer's body, and the status if it is not 200. Runs on a worker unless the endpoint is quick. */
typedef err (*admin_handler)(admin_request *q);

/* Queues: requests of one queue run one after the other. */
typedef enum admin_queue { QUEUE_NONE, QUEUE_REPORTS, QUEUE_HOTKEYS, QUEUE_QUERIES, QUEUE_CHANGES, QUEUE_KEYS, QUEUE_COUNT } admin_queue;

typedef struct admin_endpoint {
    const char *path;
    http_method method;
    admin_handler run;
    admin_queue lane; /* QUEUE_NONE: quick, runs on the loop */
    const char *type;
} admin_endpoint;

struct admin_request {
    call call; /* must be first */
    net_task task;
    admin_request *next; /* next in its queue */
    admin *admin;
    http_request *http;
    const admin_endpoint *endpoint;
    access_key key; /* key that authenticated it; ACCESS_KEY_COUNT: none was needed */
    bool read_only; /* its key is read-only */
    bool begun;     /* a worker has started it */
    op op;
    err code;
    unsigned status;
    int64_t started_us;
    buf body;
};

typedef struct lane {
    bool busy;
    unsigned waiting;
    admin_request *first, *last;
} lane;

/* Seedings that exceeded the time limit of an answer; the next request continues them (QUEUE_HOTKEYS: one at a time). */
enum { SEEDINGS_MAX = 64 };
typedef struct unfinished {
    uint32_t container, range;
    hot_seeding seeding;
} unfinished;

struct admin {
    call_core core;
    account *account;
    faults *faults;
    access_keys *keys;
    access_attempts *attempts;
    net_server *server;
    script_pool *scripts;
    bool local;
    slice (*authorization)(const http_request *request); /* as in admin_options */
    err (*check_signature)(op *o, const access_ring *ring, const http_request *request, access_key *key_out);
    int64_t started_ms;

    pthread_mutex_t lock;
    pthread_cond_t idle;
    lane lanes[QUEUE_COUNT];
    unsigned working; /* requests that were handed to workers and have not ended */
    bool stopping;

    unfinished seedings[SEEDINGS_MAX];
    size_t seedings_n;

    frames_front live;  /* live.c */
    atomic_uint live_n; /* its open connections */
};

/* ---- the state of the whole (front.c) ---- */

bool admin_is_open(const admin *a); /* requests need no key */
bool admin_is_stopping(admin *a);
void admin_enter_work(admin *a); /* before work is handed to a worker: admin_stop waits until it has left */
void admin_leave_work(admin *a);

/* ---- the stream of /_tesela/live ---- */

enum { ADMIN_LIVE_MAX = 32 };
void admin_live_init(admin *a);
void admin_live_accept(admin *a, http_request *http);

/* ---- decoding ---- */

/* A query parameter, decoded; p NULL: absent. */
MUST_CHECK err admin_param(admin_request *q, const char *name, slice *value_out);
MUST_CHECK err admin_param_number(admin_request *q, const char *name, uint64_t least, uint64_t most,
                                  uint64_t *value_out); /* unchanged if absent */

/* The body: one JSON object; properties other than these are rejected. */
MUST_CHECK err admin_body(admin_request *q, const char *const *names, size_t names_n, slice *bson_out);
MUST_CHECK err admin_text(admin_request *q, slice bson, const char *name, slice *value_out); /* empty: absent */
MUST_CHECK err admin_number(admin_request *q, slice bson, const char *name, uint64_t least, uint64_t most, uint64_t *value_out);
MUST_CHECK err admin_double(admin_request *q, slice bson, const char *name, double least, double most, double *value_out);
MUST_CHECK err admin_range_id(admin_request *q, slice bson, const char *name, int64_t *id_out); /* text or number; unchanged if absent */

/* The container; an error if no name is given. The caller releases it. */
MUST_CHECK err admin_container(admin_request *q, slice database, slice name, container **container_out);

/* The position of the range; an error if it does not exist. */
MUST_CHECK err admin_range(admin_request *q, const container *c, int64_t id, size_t *position_out);

/* ---- encoding ---- */

void admin_add(buf *out, const char *name, uint64_t value);                     /* ,"name":value */
void admin_add_text(buf *out, const char *name, slice value);                   /* ,"name":"value" */
void admin_add_decimal(buf *out, const char *name, double value, int decimals); /* ,"name":1.25 */
void admin_add_id(buf *out, const char *name, uint32_t id);                     /* ,"name":"7" */

void admin_add_container(buf *out, const report_container *c, bool whole); /* with sums; `whole`: with the memo of the API's front end */
void admin_add_range(const admin *a, buf *out, const container *c, size_t position);

void admin_add_paths(buf *out); /* all endpoint paths, as a JSON array */

/* ---- the process ---- */

typedef struct admin_process {
    uint64_t resident_bytes, open_files;
    double cpu_s;
} admin_process;
admin_process admin_process_read(void);

/* ---- endpoints ---- */
err admin_overview(admin_request *q);
err admin_ranges(admin_request *q);
err admin_history(admin_request *q);
err admin_hotkeys(admin_request *q);
err admin_events(admin_request *q);
err admin_explain(admin_request *q);
err admin_price(admin_request *q);
err admin_split(admin_request *q);
err admin_merge(admin_request *q);
err admin_claim(admin_request *q);
err admin_freeze(admin_request *q);
err admin_thaw(admin_request *q);
err admin_switch(admin_request *q);
err admin_faults_list(admin_request *q);
err admin_faults_add(admin_request *q);
err admin_faults_remove(admin_request *q);
err admin_keys_list(admin_request *q);
err admin_keys_regenerate(admin_request *q);
err admin_keys_reload(admin_request *q);
err admin_metrics(admin_request *q);
err admin_store(admin_request *q);
