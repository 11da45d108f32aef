/* walk.h — one step after another through a BSON document, never outside it.
 *
 * bson_iter does the same with more comforts (and wants 128 bytes aligned to 128, which an arena does not give); this one is for the paths
 * where each step counts (answering a read, finding a key, patching) and for bytes that may be corrupt: a step that would leave the
 * document ends the walk and sets `corrupt`. Slices point into the document. */
#pragma once

#include <bson/bson.h>

#include "base/slice.h"

typedef struct doc_walk {
    const char *at;  /* the next element */
    const char *end; /* the document's closing zero byte */
    bool corrupt;
} doc_walk;

typedef struct doc_element {
    slice key;   /* zero-terminated as well */
    slice value; /* its bytes, length prefixes included */
    bson_type_t type;
} doc_element;

/* False (and corrupt) if the slice does not begin with a whole document; bytes after it are not looked at. */
bool doc_walk_init(doc_walk *w, slice bson);

/* False at the end and when corrupt. */
bool doc_walk_next(doc_walk *w, doc_element *element_out);

/* Whether all of the slice is a document, whose parts are documents too, at most so deep. For bytes from outside, before they are used. */
bool doc_is_sound(slice bson, unsigned depth_max);

/* The first element of this key, in a whole document; `passed` counts those before it. */
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
