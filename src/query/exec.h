/* exec.h — a page of a query's rows over a part of a container. On a worker, never on a loop.
 *
 * Plain queries stream: items are read in number order, their rows written until the page is full, and the cursor says where to go on.
 * Those with an order (ORDER BY, GROUP BY, DISTINCT) read as many items as the page has rows if an index has that order, otherwise all of
 * them for each page, and keep no more than the page's rows; where they go on is by order values and number, by the last key, or by how
 * many rows were given. What groups have come to when a page's time is up goes with its continuation, if it is small. */
#pragma once

#include "query/cost.h"

typedef struct query_udfs query_udfs; /* query/udf.h */

/* Groups and distinct values whose items cannot be read within one page. */
typedef enum query_stage {
    STAGE_WHOLE,   /* each page reads all of them, and goes on behind the last row's values */
    STAGE_CARRIED, /* items before the cursor are in what is carried; until all are, pages have no rows */
    STAGE_FOUND,   /* all items are; rows come from it */
    STAGE_PARTS /* of a text that the plan rewrote: each page has the groups of its own items, and the client adds them up, as it does with
                   ranges. It has rows: there are clients that take a page without any for the end */
} query_stage;

/* What a continuation holds beside the cursor. */
typedef struct query_position {
    uint64_t rows_of_item; /* of the item after the cursor: given already (JOINs) */
    uint64_t skipped;      /* by OFFSET */
    uint64_t given;        /* rows so far: of TOP and LIMIT; of groups and DISTINCT */
    uint64_t passed;       /* ORDER BY: rows so far, shown or not */
    bool ordered;          /* rows after this one: in the order of ORDER BY, of groups or of distinct values */
    query_value *values;   /* its order values (query_position_values) */
    uint64_t number, row;  /* its item's number, its place among the item's rows; otherwise the number that rows_of_item is about */
    uint32_t cut;          /* which of the values are cut (query/position.h), as bits */
    uint64_t check;        /* of the whole values, if any is */
    query_stage stage;
    slice carried;      /* a BSON list (group.h), in the operation's memory */
    slice carried_from; /* which range it is of; for whoever writes continuations */
} query_position;

/* For x-ms-documentdb-query-metrics and for people. */
typedef struct query_metrics {
    uint64_t read, read_bytes; /* items looked at */
    uint64_t matched;          /* of them: WHERE let them through */
    uint64_t entries;          /* of the index, looked at; those that were only counted too */
    uint64_t rows, rows_bytes;
    uint64_t took_us;
    uint64_t calls, calls_us;             /* of user-defined functions: whose values were used; the time they took */
    uint64_t index_us, load_us, write_us; /* of it: finding items, loading them, writing rows; if the page is `timed` */
} query_metrics;

/* An index that the query uses or could use: for x-ms-cosmos-index-utilization and for people. */
typedef struct query_index_note {
    bool used;          /* or it would help */
    bool composite;     /* several specs: "/a ASC", "/b DESC"; otherwise one: "/a/?", "/tags/[]/?" */
    const slice *specs; /* these and the filter live in the page's arena (op->arena) */
    size_t specs_n;
    slice filter;     /* what of WHERE it is about: "(ROOT.a = 1)"; empty for ORDER BY */
    bool precise;     /* the index alone decides */
    bool impact_high; /* it spares most of the work */
} query_index_note;

/* How one range, or one logical partition, was read; for people (query/explain.h). Lives in the page's arena. */
typedef struct query_part {
    uint32_t range_id;
    uint64_t items; /* it has about so many; 0: not known */
    bool asked;     /* the index was: otherwise there is none, it is just being replaced, or the query needs every item */
    bool small;     /* a partition that has no entries of its own, and is read whole */
    find_way way;
    const find_demand *used; /* WAY_BY_NUMBER, WAY_COVERED */
    const find_demand *demands;
    size_t demands_n;
    uint32_t intersected; /* of the demands, as bits */
    slice order;          /* WAY_IN_ORDER: "/a ASC", of a composite index "/a ASC, /b DESC"; WAY_BY_KEY: "/a/?" */
    bool backward;
    bool too_many; /* WAY_SCAN: every condition has too many entries */
    slice vector;  /* the path whose graph was meant to be asked; empty: none */
    find_graph_use graph;
    uint64_t entries;
    query_done done;
} query_part;

/* A condition of WHERE's AND, and what the index makes of it. */
typedef struct query_where_part {
    const query_expr *expr;
    slice text;
    slice path; /* "/a/?"; empty: of several, or of none */
    bool answered;
    bool exact; /* the index alone decides */
    slice why;  /* not answered: a clause */
} query_where_part;

typedef struct query_trace {
    query_part *parts;
    size_t n, cap;
    query_where_part *where; /* the first QUERY_WHERE_SHOWN */
    size_t where_n;
    bool where_more, no_index;
} query_trace;

enum { QUERY_WHERE_SHOWN = 50 };

/* ---- a page ---- */

/* An item as a row: until the sink returns. */
typedef struct query_found {
    const container *container;
    item_head head;
    slice body; /* BSON */
} query_found;

/* Takes a row; false: no more, and this one was not taken. */
typedef bool (*query_sink)(void *context, const query_found *row);

/* What is asked, and how it is to be answered. */
typedef struct query_ask {
    const items *items;
    op *op;
    container *container;
    const query *query;
    size_t rows_max, bytes_max;
    int64_t until_us; /* monotonic: then the page ends with what it has, if it can; 0: it has time */
    query_udfs *udfs; /* runs its user-defined functions (query/udf.h); NULL: it may have none */
    bool quick;       /* on a loop: what would take long ends with E_QUERY_TOO_LONG, nothing done and nothing charged; then ask a worker */
    bool scans;       /* look at all items, as if there were no index: for comparison */
    bool sorts;       /* an order that no index has is sorted; otherwise it is refused, as the service does */

    /* where rows go: the one or the other */
    buf *out;        /* as JSON, with commas between */
    query_sink sink; /* as items: rows are whole items */
    void *sink_context;

    /* what is to be told beside them */
    bool timed;         /* measure what is in metrics, which costs two looks at the clock for each item */
    bool notes_indexes; /* fill indexes */
    query_trace *trace; /* filled; NULL: not wanted */
} query_ask;

/* What came of it, beside the rows. */
typedef struct query_outcome {
    size_t rows;
    bool more;
    item_mark mark;
    query_metrics metrics;
    query_index_note *indexes;
    size_t indexes_n;
} query_outcome;

typedef struct query_page {
    query_ask ask;           /* in */
    item_cursor *cursor;     /* in and out: with the position, where the page begins, and then where the next one does */
    query_position position; /* of a query that begins: zero */
    query_outcome outcome;   /* out */
} query_page;

/* The first page of a query, or, with a position, one that goes on: all of an answer's rows, as JSON, by the index, without a time limit.
 * The caller sets what else it wants of `ask`. */
void query_page_init(query_page *p, const items *items, op *o, container *c, const query *q, item_cursor *cursor, buf *out);

enum { QUERY_CARRIED_BYTES_MAX = 6 * 1024 }; /* in base64 it is a header field that every client takes */

/* How many values the position of such a query has. */
size_t query_position_values(const query *q);

/* After an error the cursor and the position are not where they were: keep copies to begin again. */
MUST_CHECK err query_run_page(query_page *p);
