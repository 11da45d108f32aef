/* rows.h — items in files: JSON lines, a JSON array, or CSV. One item at a time, in bounded memory.
 *
 * CSV (RFC 4180): the first record names the columns. A dot in a name nests: address.city is /address/city. Fields in quotes are strings;
 * others are numbers, true, false or null if they look so, and missing if they are empty. */
#pragma once

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"

typedef enum rows_format { ROWS_LINES, ROWS_ARRAY, ROWS_CSV } rows_format;

enum { ROWS_COLUMNS_MAX = 1000, ROWS_NESTING_MAX = 16 };

/* "jsonl", "json" or "csv"; if `text` is NULL by the end of the file's name, JSON lines if that says nothing. False: no such format. */
bool rows_format_of(const char *text, const char *file, rows_format *format_out);

/* ---- reading ---- */

typedef enum rows_result {
    ROWS_ITEM,
    ROWS_BAD, /* this row is no item, with the reason; the next call goes on after it */
    ROWS_END,
    ROWS_BROKEN, /* reading cannot go on, with the reason */
} rows_result;

typedef struct rows_reader {
    rows_format format;
    FILE *file;
    uint64_t offset, line;         /* of the next byte; lines count from 1 */
    uint64_t row_offset, row_line; /* where the row begins */
    buf row;                       /* the item as JSON; of a bad row as much as was read */
    char why[200];
    bool inside; /* of a JSON array, after its first bracket */
    arena arena;
    buf field;
    slice columns[ROWS_COLUMNS_MAX];
    size_t columns_n;
} rows_reader;

/* Reads the head of a CSV. False: there is none, or it has too many columns, with the reason in r->why. */
bool rows_open(rows_reader *r, FILE *file, rows_format format);
void rows_close(rows_reader *r); /* not the file */
rows_result rows_next(rows_reader *r);

/* Goes on at a row of before: row_offset and row_line as they were. False: the file cannot be moved in. */
bool rows_seek(rows_reader *r, uint64_t offset, uint64_t line);

/* ---- writing ---- */

typedef struct rows_writer {
    rows_format format;
    arena arena;
    slice columns[ROWS_COLUMNS_MAX];
    size_t columns_n;
    uint64_t rows;
    uint64_t cut; /* rows with properties that are no columns */
} rows_writer;

void rows_writer_open(rows_writer *w, rows_format format);
void rows_writer_close(rows_writer *w);

/* Columns of a CSV: from a list with commas, or those of an item, called for some items before the first row. */
void rows_writer_columns(rows_writer *w, slice list);
void rows_writer_learn(rows_writer *w, slice bson);

void rows_begin(rows_writer *w, buf *out); /* the bracket of an array, the names of the columns */
void rows_add(rows_writer *w, buf *out, slice bson);
void rows_end(rows_writer *w, buf *out);
