/* epk.h — effective partition keys (EPKs): the position of a partition key in the hash space.
 *
 * They equal the service's bit for bit, since SDKs compute them too and request ranges by them. An EPK is a byte string; on the wire it is
 * written as upper-case hex, which sorts as the bytes do. Ranges are [min, max); the first starts at "" and the last ends before "FF".
 *
 *   V1         the 32-bit hash of the component as a number ++ the component itself, both in the service's binary encoding
 *   V2         the 128-bit hash of all components, most significant byte first, its top two bits cleared: 16 bytes
 *   MultiHash  the V2 hash of each component, concatenated: 16 bytes per level
 *   tokens     in containers of the Cassandra API: two zero bits, the 64 bits of Cassandra's token (token.h) from the smallest on, the last
 *              62 bits of the V2 hash. So the ring that its clients see is in the order of the larger one inside
 *
 * Typed keys (partition_key.h) are hashed by V2 or MultiHash too. A component whose value the SQL API can represent is hashed as the SQL
 * API does, so a string or a double has the same EPK in both kinds of containers. Other components are hashed by a rule of ours (epk.c).
 *
 * Pure functions, any thread; nothing is allocated. */
#pragma once

#include "partition/partition_key.h"

enum { EPK_BYTES_MAX = 160 };

typedef struct epk {
    uint8_t n;
    unsigned char bytes[EPK_BYTES_MAX];
} epk;

static inline slice epk_view(const epk *e) { /* points into `e` */
    return slice_of(e->bytes, e->n);
}

static inline int epk_cmp(const epk *a, const epk *b) {
    return slice_cmp(epk_view(a), epk_view(b));
}

epk epk_min(void); /* "" */
epk epk_max(void); /* "FF" */

/* The EPK of a key, or of a prefix of a hierarchical key; the empty key has the EPK "". */
void epk_of(const pkey_definition *definition, const pkey *key, epk *epk_out);

/* The range of all keys that begin with this one: [epk, epk ++ FF). For a whole key it contains only that key. */
void epk_prefix_range(const pkey_definition *definition, const pkey *key, epk *min_out, epk *max_out);

/* The length of the whole key's EPK at the beginning of `bytes`; more than bytes.n if it is incomplete. */
size_t epk_length(const pkey_definition *definition, slice bytes);

/* The hash functions themselves, independent of a definition. */
void epk_hash_v1(const pkey_value *value, epk *epk_out);
void epk_hash_v2(const pkey_value *values, size_t n, epk *epk_out);

/* Hex text. epk_parse reads untrusted text: an even number of hex digits of either case, at most EPK_BYTES_MAX bytes. */
void epk_write(buf *out, const epk *e);
bool epk_parse(slice text, epk *epk_out);

/* Binary form, used in continuations: u8 length, then the EPK's bytes. epk_take reads one and advances `rest`; false: not valid. */
void epk_put(buf *out, const epk *e);
bool epk_take(slice *rest, epk *epk_out);

/* Boundary i of n equal ranges, placed as the service does at creation: 0 is "", n is "FF". 0 ≤ i ≤ n, n ≥ 1. */
void epk_boundary(const pkey_definition *definition, uint32_t i, uint32_t n, epk *epk_out);

/* Divides [min, max) into n parts of equal width in hash space and returns the end of part i, counted from 1. False if that is not strictly
 * inside. 0 < i < n. The service splits at the middle. */
bool epk_part(const pkey_definition *definition, const epk *min, const epk *max, uint32_t i, uint32_t n, epk *epk_out);
static inline bool epk_middle(const pkey_definition *definition, const epk *min, const epk *max, epk *epk_out) {
    return epk_part(definition, min, max, 1, 2, epk_out);
}

/* The position of a bound in the hash space, from 0 to 1. For a hierarchical key only the first level counts. */
double epk_position(const pkey_definition *definition, const epk *e);

/* A boundary between two adjacent whole keys, left < right: the shortest of the service's form with left < cut ≤ right. So a prefix of a
 * hierarchical key stays in one range where possible. */
void epk_cut(const pkey_definition *definition, const epk *left, const epk *right, epk *cut_out);
