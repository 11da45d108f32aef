/* echo_request.h — within the echo front end: the state of one request. */
#pragma once

#include "access/plain.h"
#include "account/scripts.h"
#include "echo_front.h"

typedef struct echo_request echo_request;

/* A connection's state: what its peer may do, and its open transaction. */
typedef struct echo_conn {
    access_reach reach;
    call_transaction *transaction; /* NULL: there is none */
    bool busy;                     /* a call within the transaction is in progress */
} echo_conn;

typedef struct echo_verb {
    const char *name;
    unsigned access;                               /* bits of access_verb; 0: none needed beyond authentication */
    err (*start)(echo_request *e);                 /* OK: a call was submitted, which calls echo_done */
    void (*tell)(echo_request *e, bson_t *answer); /* adds the call's results to the answer; NULL: none */
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
        call_receipt receipt;
        call_transact transact;
        call_attachments attachments;
        call_attach attach;
        call_within within;
    } call; /* must be first */
    op op;
    echo_front *front;
    frames_request *frame;
    slice ask; /* BSON */
    const echo_verb *verb;
    container *container;
    item_mark seen;
    buf rows; /* rows of the answer */
    size_t rows_n;
    size_t rows_max; /* at least 1 */

    /* used by some verbs */
    item_key partition;
    item_cursor cursor;
    uint64_t lsn;  /* the last row's lsn */
    bool together; /* rows of one lsn go in the same page */
    account_script *script;
    script_run run;
    container_creation creation;
    item_op one;
};

/* A member of a document if it has this type: its text, bytes, or raw value; otherwise empty. */
slice echo_get(slice document, const char *name, bson_type_t type);
uint64_t echo_number(slice document, const char *name, uint64_t otherwise);

void echo_done(call *c);                                /* sends the answer */
void echo_answer(echo_request *e, err code, bool told); /* `told`: a call has completed, whose results are added */

err echo_authenticate(echo_request *e);
const echo_verb *echo_find_verb(slice name); /* NULL: there is none */
