#include "api/cassandra/edit_kind.h"

/* ---- conditions ---- */

err cass_conditions_hold(op *o, const cass_mutation *m, const cass_row *row, bool live, bool *holds_out) {
    const cql_table *table = &m->table->table;
    *holds_out = !(m->if_exists && !live) && !(m->if_not_exists && live);
    for (uint32_t i = 0; *holds_out && i < m->ifs_n; i++) {
        const cql_column *c = cql_table_column(table, m->ifs[i].columns[0]);
        const cass_cell *cell = &row->cells[cass_column_index(m->table, c)];
        TRY(cql_relation_holds(o, &m->run, &m->ifs[i], c, live && cell->there && !cell->dead ? cell->value : cql_value_null(), true,
                               holds_out));
    }
    return OK;
}

bool cass_mutation_same_partition(const cass_mutation *a, const cass_mutation *b) {
    bool same = a->table == b->table;
    for (uint32_t i = 0; same && i < a->table->table.partition_n; i++) {
        same = slice_eq(a->partition[i].bytes, b->partition[i].bytes);
    }
    return same;
}

/* ---- cells ---- */

static int64_t end_of(const cass_stamp *s) {
    return s->ttl ? s->expires_s : INT64_MAX;
}

/* Whether a write replaces what is there: the later one does; of two with the same timestamp a deletion, then the greater value, then the
 * one that lasts longer. */
static bool wins(const cass_stamp *by, bool by_dead, cql_value by_value, const cass_stamp *over, bool over_dead, cql_value over_value) {
    if (by->us != over->us) {
        return by->us > over->us;
    }
    if (by_dead != over_dead) {
        return by_dead;
    }
    int order = by_dead ? 0 : slice_cmp(by_value.bytes, over_value.bytes);
    return order > 0 || (order == 0 && end_of(by) >= end_of(over));
}

static cass_stamp stamp_of(const cass_mutation *m, int64_t us) {
    return (cass_stamp){.us = us, .ttl = m->ttl, .expires_s = m->ttl ? m->now_s + m->ttl : 0};
}

static void set_cell(const cass_row *row, cass_cell *cell, cass_stamp stamp, cql_value v) {
    bool dead = v.null;
    if (stamp.us <= row->deleted_us || (cell->there && !wins(&stamp, dead, v, &cell->stamp, cell->dead, cell->value))) {
        return;
    }
    *cell = (cass_cell){.there = true, .dead = dead, .value = v, .stamp = stamp, .deleted_us = CASS_NEVER};
    if (dead) {
        cell->stamp.ttl = 0;
    }
}

static err add_counter(op *o, const cass_mutation *m, cass_cell *cell, cql_value delta, int sign) {
    int64_t before = 0, by = 0;
    cql_as_bigint(cell->value, &before);
    cql_as_bigint(delta, &by);
    uint64_t sum = (uint64_t)before + (sign < 0 ? 0 - (uint64_t)by : (uint64_t)by);
    *cell = (cass_cell){.there = true, .value = cql_value_bigint(o->arena, (int64_t)sum), .stamp.us = m->us, .deleted_us = CASS_NEVER};
    return OK;
}

/* ---- elements of collections ---- */

/* Makes room for `more` elements. */
static err grow(op *o, cass_cell *cell, uint32_t more) {
    if (!arena_fits(o->arena, ((size_t)cell->n + more) * sizeof(cass_element))) {
        return budget_error(o->budget);
    }
    cass_element *elements = arena_array(o->arena, cass_element, cell->n + more + 1);
    if (cell->n) {
        memcpy(elements, cell->elements, cell->n * sizeof *elements);
    }
    cell->elements = elements;
    return OK;
}

/* Elements in the order of their keys: those that come are merged into those that are there. A later write of the same key wins; what a
 * deletion of the row or the whole collection hides does not come in. */
static err merge(op *o, const cass_row *row, const cql_type *type, cass_cell *cell, const cass_element *more, uint32_t more_n) {
    cass_cell both = {0};
    uint32_t i = 0, k = 0;
    TRY(grow(o, &both, cell->n + more_n));
    while (i < cell->n || k < more_n) {
        const cass_element *e = k < more_n ? &more[k] : NULL;
        if (e && (e->stamp.us <= row->deleted_us || e->stamp.us <= cell->deleted_us)) {
            k++;
            continue;
        }
        int c = !e ? -1 : i == cell->n ? 1 : cass_element_compare(type, &cell->elements[i], e);
        const cass_element *old = c <= 0 ? &cell->elements[i] : NULL;
        bool comes = c > 0 || (c == 0 && wins(&e->stamp, e->dead, e->value, &old->stamp, old->dead, old->value));
        both.elements[both.n++] = comes ? *e : *old;
        i += c <= 0;
        k += c >= 0;
    }
    cell->elements = both.elements;
    cell->n = both.n;
    return OK;
}

