/* explain.h — a page of a query that was run, told to people: which way its items were found and why, what it cost, what would help.
 *
 * In words, line by line, and as JSON that holds the words too. Pure: everything comes from the page, which was run with a trace, with
 * notes of indexes, and timed. */
#pragma once

#include "query/exec.h"

typedef struct query_explained {
    const query_page *page;
    slice partition;     /* the key, as JSON; empty: all ranges */
    uint64_t compile_us; /* taken by reading and binding the text */
    double charge_ru;
} query_explained;

void query_explain_words(buf *out, const query_explained *e); /* lines, each with its end */
void query_explain_json(buf *out, const query_explained *e);
