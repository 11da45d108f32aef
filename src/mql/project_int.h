/* project_int.h — within mql/: the tree of a projection. */
#pragma once

#include "mql/project.h"

typedef enum mql__field_kind {
    MQL__BRANCH,  /* fields below this one are projected */
    MQL__INCLUDE, /* unchanged; in an exclusion only _id can be this */
    MQL__EXCLUDE,
    MQL__SLICE, /* the field, with a part of its array */
    MQL__COMPUTED,
    MQL__FIRST_MATCH /* $elemMatch: the first element that matches */
} mql__field_kind;

typedef struct mql__field mql__field;
struct mql__field {
    slice name;
    mql__field_kind kind;
    bool computes;   /* this field or one below it is COMPUTED or FIRST_MATCH: it is added after the document's own fields */
    bool positional; /* on the path of the positional projection */
    const mql_expression *expression;
    const mql_match *match;
    int64_t skip, limit;             /* MQL__SLICE; a negative skip counts from the end */
    mql__field *first, *last, *next; /* children, in the order of the projection */
    mql__field *by_name;             /* the children again, as a search tree; its order, by keyed hashes, keeps it balanced */
    mql__field *less, *more;         /* in the parent's search tree */
    uint64_t hash;                   /* of the name */
};

/* A child by its name; NULL: none. */
mql__field *mql__find_field(const mql__field *parent, slice name);

struct mql_project {
    mql__field root;
    bool inclusion;
    bool positional;
    const mql_match *match; /* for the positional projection */
};
