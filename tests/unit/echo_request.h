/* echo_request.h — within the echo front end: one request on its way. */
#pragma once

#include "access/plain.h"
#include "account/scripts.h"
#include "echo_front.h"

typedef struct echo_request echo_request;

/* A connection's state: what its peer may do, and its open transaction. */
typedef struct echo_conn {
    access_reach reach;
    call_transaction *transaction; /* NULL: there is none */
    bool busy;                     /* a call within it is under way */
} echo_conn;

typedef struct echo_verb {
    const char *name;
    unsigned access;                               /* of access_verb; 0: whoever has authenticated */
    err (*start)(echo_request *e);                 /* OK: a call was submitted, which ends in echo_done */
    void (*tell)(echo_request *e, bson_t *answer); /* what its call adds to the answer; NULL: nothing */
} echo_verb;

struct echo_request {
    union {
        call any;
        call_read read;
        call_commit commit;
        call_feed feed;
        call_rows rows;
        call_find find;
        call_query query;
        call_changes changes;
        call_follow follow;
        call_usage usage;
        call_transact transact;
        call_attachments attachments;
        call_attach attach;
        call_within within;
    } call; /* first */
    op op;
    echo_front *front;
    frames_request *frame;
    slice ask; /* BSON */
    const echo_verb *verb;
    container *container;
    item_mark seen;
    buf rows; /* of the answer */
    size_t rows_n;
    size_t rows_max; /* from 1 on */

    /* of some verbs */
    item_key partition;
    item_cursor cursor;
    uint64_t lsn;  /* of the last row */
    bool together; /* rows of one lsn stay together */
    account_script *script;
    script_run run;
    container_creation creation;
    item_op one;
};

/* A member of a document, if it has this type: text, bytes, or the value as it is; otherwise empty. */
slice echo_get(slice document, const char *name, bson_type_t type);
uint64_t echo_number(slice document, const char *name, uint64_t otherwise);

void echo_done(call *c);                                /* answers */
void echo_answer(echo_request *e, err code, bool told); /* `told`: a call has completed, and adds what it found */

err echo_authenticate(echo_request *e);
const echo_verb *echo_find_verb(slice name); /* NULL: there is none */
