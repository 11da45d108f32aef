/* select.h — within api/cassandra: the state of a SELECT that is running.
 *
 * Rows come from one of five sources, page by page: single rows by their keys (call_read), ranges of a partition (call_rows), a part of the
 * hash space (call_rows), an index (call_find), the change feed (call_follow). Each row goes through the filters and is encoded at once, on
 * the thread that read it. */
#pragma once

#include "api/cassandra/execute.h"
#include "api/cassandra/page.h"
#include "api/cassandra/plain.h"

#define CASS_NO_LIMIT INT64_MAX

typedef struct cass_selecting {
    cass_request *q;
    const cass_statement *s;
    const cass_selection *selection;

    /* which rows */
    const cql_value *keys; /* of the partitions, one after another */
    uint32_t keys_n;
    const cql_range *ranges; /* of each partition; points have both ends equal */
    uint32_t ranges_n;
    bool scans;   /* a part of the hash space */
    bool follows; /* … its changes */
    bool finds;   /* … by `found_by`, a condition that an index serves */
    slice found_by;
    epk min, max;

    /* where it is */
    cass_page page;
    bool static_read; /* the static row of the current partition was looked for */
    bool reading_static;
    bool stepping, again; /* of select.c */
    bool resumed;         /* within a partition that the page before began */

    /* the current partition */
    cass_row statics;
    arena statics_bytes; /* what its values point to */
    bool has_statics;
    bool any_row;  /* one of its rows passed */
    buf partition; /* bytes of its key */

    /* results */
    int64_t limit, page_rows;
    pieces out;
    size_t row_bytes; /* about as many as the current row takes */
    uint32_t n;
    bool full; /* the page ended before a row */
    bool done; /* nothing follows */
    err code;  /* of a row; ends the page */
    bool groups;
    cass_gathering gathering;
    cql_value *group;  /* values of the columns of GROUP BY */
    arena group_bytes; /* of one group */
    arena scratch;     /* of one row */
    cass_plain *plain; /* NULL: all rows are read as cells */
    cass_row *sorted;  /* rows to sort; NULL: no sorting */
    uint32_t sorted_n, sorted_room;
    op row_op, group_op; /* of `scratch` and `group_bytes`; last, since they are not cleared */
} cass_selecting;

/* Takes one row: filters, limits, groups, encodes. False: the page is full, or `code` is set; the row counts as not read. */
bool cass_selecting_take(cass_selecting *g, slice body);
bool cass_selecting_take_row(cass_selecting *g, cass_row *row);

/* The partition ends: if it has static columns only, they are a row. False: the page is full. */
bool cass_selecting_end_partition(cass_selecting *g);

/* A changed row, which may be the static columns of its partition. */
bool cass_selecting_take_change(cass_selecting *g, slice body);

/* Does the next step, or answers. */
void cass_selecting_go_on(cass_selecting *g);
MUST_CHECK err cass_select_changes(cass_selecting *g); /* select_changes.c */

/* The condition of an index that finds the rows; empty: no index can. */
MUST_CHECK err cass_index_condition(cass_selecting *g, slice *where_out);

/* The part of the hash space whose keys have the tokens [first, last]. The hash of a key begins with two zero bits and its token
 * (partition/epk.h), so tokens are in the order of the hash space. */
void cass_token_range(int64_t first, int64_t last, epk *min_out, epk *max_out);

MUST_CHECK err cass_selecting_finish(cass_selecting *g); /* the last group; sorted rows */
