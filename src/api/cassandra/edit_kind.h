/* edit_kind.h — writes of rows as an edit of the core: the committer reads the row, checks the conditions of IF, and merges the change.
 *
 * A mutation is one change of one row. It is made by write.c, and is immutable afterwards. */
#pragma once

#include "api/cassandra/row.h"

typedef enum cass_assign_kind {
    CASS_ASSIGN_SET,     /* a cell; a whole collection */
    CASS_ASSIGN_ADD,     /* to a counter; elements to a collection */
    CASS_ASSIGN_PREPEND, /* elements before a list */
    CASS_ASSIGN_REMOVE,  /* elements by value (list, set) or key (map) */
    CASS_ASSIGN_ELEMENT, /* one element by index (list), key (map, set: null deletes it) or field number (user type) */
} cass_assign_kind;

typedef struct cass_assign {
    uint32_t column;
    cass_assign_kind kind;
    cql_value key, value; /* a null value deletes */
} cass_assign;

typedef struct cass_mutation {
    const cass_table *table;
    const cql_value *partition, *clustering; /* clustering NULL: the static row */
    int64_t us, now_s;
    int32_t ttl;
    bool inserts;     /* the row exists even if all its cells are null */
    bool deletes_row; /* before the assignments */
    bool is_hidden;   /* a deleted range has the row: writes up to `hidden_us` do not count (hiding.h) */
    int64_t hidden_us;
    const cass_range *range; /* of a static row: a range of its partition that is deleted; NULL: none */
    const cass_assign *assigns;
    uint32_t assigns_n;
    size_t bytes;         /* of the keys and values of the assignments */
    uint32_t collections; /* assignments to collections, each of which takes the whole of it */

    bool if_exists, if_not_exists;
    const cql_relation *ifs;
    uint32_t ifs_n;
    cql_run run;
    bool prevails; /* its statement has conditions, here or on another row: it is later than all that is there */
    bool undoes;   /* an unmet condition is E_PRECONDITION, which undoes the whole commit; otherwise the row is left as it is */
} cass_mutation;

static inline bool cass_mutation_is_conditional(const cass_mutation *m) {
    return m->if_exists || m->if_not_exists || m->ifs_n;
}

bool cass_mutation_same_partition(const cass_mutation *a, const cass_mutation *b);

/* The edit of a mutation. After the commit, item_op.left and an empty reply of a conditional one mean that its conditions were not met. */
item_edit cass_edit_of(const cass_mutation *m);
void cass_edit_register(void); /* at start */

/* Whether the conditions hold for the row, as it is read. */
MUST_CHECK err cass_conditions_hold(op *o, const cass_mutation *m, const cass_row *row, bool live, bool *holds_out);
