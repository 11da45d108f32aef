/* gremlin_int.h — within api/gremlin: the state of a connection and of one request, and the functions that run and answer it.
 *
 * A request runs in turns. A turn works on the traversal: the first ones on the loop, further ones on a worker. It ends when the traversal
 * asks its graph (graph.h), when a chunk of results is full, or when there is no more to do; then the loop goes on from there
 * (eval.c draws it). */
#pragma once

#include "access/reach.h"
#include "api/gremlin/gremlin.h"
#include "base/random.h"
#include "call/call.h"
#include "gremlin/run.h"
#include "gremlin/wire.h"

enum {
    GREMLIN_HELD_MAX = 200, /* requests that wait for authentication */
    GREMLIN_MESSAGE_BYTES = 4 * 1024 * 1024,
    GREMLIN_LARGE_BYTES = 32 * 1024, /* a larger message is read and run by workers */
    GREMLIN_BATCH = 64,              /* results of one response, unless the client asks otherwise */
    GREMLIN_BATCH_MAX = 10000,
    GREMLIN_CHUNK_BYTES = 1024 * 1024,         /* a response ends with the result that exceeds this */
    GREMLIN_RESPONSE_BYTES = 48 * 1024 * 1024, /* of one result that is larger; the layer below sends no more than 64 MB */
    GREMLIN_TIMEOUT_MS = 30 * 1000,            /* of a request that names none */
    GREMLIN_TIMEOUT_MS_MAX = 10 * 60 * 1000,
    GREMLIN_NAME_BYTES = 255,
};

struct gremlin_front {
    http_front http;
    frames_front frames;
    call_core core;
    const access_keys *keys;
    access_attempts *attempts;
};

typedef struct gremlin_eval gremlin_eval;

/* A connection uses one container, which its user name says: /dbs/{database}/colls/{container}. */
typedef struct gremlin_conn {
    access_reach reach;
    char database[GREMLIN_NAME_BYTES + 1], container[GREMLIN_NAME_BYTES + 1];
    gremlin_eval *held; /* requests that came before authentication, in order; the first was answered with 407 */
    unsigned held_n;
} gremlin_conn;

typedef struct gremlin_graph gremlin_graph; /* graph.h */

/* An arena object of the frame; lives until the last response is sent. */
struct gremlin_eval {
    union { /* the call in progress; first member: `done` finds the request by a cast */
        call any;
        call_read_many reads;
        call_find find;
        call_commit commit;
        call_within within;
    } call;
    frames_request *frame;
    gremlin_front *front;
    gremlin_conn *conn;
    op op;
    int64_t started_us, deadline_us;
    char activity[37];
    gremlin_request request;
    err malformed; /* why the message could not be read; OK: it could */
    gremlin_eval *next_held;
    net_wait wait;        /* for authentication */
    err verdict;          /* of the authentication */
    bool silent;          /* if it fails: the authentication is answered instead */
    container *container; /* a reference, released when the request ends */

    gremlin_script script; /* one statement after the other; the results of the last are returned */
    size_t statement;
    gremlin_run *run; /* NULL: none begun */
    gremlin_run_options options;
    random_source random;

    gremlin_results results; /* of the next response */
    gremlin_value taken;     /* a result that is not in `results` yet, as often as `bulk` says */
    int64_t bulk;
    bool sent;       /* a response with results was sent */
    double sent_ru;  /* charge of the responses so far */
    int64_t sent_us; /* when the last one was sent */
    size_t batch;

    unsigned loop_turns;     /* turns left on the loop; 0: a worker takes them */
    int outcome;             /* of a turn on a worker: eval.c */
    bool going, again, over; /* eval.c */
    gremlin_graph *graph;

    bool atomic;                   /* atomic.c */
    call_transaction *transaction; /* NULL: nothing was written */
    slice atomic_place;            /* its partition */
};

/* ---- front.c ---- */
void gremlin_dispatch(gremlin_eval *q); /* for a request that was held */

/* ---- authenticate.c ---- */
bool gremlin_hold(gremlin_eval *q); /* before authentication: the request waits. False: too many wait */
void gremlin_authenticate(gremlin_eval *q);
void gremlin_conn_end(gremlin_conn *c);

/* ---- eval.c ---- */
void gremlin_eval_start(gremlin_eval *q); /* eval or bytecode, of an authenticated client */
void gremlin_eval_go_on(gremlin_eval *q); /* the graph has answered */

/* ---- atomic.c ---- */
MUST_CHECK err gremlin_atomic_read_option(gremlin_eval *q);
void gremlin_atomic_commit(gremlin_eval *q); /* then gremlin_reply_end, or gremlin_fail */
void gremlin_atomic_end(gremlin_eval *q);    /* discards what was not committed */

/* ---- projection.c ---- */
MUST_CHECK err gremlin_projection_check(gremlin_eval *q);

/* ---- reply.c: all but gremlin_reply_part end the request ---- */
void gremlin_reply_part(gremlin_eval *q, void (*go_on)(frames_request *frame));       /* 206 and the results so far */
void gremlin_reply_end(gremlin_eval *q);                                              /* 200 with the rest, or 204 */
void gremlin_reply_status(gremlin_eval *q, int status, int ms_status, slice message); /* without results */
void gremlin_fail(gremlin_eval *q, err code);
void gremlin_discard(gremlin_eval *q); /* without a response */
void gremlin_release(gremlin_eval *q); /* of an ended request: frees it */
