/* tesela/query.h — queries in one logical partition, or across all of a container.
 *
 *   tesela_query_options options = {.parallelism = 8};
 *   tesela_query(orders, "SELECT * FROM c WHERE c.city = @city ORDER BY c.total DESC", "{\"@city\":\"Lima\"}", &options, &cursor, &error);
 *
 * Across partitions the server is asked for the query's plan, the query goes to each range that the plan names, and the rows are merged
 * here: ORDER BY, TOP, OFFSET LIMIT, DISTINCT, aggregates and GROUP BY. The rows and their order do not depend on `parallelism`. */
#ifndef TESELA_QUERY_H
#define TESELA_QUERY_H

#include <tesela/container.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero or NULL means the default; the whole may be NULL. */
typedef struct tesela_query_options {
    const tesela_key *key;     /* one logical partition, or with fewer components than the container's key all that begin with them */
    int page_items;            /* most rows of a page; the server's default */
    int parallelism;           /* requests in flight; 0: one range after the other; −1: as many as there are ranges */
    int buffered_items;        /* rows kept that were read ahead; 0: parallelism pages. Reading ahead stops when there are more */
    bool unordered;            /* rows of ranges in any order, a page of the server at a time: the fastest with parallelism, which is
                                  also the most pages held. ORDER BY, DISTINCT, GROUP BY and aggregates take no notice of it */
    const char *continuation;  /* from tesela_cursor_continuation */
    const char *consistency;   /* weaker than the account's */
    const char *session_token; /* of another client; default: the client's own */
    size_t memory;             /* 256 MB: what DISTINCT, GROUP BY and sorts may hold before they fail with TESELA_LIMIT */
} tesela_query_options;

/* Opens a cursor over the rows of a query. `parameters` is an object {"@name":value,…}, or the REST API's array; NULL: none. Nothing is
 * sent before the first row is asked for, so errors of the query come from tesela_cursor_next. The container must outlive the cursor. */
TESELA_API TESELA_CHECKED tesela_status tesela_query(tesela_container *container, const char *query, const char *parameters,
                                                     const tesela_query_options *options, tesela_cursor **cursor_out, tesela_error *error);

/* The server's plan of a query, as JSON in the response's body. */
TESELA_API tesela_status tesela_query_plan(tesela_container *container, const char *query, const char *parameters,
                                           tesela_response **response_out, tesela_error *error);

#ifdef __cplusplus
}
#endif
#endif
