/* group.h — GROUP BY and aggregates: rows are added to the group of their values; afterwards the groups are visited. Without GROUP BY there
 * is one group, even if there are no rows. */
#pragma once

#include "query/distinct.h"
#include "query/eval.h"

typedef struct query_groups query_groups;

/* Everything is allocated in `keep`. */
query_groups *query_groups_new(arena *keep, const query_select *s);

/* Adds the row that is in the runner's slots; it stands for `times` equal rows. False: it needs a new group, and there are already
 * `most`. */
bool query_groups_add(query_groups *g, query_runner *r, uint64_t times, size_t most);
size_t query_groups_count(const query_groups *g);
void query_groups_count_keys(const query_groups *g, query_key_count *to);

/* From now on, rows of groups that are not `wanted` are ignored. */
void query_groups_filter(query_groups *g, bool (*wanted)(void *context, const query_value *keys), void *context);

/* Without GROUP BY: whether a SUM is undefined because of a value that is not a number, so that further rows do not matter. */
bool query_groups_spoiled(const query_groups *g);

/* Saves the groups as a list for a later page, and loads it. Save returns false if it takes more than `bytes_max`, or cannot be
 * represented; load returns false if the list is not a saved one. */
bool query_groups_save(const query_groups *g, bson_t *list, size_t bytes_max);
bool query_groups_load(query_groups *g, query_runner *r, slice list);

/* Sorts the groups by their values. */
void query_groups_sort(query_groups *g);

/* Sorts the groups, keeps the first `n`, and frees everything else in `keep`, including `g`. Returns the new groups; *last_out is the
 * values of the last one. */
query_groups *query_groups_cut(query_groups *g, size_t n, const query_value **last_out);

/* Calls `visit` for each group, in the order of their first rows or as sorted; query_project then gives the group's row. */
void query_groups_each(query_groups *g, query_runner *r, query_row visit, void *context);
