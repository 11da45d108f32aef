/* exec.h — runs one page of a query over a part of a container. On a worker thread; a `quick` page may run on a loop.
 *
 * Plain queries stream: items are read in number order and their rows written until the page is full; the cursor says where the next page
 * begins. Queries with ORDER BY, GROUP BY or DISTINCT read only as many items as the page needs if an index has their order. Otherwise each
 * page reads all items, and keeps no more rows than it returns. Such a query continues after the last row's order values and item number,
 * after the last key, or after a count of rows. If time runs out while groups are being built, the groups so far go into the continuation,
 * if they are small enough. */
#pragma once

#include "query/cost.h"
#include "query/reasons.h"

typedef struct query_udfs query_udfs; /* query/udf.h */

/* How a query with GROUP BY or DISTINCT continues on the next page. */
typedef enum query_stage {
    STAGE_WHOLE,   /* each page reads all items, and continues after the last row's key */
    STAGE_CARRIED, /* the continuation carries the groups of all items before the cursor; no rows until every item was read */
    STAGE_FOUND,   /* the continuation carries the groups of all items; pages only return rows */
    STAGE_PARTS /* for a query that a plan rewrote: each page returns the groups of its own items, and the client merges them, as it merges
                   ranges. Every page has rows, since some clients take an empty page for the end */
} query_stage;

/* An item of which pages have returned some rows, and not all (JOINs). After a split, a page may end before it comes back to that item:
 * then there are several. */
typedef struct query_begun {
    uint64_t number; /* the item's */
    uint64_t rows;   /* its rows so far */
    epk epk;         /* where it is */
} query_begun;

enum { QUERY_BEGUN_MAX = ITEM_STRETCHES_MAX };

/* The part of a continuation beside the cursor. */
typedef struct query_position {
    const query_begun *begun; /* up to QUERY_BEGUN_MAX */
    size_t begun_n;
    uint64_t skipped;     /* rows skipped for OFFSET so far */
    uint64_t given;       /* rows returned so far; for TOP and LIMIT, and for GROUP BY and DISTINCT */
    uint64_t passed;      /* ORDER BY: rows so far, returned or skipped */
    bool ordered;         /* continue after the row below: in the order of ORDER BY, of groups or of distinct values */
    query_value *values;  /* that row's order values; query_position_values says how many */
    uint64_t number, row; /* that row's item, and its index among the item's rows */
    uint32_t cut;         /* bit mask of the values that were shortened (query/position.h) */
    uint64_t check;       /* hash of the full values, if any was shortened */
    query_stage stage;
    slice carried;      /* groups so far: a BSON list (group.h), in the operation's arena */
    slice carried_from; /* lower bound of the range of `carried`; set by the writer of continuations */
} query_position;

/* For the header x-ms-documentdb-query-metrics and for explain. */
typedef struct query_metrics {
    uint64_t read, read_bytes; /* items loaded */
    uint64_t matched;          /* loaded items that passed WHERE */
    uint64_t entries;          /* index entries visited, including those that were only counted */
    uint64_t rows, rows_bytes;
    uint64_t took_us;
    uint64_t calls, calls_us;             /* UDF calls whose values were used; time spent in all UDF calls */
    uint64_t index_us, load_us, write_us; /* parts of took_us: finding, loading, writing; only if `timed` */
} query_metrics;

/* An index that the query uses or could use. For the header x-ms-cosmos-index-utilization and for explain. */
typedef struct query_index_note {
    bool used;          /* false: not used, but it would help */
    bool composite;     /* several specs: "/a ASC", "/b DESC"; otherwise one: "/a/?", "/tags/[]/?" */
    const slice *specs; /* these and the filter live in the page's arena (op->arena) */
    size_t specs_n;
    slice filter;     /* the condition of WHERE that it serves: "(ROOT.a = 1)"; empty for ORDER BY */
    bool precise;     /* the index alone decides */
    bool impact_high; /* it saves most of the work */
} query_index_note;

