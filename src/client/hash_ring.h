/* hash_ring.h — consistent hashing: containers have points on a ring of 64-bit hashes; a key belongs to the container of the first point at
 * or after its own hash. Adding a container moves only keys to it, removing one only its own.
 *
 * Point i of a container is the hash of "name/i". The hash of a key is that of its canonical form (value.h), so 1 and 1.0 are one key.
 * Immutable; any thread. */
#pragma once

#include "client/resolver_int.h"

typedef struct hash_ring hash_ring;

/* NULL, with `error` filled: no containers, names that are equal or empty, or too many virtual nodes. */
hash_ring *client__hash_ring_new(char *const *names, size_t n, const tesela_hash_options *options, tesela_error *error);
void client__hash_ring_free(hash_ring *r);

/* The name of the container of a key (JSON text), which lives as long as the ring; NULL: not JSON. */
const char *client__hash_ring_find(const hash_ring *r, const char *key);

/* The names, and for saving: virtual nodes and the hash's name. */
char *const *client__hash_ring_names(const hash_ring *r, size_t *n_out);
void client__hash_ring_write(const hash_ring *r, buf *out); /* "containers":[…],"virtualNodes":16,"hash":"md5" */

/* Reads what that wrote. `hash`, which may be NULL, is needed if the name is not md5. */
hash_ring *client__hash_ring_read(slice object, const tesela_hash_options *hash, tesela_error *error);