static err add_elements(op *o, const cass_row *row, const cql_type *type, cass_cell *cell, cass_stamp stamp, cql_value v, bool before) {
    cass_element *elements;
    uint32_t n;
    TRY(cass_cell_divide(o, type, v, stamp, &elements, &n));
    if (type->kind != CQL_LIST) {
        return merge(o, row, type, cell, elements, n);
    }
    TRY(grow(o, cell, n));
    if (stamp.us <= row->deleted_us || stamp.us <= cell->deleted_us || !n) {
        return OK;
    }
    if (before) {
        memmove(cell->elements + n, cell->elements, cell->n * sizeof *elements);
    }
    memcpy(cell->elements + (before ? 0 : cell->n), elements, n * sizeof *elements);
    cell->n += n;
    return OK;
}

static void remove_at(cass_cell *cell, uint32_t i) {
    memmove(cell->elements + i, cell->elements + i + 1, (cell->n - i - 1) * sizeof *cell->elements);
    cell->n--;
}

enum { COMPARES_MAX = 1000000 };

/* l - [a, b]: all equal elements. */
static err remove_from_list(op *o, const cql_type *type, cass_cell *cell, cass_stamp stamp, cql_value v) {
    cass_element *gone;
    uint32_t n;
    TRY(cass_cell_divide(o, type, v, stamp, &gone, &n));
    if ((uint64_t)cell->n * n > COMPARES_MAX) {
        return op_fail(o, E_BAD_REQUEST, "Too many elements to remove from a list of %u at once.", cell->n);
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < cell->n; i++) {
        bool equal = false;
        for (uint32_t k = 0; k < n && !equal; k++) {
            equal = cell->elements[i].stamp.us <= stamp.us && slice_eq(cell->elements[i].value.bytes, gone[k].value.bytes);
        }
        if (!equal) {
            cell->elements[left++] = cell->elements[i];
        }
    }
    cell->n = left;
    return OK;
}

/* s - {a, b}, m - {k}: the keys come as a set. */
static err remove_keys(op *o, const cass_row *row, const cql_type *type, cass_cell *cell, cass_stamp stamp, cql_value v) {
    cass_element *gone;
    uint32_t n;
    const cql_type *keys = type->kind == CQL_MAP ? cql_type_set(o->arena, type->inner[0], false) : type;
    stamp.ttl = 0;
    TRY(cass_cell_divide(o, keys, v, stamp, &gone, &n));
    for (uint32_t i = 0; i < n; i++) {
        gone[i].dead = true;
    }
    return merge(o, row, type, cell, gone, n);
}

static err set_in_list(op *o, cass_cell *cell, cass_stamp stamp, cql_value key, cql_value v) {
    int32_t at = -1;
    cql_as_int(key, &at);
    if (at < 0 || (uint32_t)at >= cell->n) {
        return op_fail(o, E_BAD_REQUEST, "List index %d out of bound, list has size %u", at, cell->n);
    }
    const cass_element *old = &cell->elements[at];
    if (!wins(&stamp, v.null, v, &old->stamp, false, old->value)) {
        return OK;
    }
    if (v.null) {
        remove_at(cell, (uint32_t)at);
    } else {
        cell->elements[at] = (cass_element){.value = v, .stamp = stamp};
    }
    return OK;
}

static err set_element(op *o, const cass_row *row, const cql_type *type, cass_cell *cell, cass_stamp stamp, cql_value key, cql_value v) {
    if (type->kind == CQL_LIST) {
        return set_in_list(o, cell, stamp, key, v);
    }
    stamp.ttl = v.null ? 0 : stamp.ttl;
    return merge(o, row, type, cell, &(cass_element){.key = key, .value = v, .stamp = stamp, .dead = v.null}, 1);
}

/* c = value: what is older goes, even with the same timestamp minus one, so that a collection is replaced and not merged. */
static err replace_collection(op *o, const cass_row *row, const cql_type *type, cass_cell *cell, cass_stamp stamp, cql_value v) {
    int64_t deleted = v.null ? stamp.us : stamp.us - 1;
    cell->deleted_us = deleted > cell->deleted_us ? deleted : cell->deleted_us;
    uint32_t n = 0;
    for (uint32_t i = 0; i < cell->n; i++) {
        if (cell->elements[i].stamp.us > cell->deleted_us) {
            cell->elements[n++] = cell->elements[i];
        }
    }
    cell->n = n;
    return add_elements(o, row, type, cell, stamp, v, false);
}

