/* routing.h — a container's partition key and ranges, as its handle caches them.
 *
 * A routing is immutable and counted: a caller keeps the one that it took, even after it is replaced. It is read again when a 410 has
 * marked it as stale. */
#pragma once

#include "client/client_int.h"
#include "partition/epk.h"
#include <tesela/container.h>

typedef struct routing_range {
    char *id;
    epk min, max;
    char *min_text, *max_text;
} routing_range;

typedef struct routing {
    atomic_uint references;
    arena memory; /* of the definition's paths */
    char *rid;
    pkey_definition definition;
    size_t n;
    routing_range *ranges; /* in the order of their keys, without gaps */
} routing;

struct tesela_container {
    tesela_client *client;
    char *database, *name, *owner; /* owner: "dbs/…/colls/…" */
    pthread_mutex_t lock;          /* of the routing; held while it is read */
    routing *routing;
    atomic_bool stale;
};

/* The routing, with a reference for the caller; read from the server if there is none or it is stale. */
tesela_status client__routing_take(tesela_container *k, routing **routing_out, tesela_error *error);
void client__routing_give(routing *r);
void client__routing_stale(tesela_container *k); /* after 410 */

/* The range that owns an EPK; and the ranges that overlap [min, max), adjacent ones: returns their number. */
const routing_range *client__routing_find(const routing *r, const epk *e);
size_t client__routing_overlap(const routing *r, const epk *min, const epk *max, size_t *first_out);

/* An exchange about the container: type "docs" and so on, path and session set. */
exchange *client__container_exchange(tesela_container *k, const char *verb, const char *type, bool read);

/* What a container holds, and the bytes that it may hold; negative: the server does not say. */
typedef struct client_usage {
    double items, bytes, bytes_most;
} client_usage;
tesela_status client__container_usage(tesela_container *k, client_usage *usage_out, tesela_error *error);

extern const char *const client__script_types[]; /* of tesela_script_kind, as they are in paths */

/* ---- keys ---- */

/* The header's JSON array. False: a text is not UTF-8 or a number is not finite. */
bool client__key_write(const tesela_key *key, buf *out);

/* The partition key of a tesela_key; texts point into it. */
bool client__key_of(const tesela_key *key, pkey *key_out);

/* The key of an item. Texts live in `memory`. */
tesela_status client__key_extract(const routing *r, slice item, arena *memory, pkey *key_out, tesela_error *error);
