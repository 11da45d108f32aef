/* policy_int.h — shared by the parsers of a policy's parts. For this folder. */
#pragma once

#include "base/limits.h"
#include "index/policy.h"

/* A parsed path of a policy, such as /a/"b c"/[]/?. */
typedef struct index_read_path {
    index_step steps[LIMIT_PATH_DEPTH];
    size_t n;
    enum { ENDS_PLAIN, ENDS_SCALAR, ENDS_STAR } end;
    slice tuple; /* in /a/[]/{x,y}/? the text between the braces, with `steps` ending at []; empty if there is no tuple */
} index_read_path;

/* False: not a valid path, and `*position_out` is where parsing failed. Names point into the text. */
bool index__read_path(slice text, index_read_path *path_out, size_t *position_out);
bool index__read_tuple_member(slice text, index_read_path *path); /* appends the member's steps to `path`; false if it is not valid */

/* Access to the members of a settings document. */
slice index__text(slice document, const char *key); /* empty if missing or not a string */
bool index__has(slice document, const char *key);   /* true if present and not null */
MUST_CHECK err index__list(op *o, slice document, const char *key, size_t most, slice *list_out,
                           size_t *n_out);        /* must be an array; empty if missing */
bool index__next(doc_walk *w, slice *object_out); /* the next element, or an empty slice if it is not an object */

MUST_CHECK err index__read_keys(op *o, slice document, index_policy *policy);
MUST_CHECK err index__read_spatials(op *o, slice document, index_policy *policy);
MUST_CHECK err index__read_texts(op *o, slice document, index_policy *policy);
MUST_CHECK err index__read_vectors(op *o, slice document, index_policy *policy);
