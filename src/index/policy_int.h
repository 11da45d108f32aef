/* policy_int.h — within index/: what the readers of a policy's parts share. */
#pragma once

#include "base/limits.h"
#include "index/policy.h"

/* A policy's path taken apart: /a/"b c"/[]/?. */
typedef struct index_read_path {
    index_step steps[LIMIT_PATH_DEPTH];
    size_t n;
    enum { ENDS_PLAIN, ENDS_SCALAR, ENDS_STAR } end;
    slice tuple; /* of /a/[]/{x,y}/? what is between the braces, and `steps` lead to the element; empty: none */
} index_read_path;

/* False: it is no path, and *position_out is where that shows. Names point into the text. */
bool index__read_path(slice text, index_read_path *path_out, size_t *position_out);
bool index__read_tuple_member(slice text, index_read_path *path); /* adds its steps to those of the element; false: no such member */

/* Members of settings. */
slice index__text(slice document, const char *key); /* empty: there is none, or it is no string */
bool index__has(slice document, const char *key);   /* and it is not null */
MUST_CHECK err index__list(op *o, slice document, const char *key, size_t most, slice *list_out,
                           size_t *n_out);        /* an array; empty: there is none */
bool index__next(doc_walk *w, slice *object_out); /* the next element; one that is no object is empty */

MUST_CHECK err index__read_spatials(op *o, slice document, index_policy *policy);
MUST_CHECK err index__read_texts(op *o, slice document, index_policy *policy);
MUST_CHECK err index__read_vectors(op *o, slice document, index_policy *policy);
