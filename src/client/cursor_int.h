/* cursor_int.h — what a cursor is made of: a page of rows, and a source that fills it. */
#pragma once

#include "client/client_int.h"
#include <tesela/cursor.h>

typedef struct cursor_source {
    /* Appends the next rows with client__cursor_add, possibly none. TESELA_DONE: there are no more. */
    tesela_status (*fill)(tesela_cursor *cursor, tesela_error *error);
    /* Appends the continuation after the rows so far; nothing if there is none. May be NULL. */
    void (*continuation)(tesela_cursor *cursor, buf *out);
    void (*free)(void *state);
} cursor_source;

struct tesela_cursor {
    const cursor_source *source;
    void *state;
    buf text; /* the page's rows, each with a zero byte after it */
    struct cursor_row {
        size_t start, n;
    } * rows;
    size_t rows_n, rows_cap, at;
    bool done;
    buf continuation;
    double charge;
    unsigned requests;
    char activity_id[40];
};

tesela_cursor *client__cursor_new(const cursor_source *source, void *state, size_t page_bytes_max);
void client__cursor_add(tesela_cursor *c, slice row);

/* Counts the charge and so on of a request. */
void client__cursor_count(tesela_cursor *c, const exchange *x);

/* Adds every element of the member `name` of a page's body; the number of them, −1: there is no such array. */
int64_t client__cursor_add_all(tesela_cursor *c, slice body, const char *name);
