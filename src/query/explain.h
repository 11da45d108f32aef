/* explain.h — explains a page that was run: how its items were found and why, what it cost, and what would help.
 *
 * As lines of text, and as JSON that includes the text. Everything comes from the page, which must have been run with `trace`,
 * `notes_indexes` and `timed`. */
#pragma once

#include "query/exec.h"

typedef struct query_explained {
    const query_page *page;
    slice partition;     /* the partition key, as JSON; empty: all ranges */
    uint64_t compile_us; /* time to parse and bind the text */
    double charge_ru;
} query_explained;

void query_explain_words(buf *out, const query_explained *e); /* lines, each with its newline */
void query_explain_json(buf *out, const query_explained *e);
