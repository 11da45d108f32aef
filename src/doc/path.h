/* path.h — property paths as containers name them: /department, /properties/name, /"nombre de departamento"/x.
 *
 * A step is a property name; quotes, double or single, allow any character in it (the quote itself inside as \" or \').
 * Paths are parsed once, when a container's settings are read, and then looked up in BSON documents many times. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "doc/walk.h"

typedef struct doc_path {
    slice text;   /* as written */
    slice *steps; /* each is also zero-terminated, for use as a BSON key */
    size_t steps_n;
} doc_path;

/* Bytes live in `a`. E_BAD_REQUEST: not a path (no leading slash, empty step, unclosed quote, more than LIMIT_PATH_DEPTH steps). */
MUST_CHECK err doc_path_parse(arena *a, slice text, doc_path *path_out);

/* Finds the value at a path; true leaves `iter_out` on it, pointing into `bson`. Arrays are not entered. Any bytes may be given. */
bool doc_find(slice bson, const doc_path *path, bson_iter_t *iter_out);
bool doc_find_key(slice bson, slice key, bson_iter_t *iter_out); /* top level */

/* The same without the cost of an iterator, for hot code. */
bool doc_find_element(slice bson, const doc_path *path, doc_element *element_out);
bool doc_find_member(slice bson, slice key, doc_element *element_out);

/* A UTF-8 value as a slice. */
static inline slice doc_text(const bson_iter_t *iter) {
    uint32_t n = 0;
    const char *p = bson_iter_utf8(iter, &n);
    return slice_of(p, p ? n : 0);
}
