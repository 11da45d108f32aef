/* epk.h — effective partition keys: where in the hash space a partition key lies.
 *
 * Bit for bit the service's, since SDKs compute them too and ask for ranges by them. An EPK is bytes; on the wire it is their upper-case
 * hex text, and the order of texts is the order of bytes. Ranges are [min, max); the first starts at "" and the last ends before "FF".
 *
 *   V1         number(hash32 of the component) ++ the component itself, both in the service's binary encoding
 *   V2         the 128-bit hash of all components, most significant byte first, its top two bits cleared: 16 bytes
 *   MultiHash  the V2 of each component alone, one after the other: 16 bytes a level
 *
 * Typed keys (key.h) are hashed by V2 or MultiHash too. Their components that have a value of the SQL API's types are hashed as those, so a
 * string or a double lies at the same place in either kind of container; the others by a rule of ours (epk.c).
 *
 * Pure functions, any thread; nothing is allocated. */
#pragma once

#include "partition/key.h"

enum { EPK_BYTES_MAX = 160 };

typedef struct epk {
    uint8_t n;
    unsigned char bytes[EPK_BYTES_MAX];
} epk;

static inline slice epk_view(const epk *e) { /* valid as long as `e` */
    return slice_of(e->bytes, e->n);
}

static inline int epk_cmp(const epk *a, const epk *b) {
    return slice_cmp(epk_view(a), epk_view(b));
}

epk epk_min(void); /* "" */
epk epk_max(void); /* "FF" */

/* Of a key, or of a prefix of a hierarchical one; the empty key is at "". */
void epk_of(const pkey_definition *definition, const pkey *key, epk *epk_out);

/* All keys that begin with this one: [epk, epk ++ FF). A whole key's range holds that key alone. */
void epk_prefix_range(const pkey_definition *definition, const pkey *key, epk *min_out, epk *max_out);

/* How many of the bytes are the EPK of a whole key that they begin with; more than there are: it is not whole. */
size_t epk_length(const pkey_definition *definition, slice bytes);

/* The hashes themselves, whatever a definition says. */
void epk_hash_v1(const pkey_value *value, epk *epk_out);
void epk_hash_v2(const pkey_value *values, size_t n, epk *epk_out);

/* Hex text. Parsing takes bounds from outside: even, at most EPK_BYTES_MAX bytes, hex digits of either case. */
void epk_write(buf *out, const epk *e);
bool epk_parse(slice text, epk *epk_out);

/* Bytes, within positions that clients are given: u8 length · the EPK's bytes. Taking skips them; false: they are none. */
void epk_put(buf *out, const epk *e);
bool epk_take(slice *rest, epk *epk_out);

/* Boundary i of n equal ranges, as the service places them at creation: 0 is "", n is "FF". 0 ≤ i ≤ n, n ≥ 1. */
void epk_boundary(const pkey_definition *definition, uint32_t i, uint32_t n, epk *epk_out);

/* Where [min, max) is cut into n parts of equal width in hash space: the end of the first i of them. False when that is not strictly
 * inside. 0 < i < n. The middle is where the service splits. */
bool epk_part(const pkey_definition *definition, const epk *min, const epk *max, uint32_t i, uint32_t n, epk *epk_out);
static inline bool epk_middle(const pkey_definition *definition, const epk *min, const epk *max, epk *epk_out) {
    return epk_part(definition, min, max, 1, 2, epk_out);
}

/* How far into the hash space a bound lies, 0 to 1. Of a hierarchical key only the first level counts. */
double epk_place(const pkey_definition *definition, const epk *e);

/* Between two neighbours, EPKs of whole keys with left < right: the shortest boundary of the service's shape with left < cut ≤ right. So
 * a prefix of a hierarchy stays in one range where it can. */
void epk_cut(const pkey_definition *definition, const epk *left, const epk *right, epk *cut_out);
