/* key_int.h — within mql/: an index, and the keys of places and words. */
#pragma once

#include "mql/key.h"
#include "mql/match_int.h"

struct mql_index {
    mql_sort pattern;
    const mql_collation *collation;
    const mql_match *partial; /* NULL: all documents */
    bool sparse;
    bool wildcard; /* keys are (path, value) for each value below `stem` */
    slice stem;    /* dotted; empty: the whole document */
    mql_index_kind kind;
    slice place; /* of places: the path of the geometry … */
    const slice *place_parts;
    size_t place_parts_n;
    mql_text_index text; /* of words */
};

typedef struct mql__listing {
    const mql_index *index;
    mql_key_visit visit;
    void *context;
    buf *key;
} mql__listing;

/* Reads {at: "2dsphere"} or {_fts: "text"}, the first part of a key that is not a value. */
MUST_CHECK err mql__read_special(op *o, slice spec, const doc_element *special, mql_index *x);

/* The keys of a document in an index of places or words. */
MUST_CHECK err mql__list_special(mql_run *r, const mql__listing *l, slice document);
