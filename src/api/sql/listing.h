/* listing.h — within api/sql: a page of a metadata feed (databases, containers, offers), by GET or by query. */
#pragma once

#include "api/sql/querytext.h"

typedef struct sql_listing {
    query_filter filter; /* of a query; passes everything otherwise */
    uint32_t after;      /* the continuation: resources with a greater number follow */
    size_t max;
    buf body;
    size_t count;
    uint32_t last;
    bool more;
} sql_listing;

MUST_CHECK err sql_listing_open(sql_request *q, sql_listing *l);

/* For each resource in turn: false, the page is full. Then, if it passes, sql_listing_add before it is written to l->body. */
bool sql_listing_room(sql_listing *l, uint32_t number);
void sql_listing_add(sql_listing *l);

/* Sends the page and ends the request. */
void sql_listing_answer(sql_request *q, sql_listing *l, const rid *parent, const char *name);
