/* key.h — partition keys: what a container declares (pkey_definition), and the value that one item or request has (pkey).
 *
 * A value has up to LIMIT_KEY_COMPONENTS components; fewer than the definition's paths are a prefix of a hierarchical key. It comes from
 * the x-ms-documentdb-partitionkey header or out of a document, and goes into effective partition keys (epk.h) and into store keys, in an
 * encoding whose byte order is value order.
 *
 * There are two kinds of containers. Those of the SQL API know undefined, null, booleans, doubles and strings, as the service does: an
 * integer past 2^53 is the nearest double. Those with *typed* keys, which other APIs make, know all BSON values but arrays, each exactly:
 * 2^53 + 1 is not 2^53, while 1, 1.0 and Decimal128 1.00 are one key. In them every component has the type PKEY_TYPED.
 * Pure functions, any thread. The texts of a pkey point into whatever it was made from (each
 * function says what); a pkey copied elsewhere needs its texts copied too. */
#pragma once

#include "base/buf.h"
#include "base/limits.h"
#include "base/op.h"
#include "doc/order.h"
#include "doc/path.h"

typedef enum pkey_kind { PKEY_HASH, PKEY_MULTI_HASH } pkey_kind;

typedef struct pkey_definition {
    pkey_kind kind;
    uint8_t version; /* 1 or 2; MultiHash is always 2 */
    uint8_t n;  /* Hash: 1, or more if typed; MultiHash: 1 to LIMIT_KEY_LEVELS; 0: a fixed container, whose items all have the empty key */
    bool typed; /* values of any BSON type; then the version is 2 */
    doc_path paths[LIMIT_KEY_COMPONENTS];
} pkey_definition;

/* The numbers are the type bytes of both encodings, the service's and ours. */
typedef enum pkey_type {
    PKEY_UNDEFINED = 0x00, /* the property is not there; "None" in SDKs, {} in the header */
    PKEY_NULL = 0x01,
    PKEY_FALSE = 0x02,
    PKEY_TRUE = 0x03,
    PKEY_NUMBER = 0x05,
    PKEY_STRING = 0x08,
    PKEY_TYPED = 0x09, /* a BSON value */
} pkey_type;

typedef struct pkey_value {
    pkey_type type;
    uint8_t bson;  /* PKEY_TYPED: a bson_type_t; BSON_TYPE_UNDEFINED for what is not there */
    double number; /* PKEY_NUMBER; never NaN */
    slice text;    /* PKEY_STRING; UTF-8, may hold zero bytes. PKEY_TYPED: the value's bytes as in a document */
} pkey_value;

typedef struct pkey {
    size_t n;
    pkey_value values[LIMIT_KEY_COMPONENTS];
} pkey;

/* The components that there are, and no more. */
static inline void pkey_copy(pkey *to, const pkey *from) {
    to->n = from->n;
    memcpy(to->values, from->values, from->n * sizeof *from->values);
}

/* A component of a typed key, from a value; it points into the value. */
static inline pkey_value pkey_typed_value(const doc_element *e) {
    return (pkey_value){.type = PKEY_TYPED, .bson = (uint8_t)e->type, .text = e->value};
}

/* The same key with typed components, for a container that has such keys. New bytes live in `a`. */
void pkey_make_typed(arena *a, const pkey *key, pkey *typed_out);

/* A typed component as one of the SQL API's types, if it has exactly that value. False: it has another type or value. */
bool pkey_plain(const pkey_value *typed, pkey_value *plain_out);

/* Reads the header's JSON array. Texts point into `header` or the op's arena. E_BAD_REQUEST with the service's sentence: not an array, too
 * many components, a component that is an array or an object other than {}. */
MUST_CHECK err pkey_parse(op *o, slice header, pkey *key_out);

/* Appends the JSON array, pure ASCII (as the header needs it). */
void pkey_write(buf *out, const pkey *key);

/* Takes the value out of a document. Texts point into `document`. A missing property, also one below a missing or scalar parent, is
 * undefined. E_BAD_REQUEST: an array, or of a key that is not typed an object or another type that the SQL API does not know. */
MUST_CHECK err pkey_extract(op *o, slice document, const pkey_definition *definition, pkey *key_out);

/* E_BAD_REQUEST: a typed key over LIMIT_TYPED_KEY_BYTES as encoded; a string over LIMIT_KEY_BYTES, whatever the version: V1 hashes only the
 * first 100 characters, but the service takes longer keys in V1 containers, which is what SDKs make by default. E_KEY_COMPONENTS is
 * pkey_check_whole's: fewer (or more) components than paths, where an operation needs the whole key. */
MUST_CHECK err pkey_check_size(op *o, const pkey *key);
MUST_CHECK err pkey_check_whole(op *o, const pkey_definition *definition, const pkey *key);

/* Same components; -0 and 0 differ, as they hash apart, but not if typed. A typed component equals a plain one of the same value. */
bool pkey_equal(const pkey *a, const pkey *b);

/* The key's first components are the prefix's. */
bool pkey_starts(const pkey *key, const pkey *prefix);

/* Order-preserving bytes, component after component:
 *
 *   undefined 00 · null 01 · false 02 · true 03
 *   number    05, then the IEEE bits big-endian with the sign bit flipped (all bits when negative)
 *   string    08, then the bytes, a zero byte as 00 FF, closed by 00 00
 *   typed     09, then the value as doc/order.h spells it
 *
 * A component's encoding is never a prefix of another's, so keys of equal n sort by their first differing component, and the encoding of
 * a prefix of a hierarchical key is a byte prefix of every whole key under it. */
void pkey_encode(buf *out, const pkey *key);

/* Reads n components back; texts live in `a`. False: the bytes are no such encoding. used_out: bytes read. */
bool pkey_decode(arena *a, slice bytes, size_t n, pkey *key_out, size_t *used_out);
