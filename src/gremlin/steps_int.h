/* steps_int.h — the steps, one function each, in files by subject; and what those files share. For this folder. */
#pragma once

#include "gremlin/machine_int.h"

/* `apply` of the steps. */
#define GREMLIN_APPLIES(X)                                                                                                                 \
    X(v)                                                                                                                                   \
    X(adjacent)                                                                                                                            \
    X(ends)                                                                                                                                \
    X(other_v)                                                                                                                             \
    X(inject)                                                                                                                              \
    X(call)                                                                                                                                \
    X(has)                                                                                                                                 \
    X(is)                                                                                                                                  \
    X(filter)                                                                                                                              \
    X(where)                                                                                                                               \
    X(all_any)                                                                                                                             \
    X(discard)                                                                                                                             \
    X(coin)                                                                                                                                \
    X(dedup)                                                                                                                               \
    X(range)                                                                                                                               \
    X(simple_path)                                                                                                                         \
    X(time_limit)                                                                                                                          \
    X(identity)                                                                                                                            \
    X(fail)                                                                                                                                \
    X(token)                                                                                                                               \
    X(constant)                                                                                                                            \
    X(values)                                                                                                                              \
    X(value_map)                                                                                                                           \
    X(element_map)                                                                                                                         \
    X(element)                                                                                                                             \
    X(path)                                                                                                                                \
    X(select)                                                                                                                              \
    X(project)                                                                                                                             \
    X(math)                                                                                                                                \
    X(loops)                                                                                                                               \
    X(sack)                                                                                                                                \
    X(unfold)                                                                                                                              \
    X(index)                                                                                                                               \
    X(reduce)                                                                                                                              \
    X(fold)                                                                                                                                \
    X(keep)                                                                                                                                \
    X(keep_by)                                                                                                                             \
    X(group)                                                                                                                               \
    X(group_count)                                                                                                                         \
    X(tree)                                                                                                                                \
    X(aggregate)                                                                                                                           \
    X(subgraph)                                                                                                                            \
    X(map)                                                                                                                                 \
    X(local)                                                                                                                               \
    X(side_effect)                                                                                                                         \
    X(union)                                                                                                                               \
    X(choose)                                                                                                                              \
    X(coalesce)                                                                                                                            \
    X(optional)                                                                                                                            \
    X(repeat)                                                                                                                              \
    X(match)                                                                                                                               \
    X(add)                                                                                                                                 \
    X(property)                                                                                                                            \
    X(drop)                                                                                                                                \
    X(merge_v)                                                                                                                             \
    X(merge_e)                                                                                                                             \
    X(text)                                                                                                                                \
    X(concat)                                                                                                                              \
    X(format)                                                                                                                              \
    X(dates)                                                                                                                               \
    X(lists)                                                                                                                               \
    X(profile)

#define X(name) status gremlin__step_##name(gremlin_run *m, flow *f, state *s);
GREMLIN_APPLIES(X)
#undef X

/* `finish` of those that gather. */
status gremlin__reduce_finish(gremlin_run *m, flow *f, state *s);
status gremlin__fold_finish(gremlin_run *m, flow *f, state *s);
status gremlin__order_finish(gremlin_run *m, flow *f, state *s);
status gremlin__tail_finish(gremlin_run *m, flow *f, state *s);
status gremlin__sample_finish(gremlin_run *m, flow *f, state *s);
status gremlin__barrier_finish(gremlin_run *m, flow *f, state *s);
status gremlin__group_finish(gremlin_run *m, flow *f, state *s);
status gremlin__group_count_finish(gremlin_run *m, flow *f, state *s);
status gremlin__tree_finish(gremlin_run *m, flow *f, state *s);
status gremlin__aggregate_finish(gremlin_run *m, flow *f, state *s);
status gremlin__cap_finish(gremlin_run *m, flow *f, state *s);
status gremlin__union_finish(gremlin_run *m, flow *f, state *s);
status gremlin__choose_finish(gremlin_run *m, flow *f, state *s);
status gremlin__repeat_finish(gremlin_run *m, flow *f, state *s);
status gremlin__profile_finish(gremlin_run *m, flow *f, state *s);

/* ---- shared ---- */

/* The Scope that is the step's first argument; global if there is none. */
static inline bool is_local(const gremlin_step *step) {
    return step->n && gremlin_is_member(step->args[0], GREMLIN_SCOPE) && step->args[0].n == SCOPE_LOCAL;
}

static inline bool has_scope(const gremlin_step *step) {
    return step->n && gremlin_is_member(step->args[0], GREMLIN_SCOPE);
}

/* The items of a list, set or bulkset, of a path, or the value itself. Bulks are expanded, as far as the budget allows. */
void gremlin__items_of(gremlin_run *m, gremlin_value v, gremlin_items *items_out);
gremlin_value gremlin__counts_map(gremlin_run *m, const table *t, uint32_t tag);
gremlin_value gremlin__tree_of(gremlin_run *m, const table *t, uint32_t tag);
/* sum, min, max, mean, count of a list; false: it has none. */
bool gremlin__reduce_list(gremlin_run *m, gremlin_op op, const gremlin_items *items, gremlin_value *result_out);
bool gremlin__operate(gremlin_run *m, unsigned operator, gremlin_value a, gremlin_value b, gremlin_value *result_out);
slice gremlin__shown(gremlin_run *m, gremlin_value v); /* its text, in the heap */
status gremlin__sample_local(gremlin_run *m, flow *f, state *s);
void gremlin__merge_equal(gremlin_run *m, queue *q);
