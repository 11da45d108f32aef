/* partition_key.h — partition keys: a container's definition (pkey_definition), and the value of an item or request (pkey). A
 * container's JSON is read in account/settings.c.
 *
 * A value has up to LIMIT_KEY_COMPONENTS components; with fewer components than the definition has paths, it is a prefix of a hierarchical
 * key. It is read from the x-ms-documentdb-partitionkey header or from a document. It is used in effective partition keys (epk.h), and in
 * store keys in an order-preserving encoding.
 *
 * There are two kinds of containers. In those of the SQL API a component is undefined, null, a boolean, a double or a string, as on the
 * service: an integer beyond 2^53 becomes the nearest double. In those with *typed* keys, which other APIs create, a component is any BSON
 * value but an array, and exact: 2^53 + 1 is not 2^53, while 1, 1.0 and Decimal128 1.00 are the same key. There every component has the
 * type PKEY_TYPED.
 *
 * Pure functions, any thread. The texts of a pkey point into its source (each function says which); copying a pkey does not copy its
 * texts. */
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
    uint8_t n;  /* paths. Hash: 1, or more if typed; MultiHash: 1 to LIMIT_KEY_LEVELS; 0: fixed container, whose items have the empty key */
    bool typed; /* values of any BSON type; implies version 2 */
    bool tokens; /* EPKs begin with Cassandra's token (token.h); then each path has a type of CQL: */
    uint8_t token_kinds[LIMIT_KEY_COMPONENTS];
    doc_path paths[LIMIT_KEY_COMPONENTS];
} pkey_definition;

/* The values are the type bytes of both encodings, the service's and ours. */
typedef enum pkey_type {
    PKEY_UNDEFINED = 0x00, /* the property is missing or an object; "None" in SDKs, {} in the header */
    PKEY_NULL = 0x01,
    PKEY_FALSE = 0x02,
    PKEY_TRUE = 0x03,
    PKEY_NUMBER = 0x05,
    PKEY_STRING = 0x08,
    PKEY_TYPED = 0x09, /* a BSON value */
} pkey_type;

typedef struct pkey_value {
    pkey_type type;
    uint8_t bson;  /* PKEY_TYPED: a bson_type_t; BSON_TYPE_UNDEFINED if the property is missing */
    double number; /* PKEY_NUMBER; never NaN */
    slice text;    /* PKEY_STRING; UTF-8, may hold zero bytes. PKEY_TYPED: the value's bytes as in a document */
} pkey_value;

typedef struct pkey {
    size_t n;
    pkey_value values[LIMIT_KEY_COMPONENTS];
} pkey;

/* Copies only the components in use; cheaper than a struct copy. */
static inline void pkey_copy(pkey *to, const pkey *from) {
    to->n = from->n;
    memcpy(to->values, from->values, from->n * sizeof *from->values);
}

/* Makes a component of a key that is not typed from a value; points into it. An object is undefined, as on the service, whatever it
 * contains. False: the value cannot be a key. */
bool pkey_plain_value(const doc_element *e, pkey_value *value_out);

/* Makes a component of a typed key from a value; points into it. */
static inline pkey_value pkey_typed_value(const doc_element *e) {
    return (pkey_value){.type = PKEY_TYPED, .bson = (uint8_t)e->type, .text = e->value};
}

/* Converts a key to typed components, for a container with typed keys. New bytes live in `a`. */
void pkey_make_typed(arena *a, const pkey *key, pkey *typed_out);

/* Converts a typed component to one of the SQL API's types. False: no such type represents it exactly. */
bool pkey_plain(const pkey_value *typed, pkey_value *plain_out);

/* Reads the header's JSON array. Texts point into `header` or the op's arena. E_BAD_REQUEST, with the service's message: not an array, too
 * many components, or a component that is an array. An object is undefined. */
MUST_CHECK err pkey_parse(op *o, slice header, pkey *key_out);

/* Appends the JSON array in pure ASCII, as the header requires. */
void pkey_write(buf *out, const pkey *key);

/* Extracts the key from a document. Texts point into `document`. A missing property, or one below a missing or scalar parent, is undefined,
 * and so is an object unless keys are typed. E_BAD_REQUEST: a component is an array or, unless keys are typed, of another type that the SQL
 * API lacks. */
MUST_CHECK err pkey_extract(op *o, slice document, const pkey_definition *definition, pkey *key_out);

/* pkey_check_size fails with E_BAD_REQUEST if the encoding of a typed key exceeds LIMIT_TYPED_KEY_BYTES, or a string LIMIT_KEY_BYTES. That
 * limit holds for V1 too: V1 hashes only the first 100 characters, but the service accepts longer keys in V1 containers, the SDKs' default.
 * pkey_check_whole is for operations that need the whole key: E_KEY_COMPONENTS if there are fewer or more components than paths. */
MUST_CHECK err pkey_check_size(op *o, const pkey *key);
MUST_CHECK err pkey_check_whole(op *o, const pkey_definition *definition, const pkey *key);

/* Whether all components are equal. -0 and 0 differ, since their hashes do, but not if typed. A typed component equals an untyped one of
 * the same value. */
bool pkey_equal(const pkey *a, const pkey *b);

/* Whether the key begins with all components of `prefix`. */
bool pkey_starts(const pkey *key, const pkey *prefix);

/* Appends an order-preserving encoding, component after component:
 *
 *   undefined 00 · null 01 · false 02 · true 03
 *   number    05, then the IEEE bits big-endian with the sign bit inverted (all bits if negative)
 *   string    08, then the bytes (00 as 00 FF), then 00 00
 *   typed     09, then the value as doc/order.h spells it
 *
 * No component's encoding is a prefix of another's, so keys with equal n sort by their first differing component. The encoding of a prefix
 * of a hierarchical key is a byte prefix of every whole key under it. */
void pkey_encode(buf *out, const pkey *key);
slice pkey_encoded(arena *a, const pkey *key); /* the same, in an arena */

/* Decodes n components; texts live in `a`. `used_out`: bytes read. False: not such an encoding. */
bool pkey_decode(arena *a, slice bytes, size_t n, pkey *key_out, size_t *used_out);
