/* listing.h — within api/sql: a page of a metadata feed (databases, containers, offers), by GET or by query.
 *
 * A handler supplies a function that visits its resources in order of their numbers and writes each as JSON. For GET that is the page. A
 * worker runs a query over the resources as documents, 256 at a time, so that the account is never locked for long. */
#pragma once

#include "account/rid.h"
#include "api/sql/query_body.h"
#include "query/over.h"

typedef struct sql_listing sql_listing;
struct sql_listing {
    call call; /* first member */
    sql_request *q;
    void (*visit)(sql_listing *l); /* calls sql_listing_add for every resource with a number above `after`, until it returns NULL */
    rid parent;
    const char *name; /* name of the list in the answer */
    uint32_t after;
    size_t max;
    buf body;
    size_t count;
    uint32_t last; /* the continuation: a resource's number; for a query that does not stream, the number of rows returned so far */
    bool more;

    /* for a query */
    sql_query_body asked;
    query query;
    query_over *over;
    err code;
    buf texts; /* resources not yet evaluated */
    uint32_t *numbers;
    size_t *ends;
    size_t waiting;
    bool cut; /* there are more resources after these */
};

/* Returns where to write the resource with this number; NULL: stop visiting. */
buf *sql_listing_add(sql_listing *l, uint32_t number);

/* Sends the page and ends the request, immediately or after a worker has run the query. */
void sql_listing_run(sql_request *q, const rid *parent, const char *name, void (*visit)(sql_listing *l));
