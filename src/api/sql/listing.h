/* listing.h — within api/sql: a page of a metadata feed (databases, containers, offers), by GET or by query.
 *
 * A handler gives a function that visits its resources in order of their numbers and writes each as JSON. By GET that is the page. A query
 * is run by a worker over the resources as documents, some hundred at a time, so that the account is never locked for long. */
#pragma once

#include "account/rid.h"
#include "api/sql/query_body.h"
#include "query/over.h"

typedef struct sql_listing sql_listing;
struct sql_listing {
    call call; /* first */
    sql_request *q;
    void (*visit)(sql_listing *l); /* sql_listing_add for every resource with a number greater than `after`, until it returns NULL */
    rid parent;
    const char *name; /* of the list in the answer */
    uint32_t after;
    size_t max;
    buf body;
    size_t count;
    uint32_t last; /* the continuation: a resource's number, or of a query that needs all of them how many rows were given */
    bool more;

    /* of a query */
    sql_query_body asked;
    query query;
    query_over *over;
    err code;
    buf texts; /* resources that wait for being evaluated */
    uint32_t *numbers;
    size_t *ends;
    size_t waiting;
    bool cut; /* there are others after these */
};

/* Where to write the resource with this number; NULL: it is not wanted now, nor are those after it. */
buf *sql_listing_add(sql_listing *l, uint32_t number);

/* Sends the page and ends the request, now or later. */
void sql_listing_run(sql_request *q, const rid *parent, const char *name, void (*visit)(sql_listing *l));
