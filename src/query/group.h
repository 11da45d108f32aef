/* group.h — GROUP BY and aggregates: rows are added to the group of their values; then each group is shown. Without GROUP BY there is one
 * group, even if no row came. */
#pragma once

#include "query/distinct.h"
#include "query/eval.h"

typedef struct query_groups query_groups;

/* Everything is kept in `keep`, which must outlive the rows. */
query_groups *query_groups_new(arena *keep, const query_select *s);

/* The row that the runner's slots are set to; it stands for so many alike. False: it would need a new group, and there are `most`. */
bool query_groups_add(query_groups *g, query_runner *r, uint64_t times, size_t most);
size_t query_groups_count(const query_groups *g);
void query_groups_count_keys(const query_groups *g, query_key_count *to);

/* From now on rows of groups that are not `wanted` are passed over. */
void query_groups_only(query_groups *g, bool (*wanted)(void *context, const query_value *keys), void *context);

/* Has a SUM met what is no number, so that nothing can be added to it any more? Without GROUP BY. */
bool query_groups_spoiled(const query_groups *g);

/* What was added so far, as a list for a later page. False: it would have more than `bytes_max`, or cannot be told; or what is read was
 * never saved. */
bool query_groups_save(const query_groups *g, bson_t *list, size_t bytes_max);
bool query_groups_load(query_groups *g, query_runner *r, slice list);

/* From now on in the order of their values. */
void query_groups_sort(query_groups *g);

/* Keeps the first `n` in that order, and frees everything else in `keep`, `g` included. Returns the new groups; *last_out: the last one's
 * values. */
query_groups *query_groups_cut(query_groups *g, size_t n, const query_value **last_out);

/* Calls `visit` for each group, in the order their first rows came: query_project then gives the group's row. */
void query_groups_each(query_groups *g, query_runner *r, query_row visit, void *context);
