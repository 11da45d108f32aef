/* key.h — partition keys: what a container declares (pkey_definition), and the value that one item or request has (pkey).
 *
 * A value has up to LIMIT_KEY_LEVELS components; fewer than the definition's paths are a prefix of a hierarchical key. It comes from the
 * x-ms-documentdb-partitionkey header or out of a document, and goes into effective partition keys (epk.h) and into store keys, in an
 * encoding whose byte order is value order. Pure functions, any thread. The texts of a pkey point into whatever it was made from (each
 * function says what); a pkey copied elsewhere needs its texts copied too. */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "base/op.h"
#include "doc/path.h"

typedef enum pkey_kind { PKEY_HASH, PKEY_MULTI_HASH } pkey_kind;

typedef struct pkey_definition {
    pkey_kind kind;
    uint8_t version; /* 1 or 2; MultiHash is always 2 */
    uint8_t n;       /* Hash: 1; MultiHash: 1 to LIMIT_KEY_LEVELS; 0: a fixed container, whose items all have the empty key */
    doc_path paths[LIMIT_KEY_LEVELS];
} pkey_definition;

/* The numbers are the type bytes of both encodings, the service's and ours. */
typedef enum pkey_type {
    PKEY_UNDEFINED = 0x00, /* the property is not there; "None" in SDKs, {} in the header */
    PKEY_NULL = 0x01,
    PKEY_FALSE = 0x02,
    PKEY_TRUE = 0x03,
    PKEY_NUMBER = 0x05,
    PKEY_STRING = 0x08,
} pkey_type;

typedef struct pkey_value {
    pkey_type type;
    double number; /* PKEY_NUMBER; never NaN */
    slice text;    /* PKEY_STRING; UTF-8, may hold zero bytes */
} pkey_value;

typedef struct pkey {
    size_t n;
    pkey_value values[LIMIT_KEY_LEVELS];
} pkey;

/* Reads the header's JSON array. Texts point into `header` or the op's arena. E_BAD_REQUEST with the service's sentence: not an array, too
 * many components, a component that is an array or an object other than {}. */
MUST_CHECK err pkey_parse(op *o, slice header, pkey *key_out);

/* Appends the JSON array, pure ASCII (as the header needs it). */
void pkey_write(buf *out, const pkey *key);

/* Takes the value out of a document. Texts point into `document`. A missing property, also one below a missing or scalar parent, is
 * undefined. E_BAD_REQUEST: an array, an object, or another type that cannot be a key. */
MUST_CHECK err pkey_extract(op *o, slice document, const pkey_definition *definition, pkey *key_out);

/* E_BAD_REQUEST: a string over LIMIT_KEY_BYTES, whatever the version: V1 hashes only the first 100 characters, but the service takes longer
 * keys in V1 containers, which is what SDKs make by default. E_KEY_COMPONENTS is pkey_check_whole's: fewer (or more) components than
 * paths, where an operation needs the whole key. */
MUST_CHECK err pkey_check_size(op *o, const pkey *key);
MUST_CHECK err pkey_check_whole(op *o, const pkey_definition *definition, const pkey *key);

/* Same components; -0 and 0 differ, as they hash apart. */
bool pkey_equal(const pkey *a, const pkey *b);

/* The key's first components are the prefix's. */
bool pkey_starts(const pkey *key, const pkey *prefix);

/* Order-preserving bytes, component after component:
 *
 *   undefined 00 · null 01 · false 02 · true 03
 *   number    05, then the IEEE bits big-endian with the sign bit flipped (all bits when negative)
 *   string    08, then the bytes, a zero byte as 00 FF, closed by 00 00
 *
 * A component's encoding is never a prefix of another's, so keys of equal n sort by their first differing component, and the encoding of
 * a prefix of a hierarchical key is a byte prefix of every whole key under it. */
void pkey_encode(buf *out, const pkey *key);

/* Reads n components back; texts live in `a`. False: the bytes are no such encoding. used_out: bytes read. */
bool pkey_decode(arena *a, slice bytes, size_t n, pkey *key_out, size_t *used_out);
