/* tesela/cursor.h — a cursor over the rows of a query or a feed.
 *
 *   const char *row;
 *   size_t length;
 *   while ((status = tesela_cursor_next(cursor, &row, &length, &error)) == TESELA_OK) { puts(row); }
 *   // TESELA_DONE: all rows were read
 *   tesela_cursor_close(cursor);
 *
 * A cursor belongs to one thread at a time. Pages are read when they are needed: while the application works on rows, nothing is sent. */
#ifndef TESELA_CURSOR_H
#define TESELA_CURSOR_H

#include <tesela/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tesela_cursor tesela_cursor;

/* Frees a cursor and its rows; requests under way are dropped. NULL is allowed. */
TESELA_API void tesela_cursor_close(tesela_cursor *cursor);

/* The next row, JSON text ending with a zero byte that `length_out` (may be NULL) does not count. It lives until the next call on this
 * cursor. TESELA_DONE: there are no more. After an error that passes (TESELA_THROTTLED, TESELA_NO_CONNECTION) the call can be repeated. */
TESELA_API TESELA_CHECKED tesela_status tesela_cursor_next(tesela_cursor *cursor, const char **row_out, size_t *length_out,
                                                           tesela_error *error);

/* The next rows, at most as many as a page has, possibly none. They live until the next call on this cursor. TESELA_DONE: there are no more
 * pages. */
TESELA_API TESELA_CHECKED tesela_status tesela_cursor_page(tesela_cursor *cursor, size_t *count_out, tesela_error *error);

/* Row `index` of the page that tesela_cursor_page has read; NULL if there is no such row. */
TESELA_API const char *tesela_cursor_row(const tesela_cursor *cursor, size_t index, size_t *length_out);

/* Where to go on, for the `continuation` of another cursor of the same query: after the last row that was returned. NULL at the end, and
 * for queries that cannot be continued (DISTINCT, GROUP BY, aggregates). Lives until the next call on this cursor. */
TESELA_API const char *tesela_cursor_continuation(tesela_cursor *cursor);

/* Request units of all requests so far, and their number. */
TESELA_API double tesela_cursor_charge(const tesela_cursor *cursor);
TESELA_API unsigned tesela_cursor_requests(const tesela_cursor *cursor);

/* The activity id of the last request. Lives until the next call on this cursor. */
TESELA_API const char *tesela_cursor_activity_id(const tesela_cursor *cursor);

/* ---- feeds of the account ---- */

/* All databases of the account, as JSON. */
TESELA_API TESELA_CHECKED tesela_status tesela_databases(tesela_client *client, tesela_cursor **cursor_out, tesela_error *error);

/* All containers of a database, as JSON. */
TESELA_API TESELA_CHECKED tesela_status tesela_containers(tesela_client *client, const char *database, tesela_cursor **cursor_out,
                                                          tesela_error *error);

#ifdef __cplusplus
}
#endif
#endif