static err assign_collection(op *o, const cass_row *row, const cql_type *type, cass_cell *cell, const cass_assign *a, cass_stamp stamp) {
    switch (a->kind) {
    case CASS_ASSIGN_SET:
        return replace_collection(o, row, type, cell, stamp, a->value);
    case CASS_ASSIGN_ADD:
    case CASS_ASSIGN_PREPEND:
        return add_elements(o, row, type, cell, stamp, a->value, a->kind == CASS_ASSIGN_PREPEND);
    case CASS_ASSIGN_REMOVE:
        return type->kind == CQL_LIST ? remove_from_list(o, type, cell, stamp, a->value) : remove_keys(o, row, type, cell, stamp, a->value);
    case CASS_ASSIGN_ELEMENT:
        return set_element(o, row, type, cell, stamp, a->key, a->value);
    }
    return OK;
}

static err assign(op *o, const cass_mutation *m, cass_row *row, const cass_assign *a, int64_t us) {
    const cql_type *type = m->table->table.columns[a->column].type;
    cass_cell *cell = &row->cells[a->column];
    cass_stamp stamp = stamp_of(m, us);
    if (type->kind == CQL_COUNTER && a->kind != CASS_ASSIGN_SET) {
        return add_counter(o, m, cell, a->value, a->kind == CASS_ASSIGN_REMOVE ? -1 : 1);
    }
    if (!cql_type_is_multicell(type)) {
        set_cell(row, cell, stamp, a->value);
        return OK;
    }
    cell->there = true;
    TRY(assign_collection(o, row, type, cell, a, stamp));
    return cass_cell_assemble(o, type, cell, m->now_s);
}

/* ---- rows ---- */

static int64_t newest_us(const cass_table *t, const cass_row *row) {
    int64_t us = row->marked ? row->marker.us : row->deleted_us;
    us = row->deleted_us > us ? row->deleted_us : us;
    for (uint32_t i = 0; i < t->table.n; i++) {
        const cass_cell *c = &row->cells[i];
        us = c->there && c->stamp.us > us ? c->stamp.us : us;
        us = c->there && c->deleted_us > us ? c->deleted_us : us;
        for (uint32_t k = 0; k < c->n; k++) {
            us = c->elements[k].stamp.us > us ? c->elements[k].stamp.us : us;
        }
    }
    return us;
}

/* When the change happens. */
static err time_of(op *o, const cass_mutation *m, const cass_row *row, int64_t *us_out) {
    int64_t newest = m->prevails ? newest_us(m->table, row) : CASS_NEVER;
    if (m->prevails && newest == INT64_MAX) {
        return op_fail(o, E_BAD_REQUEST, "The row was written with the greatest timestamp: no conditional write can be later.");
    }
    *us_out = m->prevails && newest >= m->us ? newest + 1 : m->us;
    return OK;
}

static err delete_row(op *o, const cass_mutation *m, cass_row *row, int64_t us) {
    const cql_table *table = &m->table->table;
    if (us <= row->deleted_us) {
        return OK;
    }
    row->deleted_us = us;
    row->marked = row->marked && row->marker.us > us;
    for (uint32_t i = table->partition_n + table->clustering_n; i < table->n; i++) {
        cass_cell *c = &row->cells[i];
        bool multicell = cql_type_is_multicell(table->columns[i].type);
        uint32_t n = 0;
        for (uint32_t k = 0; k < c->n; k++) {
            if (c->elements[k].stamp.us > us) {
                c->elements[n++] = c->elements[k];
            }
        }
        c->n = n;
        if (!multicell && c->there && (c->stamp.us <= us || table->columns[i].type->kind == CQL_COUNTER)) {
            *c = (cass_cell){.value = cql_value_null(), .deleted_us = CASS_NEVER};
        } else if (multicell && c->there) {
            TRY(cass_cell_assemble(o, table->columns[i].type, c, m->now_s));
            c->there = c->n > 0 || c->deleted_us > us;
        }
    }
    return OK;
}

/* Of two markers with the same timestamp the one that expires wins, and of two such the one that lasts longer. */
static bool marks_later(const cass_stamp *by, const cass_stamp *over) {
    return by->us != over->us ? by->us > over->us : by->ttl && (!over->ttl || by->expires_s > over->expires_s);
}

