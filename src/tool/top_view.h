/* top_view.h — the output of `tesela top` as text: from the server's JSON to rows, and from rows to a screen or a plain table. Pure
 * functions. */
#pragma once

#include "base/buf.h"

typedef enum top_order {
    TOP_BY_NAME,
    TOP_BY_NORMALIZED,
    TOP_BY_RU,
    TOP_BY_THROTTLED,
    TOP_BY_ITEMS,
    TOP_BY_SIZE,
    TOP_BY_LATENCY,
    TOP_ORDERS
} top_order;

/* A container, or one of its ranges. Texts point into the answer that the rows were read from. */
typedef struct top_row {
    slice database, container;
    slice api;   /* the API that made the container; empty in a range's row */
    slice range; /* empty: the container as a whole */
    slice hottest;
    double normalized, ru, share, throttled, requests, items, bytes, latency_us, latency_max_us;
    size_t position;     /* in the answer */
    size_t container_at; /* position of its container in the answer */
} top_row;

typedef struct top_rows {
    top_row *list;
    size_t n, containers;
    double total; /* number of all ranges; the answer may contain fewer */
} top_rows;

/* Reads the answer of GET /_tesela/ranges, as BSON. The caller frees the list. */
top_rows top_rows_read(slice ranges);

/* Sorts containers by the order's value, largest first (by name: unchanged), each followed by its ranges in the same order. */
void top_rows_sort(top_rows *rows, top_order order);

typedef struct top_server {
    double uptime_s, databases, containers, ranges, connections, memory_bytes, faults;
} top_server;
top_server top_server_read(slice overview);

typedef struct top_screen {
    size_t columns, lines;
    size_t scroll; /* number of rows scrolled off above */
    top_order order;
    bool colour;
    const char *endpoint;
    const char *trouble; /* why the last request failed; NULL: it succeeded */
} top_screen;

/* The whole screen, from its upper left corner. */
void top_draw(buf *out, const top_screen *screen, const top_server *server, const top_rows *rows);
size_t top_lines_of_rows(const top_screen *screen); /* number of rows that fit */

/* Writes one line per row with every column, without escapes. */
void top_write_table(buf *out, const top_rows *rows);
