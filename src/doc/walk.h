/* walk.h — an iterator over the elements of a BSON document that never reads outside it.
 *
 * bson_iter does the same with more features, but needs 128 bytes aligned to 128, which an arena does not give. This iterator is for hot
 * code (answering a read, finding a key, patching) and for bytes that may be corrupt: a step that would leave the document ends the walk
 * and sets `corrupt`. Slices point into the document. */
#pragma once

#include <bson/bson.h>

#include "base/slice.h"

typedef struct doc_walk {
    const char *at;  /* the next element */
    const char *end; /* the document's closing zero byte */
    bool corrupt;
} doc_walk;

typedef struct doc_element {
    slice key;   /* also zero-terminated */
    slice value; /* the value's bytes, with any length prefix */
    bson_type_t type;
} doc_element;

/* False, with `corrupt` set, if the slice does not begin with a whole document; bytes after the document are ignored. */
bool doc_walk_init(doc_walk *w, slice bson);

/* False at the end and if the bytes are corrupt. */
bool doc_walk_next(doc_walk *w, doc_element *element_out);

/* Whether the whole slice is one well-formed document, nested documents included, with at most `depth_max` levels below the top. Call it
 * before using bytes from outside. */
bool doc_is_well_formed(slice bson, unsigned depth_max);

/* The same, and whether all keys and texts are UTF-8; texts may have zero bytes. (libbson's bson_validate does not report invalid UTF-8.)
 */
bool doc_is_sound(slice bson, unsigned depth_max);

/* The same; and lists the document's own elements, as far as they fit. `*n_out` is the number of all of them. */
bool doc_is_sound_listed(slice bson, unsigned depth_max, doc_element *list, size_t room, size_t *n_out);

/* Finds the first element with this key; adds the number of elements before it to `*passed`. */
bool doc_find_member_counted(slice bson, slice key, doc_element *element_out, uint64_t *passed);

/* The whole element: type byte, key, value. */
static inline slice doc_element_bytes(const doc_element *e) {
    return slice_of(e->key.p - 1, 1 + e->key.n + 1 + e->value.n);
}

static inline bool doc_is_container(bson_type_t type) {
    return type == BSON_TYPE_DOCUMENT || type == BSON_TYPE_ARRAY;
}

static inline bool doc_is_number(bson_type_t type) {
    return type == BSON_TYPE_INT32 || type == BSON_TYPE_INT64 || type == BSON_TYPE_DOUBLE;
}

/* The text of a value of type UTF8, CODE or SYMBOL. */
static inline slice doc_element_text(const doc_element *e) {
    return slice_of(e->value.p + 4, e->value.n - 5);
}

/* BSON is little-endian whatever the machine is. */
int32_t doc_load_i32(const char *p);
int64_t doc_load_i64(const char *p);
double doc_load_double(const char *p);
void doc_store_i32(char *p, int32_t value);
void doc_store_i64(char *p, int64_t value);
