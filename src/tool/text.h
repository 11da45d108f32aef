/* text.h — what others wrote, shown in a terminal: nothing in it moves the cursor, and columns stay columns. Pure. */
#pragma once

#include "base/buf.h"

/* Adds as much of a UTF-8 text as fits into `columns` and says how many it took. A text that does not fit ends with "…". What is not text,
 * or would steer the terminal, is shown as '?'. */
size_t text_add(buf *out, slice text, size_t columns);

/* The same, filled up with blanks: behind the text, or before it. */
void text_add_left(buf *out, slice text, size_t columns);
void text_add_right(buf *out, slice text, size_t columns);

/* 1234567 as "1,234,567"; 1234.5 as "1,235"; below 100 with one decimal unless it is whole. */
void text_add_number(buf *out, double value);

/* The line of a text that the UTF-16 units [start, end) are in, and under them carets:
 *     SELECT * FORM c
 *              ^^^^
 * Only the line's own part of them is marked; one caret at least, behind the last character if need be. */
void text_add_marked(buf *out, slice text, size_t start, size_t end);

/* "1 item", "1,234 items". */
void text_add_count(buf *out, double n, const char *singular);
