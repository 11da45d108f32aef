/* source.h — where an import takes its items from: a file, or a container. */
#pragma once

#include "tool/endpoint.h"
#include "tool/journal.h"
#include "tool/rows.h"

typedef struct source {
    FILE *file; /* or: */
    tesela_cursor *cursor;
    rows_reader rows;
    double bytes; /* of the file; 0: not known */
    size_t page_n, page_at;
    uint64_t page_first; /* number of the page's first row */
    buf continuation;    /* of the page that row belongs to; empty: the first one */
    buf next;            /* of the page after it */
    uint64_t number;     /* of the row, from 1: a line of the file, or a row of the container */
    slice item;          /* the row's JSON, until the next call */
    slice id;            /* with number_ids: of the item it was given */
    buf text;
    char why[256];
    bool number_ids;
} source;

/* Both go on where the journal says. False: prints why. */
bool source_open_file(source *s, const char *name, rows_format format, const journal *j);
bool source_open_container(source *s, tesela_container *from, const journal *j);
void source_close(source *s);

rows_result source_next(source *s); /* as rows_next */

/* Where to go on to get the row again; of a container the first row of its page. */
void source_position(const source *s, uint64_t *offset_out, uint64_t *line_out);
