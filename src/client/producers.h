/* producers.h — the rows of one query from several ranges: one producer a range, in the order of their keys.
 *
 * A producer holds one page and asks for the next when it is empty. While one is waited for, others ask ahead: at most `parallelism`
 * requests are in flight, and none is begun while `buffered_max` rows are held. A range that was split or merged is followed by its
 * successors, which go on with its continuation. */
#pragma once

#include "client/client_int.h"
#include "client/cursor_int.h"
#include "client/plan.h"

typedef struct producer {
    epk min, max;
    bool whole;           /* all of a physical range, as far as is known: no bounds need be sent */
    char *token, *before; /* the continuation of the next page, and of the one that is held; NULL: the first */
    bool started, done;   /* done: no page after the one that is held */
    exchange *flight;
    tesela_response *page;
    slice *rows;
    size_t rows_n, at;
    size_t skip; /* rows of the next page that were returned already: after a continuation */
    unsigned moves;
    buf order; /* the first row's ORDER BY values as BSON; empty: not read yet */
} producer;

typedef struct producers {
    tesela_container *container;
    char *body; /* the request's */
    const char *consistency, *session_token;
    int page_items, parallelism, buffered_max;
    producer **list;
    size_t n;
    fan *fan;
    size_t buffered;
    size_t turn;           /* whose page is given out, if the order does not matter */
    unsigned changes;      /* counts replacements of producers by their successors */
    tesela_cursor *cursor; /* which counts charges */
} producers;

void client__producers_free(producers *p);

/* Adds one at the end; the caller adds them in the order of their keys. */
producer *client__producers_add(producers *p, const epk *min, const epk *max, bool whole);

/* Makes sure that producer i holds a row, or is at its end: then *row_out is empty. The list may change: after TESELA_OK look at `changes`.
 */
tesela_status client__producers_head(producers *p, size_t i, slice *row_out, tesela_error *error);

/* The producer whose page comes next if the order of ranges does not matter: each page is given out whole. p->n: no more rows. */
tesela_status client__producers_any(producers *p, size_t *at_out, tesela_error *error);
void client__producers_pop(producers *p, size_t i);