/* How one range, or one logical partition, was read. For query/explain.h; lives in the page's arena. */
typedef struct query_part {
    uint32_t range_id;
    uint64_t items; /* estimated number of items in it; 0: unknown */
    bool asked;     /* the index was used; false: there is none, it is being replaced, or the query needs every item */
    bool small;     /* a small partition without index entries of its own: all its items are read */
    find_way way;
    const find_demand *used; /* WAY_BY_NUMBER, WAY_COVERED */
    const find_demand *demands;
    size_t demands_n;
    uint32_t intersected; /* demands that were intersected, as a bit mask */
    slice order;          /* WAY_IN_ORDER: "/a ASC", or for a composite index "/a ASC, /b DESC"; WAY_BY_KEY: "/a/?" */
    bool backward;
    bool too_many; /* WAY_SCAN: each condition has too many entries for the index to pay off */
    slice vector;  /* path of the vector graph that could serve the query; empty: none */
    find_graph_use graph;
    uint64_t entries;
    query_done done;
} query_part;

/* One operand of WHERE's AND, and whether the index answers it. */
typedef struct query_where_part {
    const query_expr *expr;
    slice text;
    slice path; /* "/a/?"; empty: no path, or several */
    bool answered;
    bool exact;       /* the index alone decides */
    query_reason why; /* why it is not answered */
} query_where_part;

typedef struct query_trace {
    query_part *parts;
    size_t n, cap;
    query_where_part *where; /* the first QUERY_WHERE_SHOWN operands */
    size_t where_n;
    bool where_more, no_index;
} query_trace;

enum { QUERY_WHERE_SHOWN = 50 };

/* ---- a page ---- */

/* An item as a row; valid until the sink returns. */
typedef struct query_found {
    const container *container;
    item_head head;
    slice body;     /* BSON */
    uint64_t times; /* how many items it stands for: more than one only if the find asks for one item of each key */
} query_found;

/* Takes a row. Returns false to end the page; that row is then not taken. */
typedef bool (*query_sink)(void *context, const query_found *row);

/* The query and how to answer it. */
typedef struct query_ask {
    const items *items;
    op *op;
    container *container;
    const query *query;
    size_t rows_max, bytes_max;
    int64_t until_us;  /* deadline, monotonic: the page then ends with the rows it has, if it can; 0: none */
    query_udfs *udfs;  /* runs the UDFs (query/udf.h); NULL: the query may call none */
    bool quick;        /* for loops: a page that would take long ends with E_QUERY_TOO_LONG and charges nothing; run it on a worker then */
    bool narrow;       /* as in query_find */
    bool verified;     /* as in query_find */
    bool scans;        /* read all items, as if there were no index; for comparison in tests */
    bool full_goes_on; /* a page with rows_max rows has a next page, if only an empty one, as on the service; not with ORDER BY or groups,
                          which look ahead */
    bool sorts;        /* sort if no index has the order; otherwise such an ORDER BY is rejected, as on the service */

    /* where rows go: either `out` or `sink` */
    buf *out;        /* JSON, separated by commas */
    query_sink sink; /* whole items; for queries that select whole items */
    void *sink_context;

    /* what else to report */
    bool timed;         /* fill the *_us metrics, which reads the clock twice for each item */
    bool notes_indexes; /* fill outcome.indexes */
    query_trace *trace; /* is filled; NULL: not wanted */
} query_ask;

/* The result of a page, beside its rows. */
typedef struct query_outcome {
    size_t rows;
    uint64_t counted; /* items that pass, counted by the index in the place of rows, if the find wants only their number */
    bool more;
    slice index;    /* the key index by which the last range was read, by its name; empty: none. In the page's arena */
    bool keys_only; /* a range was read by its keys: counted, or one item of each key */
    item_mark mark;
    query_metrics metrics;
    query_index_note *indexes;
    size_t indexes_n;
} query_outcome;

typedef struct query_page {
    query_ask ask;           /* in */
    item_cursor *cursor;     /* in and out: with `position`, where this page begins, then where the next one begins */
    query_position position; /* in and out: all zero for the first page */
    query_outcome outcome;   /* out */
} query_page;

/* A page with default settings: rows go to `out` as JSON, as many as fit an answer; the index is used; no deadline. The caller sets the
 * other members of `ask`, and the position if it is not the first page. */
void query_page_init(query_page *p, const items *items, op *o, container *c, const query *q, item_cursor *cursor, buf *out);

enum { QUERY_CARRIED_BYTES_MAX = 6 * 1024 }; /* in base64 it still fits a header field that every client accepts */

/* The number of values in a position of this query. */
size_t query_position_values(const query *q);

/* After an error the cursor and the position are undefined: keep copies if the page is to be run again. */
MUST_CHECK err query_run_page(query_page *p);
