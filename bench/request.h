/* request.h — the requests of the load generator, as bytes: those of the JavaScript SDKs, field by field, signed.
 *
 * What is in them is told by data.h and question.h. One maker per thread. */
#pragma once

#include <stdint.h>

#include "question.h"
#include "sign.h"

enum { REQUEST_BYTES_MAX = 512 << 10, CONTINUATION_MAX = 16 << 10 };

typedef enum request_kind {
    REQUEST_READ,   /* GET an item */
    REQUEST_CREATE, /* POST it */
    REQUEST_UPSERT,
    REQUEST_BULK, /* POST a non-atomic batch of creates to range 0 */
    REQUEST_GET,  /* GET a path as it is, with all the fields of REQUEST_READ: for a server of static files */
    REQUEST_QUERY,
    REQUEST_RAW,       /* `raw`, byte for byte */
    REQUEST_EXECUTE,   /* run the stored procedure that `path` names, with the item as its argument */
    REQUEST_TABLE_GET, /* the Table API: GET an entity of the table `container`; `path`: its partition, or "/" for one of a thousand */
    REQUEST_TABLE_INSERT,
} request_kind;

typedef struct request_maker {
    signer signer;
    char host[80], database[64], container[64], path[256];
    char policy[256];    /* the container's indexing policy, as JSON; empty: the default */
    const question *ask; /* for REQUEST_QUERY */
    const char *raw;     /* for REQUEST_RAW */
    size_t raw_bytes;
    data_kind kind;
    uint32_t item_bytes, bulk;
    time_t date_s;
    char date[DATE_BYTES], date_lower[DATE_BYTES];
} request_maker;

/* Refreshes x-ms-date when the second has changed. */
void request_tick(request_maker *m, time_t now);

/* The bytes of a request for the item (or, in bulk, the items from) `number`; returns how many. `out` has REQUEST_BYTES_MAX. */
size_t request_make(request_maker *m, request_kind kind, uint64_t number, char *out);

/* A page of m->ask with the values of the item; `continuation` is "" for the first. */
size_t request_make_query(request_maker *m, uint64_t number, const char *continuation, char *out);

/* Creating the database and the container; a throughput of 0 asks for none. */
size_t request_make_database(request_maker *m, char *out);
size_t request_make_container(request_maker *m, uint32_t throughput, char *out);