static void mark(const cass_mutation *m, cass_row *row, int64_t us) {
    cass_stamp stamp = stamp_of(m, us);
    if (us > row->deleted_us && (!row->marked || marks_later(&stamp, &row->marker))) {
        row->marked = true;
        row->marker = stamp;
    }
}

static void set_keys(const cass_mutation *m, cass_row *row) {
    const cql_table *table = &m->table->table;
    row->is_static = !m->clustering && table->clustering_n;
    for (uint32_t i = 0; i < table->partition_n; i++) {
        row->cells[i].value = m->partition[i];
    }
    for (uint32_t i = 0; m->clustering && i < table->clustering_n; i++) {
        row->cells[table->partition_n + i].value = m->clustering[i];
    }
}

/* What is left of a hidden write is nothing, or the deletion that hides it. */
static bool is_nothing(const cass_mutation *m, const item_edit_input *in, const cass_row *row) {
    return m->is_hidden && !in->there && row->deleted_us == m->hidden_us && !cass_row_is_live(m->table, row, m->now_s);
}

static err change(op *o, const cass_mutation *m, cass_row *row, int64_t us) {
    if (m->range) {
        TRY(cass_ranges_add(o, row->ranges, row->ranges_n, m->range, &row->ranges, &row->ranges_n));
    }
    if (m->deletes_row) {
        TRY(delete_row(o, m, row, us));
    }
    if (m->inserts) {
        mark(m, row, us);
    }
    for (uint32_t i = 0; i < m->assigns_n; i++) {
        TRY(assign(o, m, row, &m->assigns[i], us));
    }
    return OK;
}

/* ---- the kind ---- */

/* {"applied": true} */
static const char applied_reply[] = "\x0F\0\0\0\x08"
                                    "applied\0\1";

/* Reads and writes of the whole row: once, and for each assignment to a collection. */
static uint64_t steps_of(const item_edit_input *in) {
    const cass_mutation *m = in->ready;
    return (1 + (uint64_t)m->collections) * item_edit_steps(in->body.n + m->bytes);
}

static err apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result) {
    const cass_mutation *m = in->ready;
    cass_row row;
    bool holds;
    int64_t us = 0;
    if (!item_edit_pay(b, 20 + 8 * steps_of(in) + m->assigns_n)) {
        return item_edit_too_long(o);
    }
    if (in->there) {
        TRY(cass_row_read(o, m->table, in->body, m->now_s, NULL, true, &row));
    } else {
        cass_row_init(o, m->table, &row);
        row.is_static = !m->clustering && m->table->table.clustering_n;
    }
    result->answer = ITEM_EDIT_LEAVE;
    if (m->is_hidden) {
        TRY(delete_row(o, m, &row, m->hidden_us));
    }
    TRY(cass_conditions_hold(o, m, &row, in->there && cass_row_is_live(m->table, &row, m->now_s), &holds));
    if (!holds) {
        return m->undoes ? E_PRECONDITION : OK;
    }
    TRY(time_of(o, m, &row, &us));
    set_keys(m, &row);
    TRY(change(o, m, &row, us));
    result->reply = cass_mutation_is_conditional(m) ? slice_of(applied_reply, sizeof applied_reply) : SLICE_EMPTY;
    if (is_nothing(m, in, &row)) {
        return OK;
    }
    TRY(cass_row_write(o, m->table, &row, m->now_s, &result->body));
    if (!result->body.n) {
        result->answer = in->there ? ITEM_EDIT_DELETE : ITEM_EDIT_LEAVE;
    } else if (slice_eq(result->body, in->body)) {
        result->body = SLICE_EMPTY;
    } else {
        result->answer = ITEM_EDIT_PUT;
    }
    return OK;
}

static uint64_t estimate(const item_edit_input *in) {
    const cass_mutation *m = in->ready;
    return 50 + 16 * steps_of(in) + 20 * (uint64_t)m->assigns_n;
}

/* A mutation always comes ready: it has the table, which the argument does not name. */
static err prepare(op *o, const container *c, slice argument, const void **ready_out) {
    (void)c, (void)argument, (void)ready_out;
    return op_fail(o, E_BAD_REQUEST, "A change of a row cannot be made from its argument alone.");
}

item_edit cass_edit_of(const cass_mutation *m) {
    return (item_edit){.kind = ITEM_EDIT_CASSANDRA, .argument = SLICE_LIT("\5\0\0\0\0"), .ready = m};
}

void cass_edit_register(void) {
    static const item_edit_kind kind = {
        .id = ITEM_EDIT_CASSANDRA, .name = "change", .prepare = prepare, .estimate = estimate, .apply = apply};
    item_edit_register(&kind);
}
