/* table_int.h — within api/table: the state of one request, and the functions that decode and answer it. */
#pragma once

#include "access/reach.h"
#include "api/table/entity.h"
#include "api/table/fields.h"
#include "api/table/filter.h"
#include "api/table/route.h"
#include "api/table/table.h"
#include "call/call.h"

#define TABLE_DATABASE SLICE_LIT("TablesDB")
#define TABLE_API SLICE_LIT("table")
#define TABLE_REST_VERSION "2019-02-02" /* the x-ms-version of answers */

struct table_front {
    http_front http;
    call_core core;
    const access_keys *keys;
    access_attempts *attempts;
};

typedef struct table_request table_request;
typedef void (*table_handler)(table_request *q);

/* A write of one entity, from a request of its own or from a part of a batch. */
typedef enum table_verb { TABLE_INSERT, TABLE_REPLACE, TABLE_MERGE, TABLE_DELETE } table_verb;
typedef struct table_write {
    table_verb verb;
    slice json;                     /* the body */
    slice partition, row;           /* from the URL; p NULL for an insert, until the entity is read */
    slice if_match;                 /* p NULL: not given */
    slice table;                    /* as the URL writes it */
    slice content_id;               /* the Content-ID of a batch's part; empty: none */
    bool wants_content, no_content; /* Prefer */
    entity_metadata metadata;
    slice body; /* BSON of the entity */
} table_write;

typedef struct table_query table_query; /* query.c */

/* An arena object of the HTTP request; lives until the answer is sent. */
struct table_request {
    union { /* the call in progress; first, so that a call is found to be the request's */
        call any;
        call_read read;
        call_commit commit;
        call_rows rows;
    } call;
    http_request *http;
    table_front *front;
    op op;
    table_route route;
    access_reach reach;
    entity_metadata metadata; /* the level of metadata in the answer */
    table_error error;        /* what is wrong, more exactly than the code */
    int64_t now_ms;           /* the time of its writes */
    size_t failed;            /* for a batch: the index of the failed operation, plus one */
    char id[37];
    int64_t started_us;
    uint16_t status;
    uint32_t fault;
    err refused; /* for a batch: an operation is wrong */
    bool alone;  /* a read in a batch */
    bool large;  /* the table allows large entities */

    container *container; /* a reference, released when the request ends */
    account_change *change;
    table_handler after; /* what to do when the database is there */
    table_handler next;  /* what to do when the change or the decoding is done */
    err (*decode)(table_request *q);

    table_write *writes;
    size_t writes_n;
    item_op *ops;
    table_query *query;
    buf rows;     /* the answer's entities or parts, written by a worker */
    bool written; /* rows has the answer */
    size_t rows_n;
};

static inline slice table_get(const table_request *q, table_field field) {
    return q->http->field[field];
}

/* ---- decoding ---- */

/* Keeps the error and returns E_BAD_REQUEST; OK for TABLE_FINE. */
MUST_CHECK err table_refuse(table_request *q, table_error error);
MUST_CHECK err table_find(table_request *q, slice name);                               /* fills q->container, checks that it is a table */
MUST_CHECK err table_query_text(table_request *q, const char *name, slice *value_out); /* a parameter */
MUST_CHECK err table_read_top(table_request *q, size_t *max_out);                      /* $top; a page has 1000 at most */
bool table_prefers(slice prefer, const char *word);
entity_metadata table_metadata_of(slice accept);
slice table_account(const table_request *q); /* the account's name, as the client writes it */
slice table_base(table_request *q);          /* "http://host:8902/account", in the arena */
entity_view table_view(table_request *q, entity_metadata metadata);
bool table_is_large(const container *c);                     /* it allows large entities */
slice table_row_of(arena *a, const container *c, slice row); /* the row key of a RowKey */
MUST_CHECK err table_key_of(op *o, const container *c, slice partition, slice row, item_key *key_out);

/* ---- who may ---- */
MUST_CHECK err table_authenticate(table_request *q);
MUST_CHECK err table_allow(table_request *q, unsigned verbs, slice table); /* E_FORBIDDEN */
MUST_CHECK err table_allow_entity(table_request *q, unsigned verbs, slice table, slice partition, slice row);
const access_sas *table_bounds(const table_request *q); /* the shared access signature, if it has row bounds; otherwise NULL */

/* ---- answering: table_fail and table_end end the request ---- */
void table_start(table_request *q, unsigned status);
void table_start_bare(table_request *q, unsigned status); /* without the fields of CORS */
void table_add_cors(table_request *q);                    /* for an answer to a web page of another site, if a rule allows it */
buf *table_xml(table_request *q);                         /* the content type, and the body */
buf *table_fields(table_request *q);
buf *table_json(table_request *q, entity_metadata metadata); /* the content type, and the body */
void table_end(table_request *q);
void table_empty(table_request *q, unsigned status); /* an answer without a body */
void table_fail(table_request *q, err code);
table_refusal table_refusal_for(const table_request *q, err code);
void table_write_error(buf *out, const table_request *q, err code);       /* {"odata.error":…} */
void table_add_etag(buf *out, slice body, uint64_t version, uint32_t ts); /* "ETag: …\r\n" */
void table_make_guid(table_request *q, char text[static 37]);

/* ---- changes of tables ---- */
#define table_new_change(q, type) ((type *)table_begin_change((q), sizeof(type)))
account_change *table_begin_change(table_request *q, size_t bytes);
void table_await_change(table_request *q, table_handler next); /* then call account_…(change) */

void table_with_database(table_request *q, table_handler next); /* makes the database first if it is not there */

/* ---- access policies ---- */
bool table_find_policy(void *front, op *o, slice table, slice id, access_sas_policy *policy_out); /* as in access_sas_request */

/* ---- entities ---- */

/* What a request, or a part of a batch, says about a write. */
typedef struct table_ask {
    slice verb, body, if_match, prefer, accept, content_id;
} table_ask;

slice table_verb_of(const table_request *q); /* the verb, also if it is in X-HTTP-Method */
MUST_CHECK err table_write_of(table_request *q, const table_ask *ask, const table_route *r, table_write *w); /* any thread */
MUST_CHECK err table_prepare_write(table_request *q, const table_write *w, item_op *o); /* checks access, fills in the operation */
MUST_CHECK err table_result_of(table_request *q, const item_op *o);                     /* after the commit */
bool table_returns_content(const table_write *w);
void table_write_entity(table_request *q, const table_write *w, const item_op *o, buf *out);
void table_add_written(table_request *q, const table_write *w, const item_op *o, buf *out);            /* header fields */
void table_answer_alone(table_request *q, const entity_view *view, slice body, const item_head *head); /* in a batch; without table_end */
table_error table_select(arena *a, slice text, entity_view *view);                                     /* $select */

/* ---- handlers; the first ones decode, on a worker if the body is large ---- */
err table_decode_entity(table_request *q);
err table_decode_batch(table_request *q);
void table_create(table_request *q);
void table_list(table_request *q);
void table_delete(table_request *q);
void table_entity_read(table_request *q);
void table_entity_write(table_request *q);
void table_entities_query(table_request *q);
void table_batch(table_request *q);
void table_acl_read(table_request *q);
void table_acl_replace(table_request *q);
void table_service_read(table_request *q);
void table_service_replace(table_request *q);
void table_service_stats(table_request *q);
void table_preflight(table_request *q);
