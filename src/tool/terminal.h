/* terminal.h — shows untrusted text in a terminal: no character can control the terminal, and columns stay aligned. Pure functions. */
#pragma once

#include "base/buf.h"

/* Adds as much of a UTF-8 text as fits into `columns`, and returns the columns used. A text that does not fit ends with "…". Invalid bytes
 * and control characters are shown as '?'. */
size_t text_add(buf *out, slice text, size_t columns);

/* The same, padded with blanks after the text (left) or before it (right). */
void text_add_left(buf *out, slice text, size_t columns);
void text_add_right(buf *out, slice text, size_t columns);

/* 1234567 as "1,234,567"; 1234.5 as "1,235"; values below 100 get one decimal unless they are whole. */
void text_add_number(buf *out, double value);

/* Adds the line of the text that contains the UTF-16 units [start, end), with carets below them:
 *     SELECT * FORM c
 *              ^^^^
 * Only the part within that line is marked; with at least one caret, after the last character if necessary. */
void text_add_marked(buf *out, slice text, size_t start, size_t end);

/* "1 item", "1,234 items". */
void text_add_count(buf *out, double n, const char *singular);
