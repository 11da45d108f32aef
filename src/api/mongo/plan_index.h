/* plan_index.h — within api/mongo: which indexes of a collection serve a filter and a sort, and how.
 *
 * An index is a key index of the core (index/policy.h): its entries are keys, in MongoDB's order (mql/key.h). Conditions of a filter on an
 * index's first fields become spans of keys. A sort is served by an index whose fields, after those that the filter sets equal to a value,
 * are the sort's, all in the same or all in the opposite direction.
 *
 * Each element of an array has a key. So two conditions on one field, or on two fields of the same array, may be met by different elements
 * and must not narrow one span, unless no document has several keys: the core knows that. */
#pragma once

#include "api/mongo/find.h"
#include "api/mongo/memo.h"
#include "mql/key.h"
#include "mql/match_tree.h"

/* A find's part of the planning. */
typedef struct mongo_planner mongo_planner;

/* `f` has the filter, the sort, the hint and the collation. 2 (BadValue) if the hint names no index. */
MUST_CHECK err mongo_planner_begin(op *o, const container *c, const mongo_find *f, mongo_planner **planner_out);

/* Appends the conditions that a node of the filter implies, to an open array. Adds nothing if no index serves it. */
bool mongo_planner_is_useful(const mongo_planner *p, const mql_node *n);
void mongo_planner_add(const mongo_planner *p, mql_builder *b, const mql_node *n);

/* Whether keys of one index are enough of what the find wants of the documents (count_only, value_path): then sets its counts or each, and
 * mongo_planner_add_deciding appends the index's conditions. `root`: of the filter; NULL: all documents. */
MUST_CHECK err mongo_planner_decide(mongo_planner *p, const mql_node *root, mongo_find *f);
void mongo_planner_add_deciding(const mongo_planner *p, mql_builder *b, const mql_node *root);

/* The order of the core that gives the sort; empty if no index has it. In the operation's arena. */
slice mongo_planner_order(const mongo_planner *p, const mql_node *root, const mql_sort *sort);
