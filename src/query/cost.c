#include "query/cost.h"

#include "query/order_by.h"
#include "throughput/charge.h"

void query_cost_end(query_cost *c) {
    container_index_give(c->index);
}

double query_cost_base(const query_cost *c) {
    return CHARGE_QUERY * c->factor;
}

static void charge(const query_cost *c, double ru) {
    op_charge(c->op, ru * c->factor);
}

/* ---- would the index have excluded an item? ---- */

static bool found_row(void *context) {
    *(bool *)context = true;
    return false;
}

static bool fulfils(query_cost *c, const find_demand *d, const query_value *item) {
    bool found = false;
    const query_source *first = &c->select->sources[0];
    if (c->select->sources_n == 1 && first->kind == SOURCE_ROOT && (!first->from || first->from->kind == EXPR_NAME)) { /* slots are set */
        query_value v = query_eval(c->runner, d->condition);
        return value_is_true(&v);
    }
    query_select asked = *c->select;
    asked.where = (query_expr *)(uintptr_t)d->condition;
    query_each_row(c->runner, &asked, item, found_row, &found);
    return found;
}

static const find_demands *know_demands(query_cost *c) {
    if (!c->indexed) {
        c->demands = query_demands_of(c->runner, &c->index->policy);
        c->indexed = true;
    }
    return &c->demands;
}

/* For an item that WHERE excludes: whether a condition that the index can answer excludes it. */
static bool index_excludes(query_cost *c, const query_value *item) {
    know_demands(c);
    if (c->demands.whole) {
        return true;
    }
    for (size_t i = 0; i < c->demands.n; i++) {
        if (!fulfils(c, &c->demands.list[i], item)) {
            return true;
        }
    }
    return false;
}

/* ---- a page ---- */

/* False for an order that no index has: it needs all items. */
static bool has_order(arena *a, const query *q, const index_policy *policy) {
    const query_select *s = q->select;
    find_path p;
    bool paths = s->order_n && !s->order_by_rank && !q->aggregates;
    for (size_t i = 0; i < s->order_n && paths; i++) {
        paths = query_path_of(q, s->order[i].expr, &p);
    }
    if (!paths || s->order_n == 1) {
        return paths && index_policy_covers(policy, p.steps, p.n);
    }
    bool backward;
    find_order order = query_order_of(a, q);
    return find_composite_for(&order, policy, &backward) != NULL;
}

/* The decision of find/cover.c, without the parts that depend on how entries are stored at the moment. */
static bool is_covered(query_cost *c) {
    const query *q = c->runner->query;
    const index_policy *policy = &c->index->policy;
    find_cover cover = query_cover_of(q);
    c->multiplicity = cover.multiplicity;
    if (!cover.possible || policy->off || (cover.counts && !q->select->where)) {
        return cover.possible && !policy->off;
    }
    if (cover.path_given && index_policy_covers(policy, cover.path.steps, cover.path.n)) {
        return cover.multiplicity || q->select->distinct;
    }
    const find_demands *all = know_demands(c);
    bool exact = cover.counts && all->n && all->whole;
    for (size_t i = 0; i < all->n && exact; i++) {
        exact = all->list[i].exact;
    }
    return exact;
}

void query_cost_begin(query_cost *c, query_runner *r, const container *container, bool partition) {
    *c = (query_cost){.op = r->op, .runner = r, .select = r->query->select};
    c->entries_free = CHARGE_ENTRIES_FREE;
    c->partition = partition;
    c->factor = r->op->strong ? CHARGE_STRONG_READ_FACTOR : 1;
    c->index = container_space_index(container->space);
    c->nearest = query_nearest_of(r, &c->index->policy);
    c->ordered = has_order(r->op->arena, r->query, &c->index->policy);
    c->done = &c->unasked;
    c->covered = is_covered(c);
}

/* ---- charges ---- */

static void charge_item(query_cost *c, size_t bytes) {
    double weight = charge_query_weight(bytes);
    charge(c, charge_query_items(c->weight, weight));
    c->weight += weight;
    c->items++;
}

static void charge_entries(query_cost *c, uint64_t n) {
    uint64_t free_n = n < c->entries_free ? n : c->entries_free;
    c->entries_free -= free_n;
    charge(c, CHARGE_ENTRY * (double)(n - free_n));
}

void query_cost_item(query_cost *c, const query_value *item, size_t bytes, bool matched) {
    if (!matched && c->select->where && !c->searched && index_excludes(c, item)) {
        query_cost_passed(c, 1);
        return;
    }
    if (c->covered) {
        charge_entries(c, c->multiplicity);
    } else if (!c->searched && (!c->ordered || !matched)) {
        charge_item(c, bytes);
    }
    c->done->loaded++;
    c->done->loaded_bytes += bytes;
    c->done->matched += matched;
}

void query_cost_entry(query_cost *c, const query_value *item, uint64_t times, bool matched) {
    if (!matched && c->select->where && index_excludes(c, item)) {
        query_cost_passed(c, times);
        return;
    }
    charge_entries(c, c->multiplicity ? times : 0);
    c->done->covered += times;
    c->done->matched += matched ? times : 0;
}

/* Rows of the same item follow each other, as far as the order separates items. */
void query_cost_shown(query_cost *c, uint64_t number, size_t bytes) {
    if ((c->ordered || c->searched) && number != c->shown) {
        charge_item(c, bytes);
    }
    c->shown = number;
}

void query_cost_search(query_cost *c, uint64_t vectors, double rows) {
    c->searched = c->nearest.meant;
    if (c->searched) {
        charge(c, charge_query_search((double)vectors, c->nearest.list_per_row * rows));
    }
}

void query_cost_passed(query_cost *c, uint64_t n) {
    c->done->passed += n;
    charge_entries(c, c->partition || c->covered || c->searched ? 0 : n);
}

void query_cost_skipped(query_cost *c, uint64_t n) {
    c->done->covered += n;
    c->done->matched += n;
    charge_entries(c, n);
}

void query_cost_distinct(query_cost *c) {
    charge_entries(c, c->covered && !c->multiplicity);
}

void query_cost_row(query_cost *c, size_t bytes) {
    c->rows++;
    charge(c, charge_query_row_bytes(bytes));
}

void query_cost_rows(query_cost *c) {
    if (c->rows > c->items) {
        charge(c, CHARGE_QUERY_ROW * (double)(c->rows - c->items));
    }
}

void query_cost_calls(query_cost *c, uint64_t n) {
    charge(c, CHARGE_UDF_CALL * (double)n);
}

void query_cost_steps(query_cost *c, uint64_t n) {
    charge(c, CHARGE_QUERY_STEP * (double)n);
}
