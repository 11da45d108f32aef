/* cover.h — queries that need not load items: aggregates, groups and distinct values of one path, whose index entries tell all of it, and
 * counts of what conditions decide.
 *
 * What such a query is given in place of an item is a document with that one property, and how many items it stands for. */
#pragma once

#include "query/demand.h"

typedef struct query_cover {
    bool possible;     /* it groups, aggregates or asks for distinct values, and the order in which rows come does not matter to it */
    bool path_given;   /* all that it asks of an item is this path; otherwise nothing, or (see `counts`) */
    bool counts;       /* only its WHERE asks anything of an item: whoever knows how many pass can say the rest */
    bool multiplicity; /* how many items have a value matters */
    query_path path;
} query_cover;

query_cover query_cover_of(const query *q);

/* The document that has this spelled value at the path; an empty value: has nothing there. `ts` is set if the path is _ts. False: the entry
 * does not tell the value, ask the item. */
bool query_cover_item(arena *a, const query_cover *c, slice spelled, slice *body_out, uint32_t *ts_out);
