/* What becomes of a row that was read: filters, limits, groups, the encoded result. */
#include <stdlib.h>

#include "api/cassandra/select.h"

static void explain(cass_selecting *g, err code, const op *by) {
    if (code != OK && by->detail_n) {
        op_fail_as(&g->q->op, code, by->protocol_code, "%.*s", (int)by->detail_n, by->detail);
    }
}

static bool fail(cass_selecting *g, err code) {
    if (code != OK && g->code == OK) {
        g->code = code;
        explain(g, code, &g->row_op);
    }
    return false;
}

static cass_scope scope_of(const cass_selecting *g, op *o, const cass_row *row) {
    return (cass_scope){.o = o, .run = &g->q->run, .table = g->s->table, .row = row, .now_s = g->q->op.now_s};
}

/* ---- filters ---- */

static err tuple_holds(cass_selecting *g, const cql_relation *r, const cass_row *row, bool *holds) {
    const cql_table *table = &g->s->table->table;
    const cql_type **types = arena_array(g->row_op.arena, const cql_type *, r->columns_n);
    cql_value *values = arena_array(g->row_op.arena, cql_value, r->columns_n), left;
    for (uint32_t i = 0; i < r->columns_n; i++) {
        const cql_column *c = cql_table_column(table, r->columns[i]);
        types[i] = c->type;
        values[i] = row->cells[cass_column_index(g->s->table, c)].value;
    }
    const cql_type *tuple = cql_type_tuple(g->row_op.arena, types, r->columns_n);
    cql_column as = {.name = SLICE_LIT("tuple"), .type = tuple};
    if (!cql_value_collect(g->row_op.arena, tuple, values, r->columns_n, &left)) {
        return budget_error(g->row_op.budget);
    }
    cql_relation single = *r;
    single.kind = CQL_RELATION_COLUMN;
    return cql_relation_holds(&g->row_op, &g->q->run, &single, &as, left, false, holds);
}

static err relation_holds(cass_selecting *g, const cql_relation *r, const cass_row *row, bool *holds) {
    const cql_column *c;
    *holds = true;
    switch (r->kind) {
    case CQL_RELATION_TOKEN:
    case CQL_RELATION_FUNCTION:
        return OK; /* the source's */
    case CQL_RELATION_TUPLE:
        return tuple_holds(g, r, row, holds);
    default:
        c = cql_table_column(&g->s->table->table, r->columns[0]);
        return cql_relation_holds(&g->row_op, &g->q->run, r, c, row->cells[cass_column_index(g->s->table, c)].value, false, holds);
    }
}

/* Within ranges of known partitions only the filters are left to check; everything else checks all relations. */
static err passes(cass_selecting *g, const cass_row *row, bool *passes_out) {
    const cql_select *select = &g->s->tree->select;
    bool all = g->scans || g->finds || g->s->table->system;
    *passes_out = true;
    for (uint32_t i = 0; all && *passes_out && i < select->where_n; i++) {
        TRY(relation_holds(g, &select->where[i], row, passes_out));
    }
    for (uint32_t i = 0; !all && *passes_out && i < g->s->where.filters_n; i++) {
        TRY(relation_holds(g, g->s->where.filters[i].relation, row, passes_out));
    }
    return OK;
}

/* ---- groups ---- */

static bool same_group(const cass_selecting *g, const cass_row *row) {
    for (uint32_t i = 0; i < g->s->group_n; i++) {
        cql_value v = row->cells[g->s->group[i]].value;
        if (v.null != g->group[i].null || !slice_eq(v.bytes, g->group[i].bytes)) {
            return false;
        }
    }
    return true;
}

static err put_group(cass_selecting *g) {
    enum { GROUP_BYTES = 256 }; /* about */
    cass_scope scope = scope_of(g, &g->group_op, NULL);
    g->n++;
    g->page.left--;
    err code = cass_gathering_put(&g->group_op, &scope, g->selection, &g->gathering, pieces_room(&g->out, GROUP_BYTES));
    explain(g, code, &g->group_op);
    return code;
}

static err begin_group(cass_selecting *g, const cass_row *row) {
    arena_reset(&g->group_bytes);
    TRY(cass_gathering_init(&g->group_op, g->selection, &g->gathering));
    for (uint32_t i = 0; i < g->s->group_n; i++) {
        cql_value v = row->cells[g->s->group[i]].value;
        g->group[i] = v.null ? v : cql_value_of(arena_copy(&g->group_bytes, v.bytes));
    }
    return OK;
}

/* A page ends at the rows that the client asked for, or when it is large. */
static bool is_full(const cass_selecting *g) {
    return g->page_rows && (g->n >= g->page_rows || (g->n && pieces_bytes(&g->out) > LIMIT_RESPONSE_BYTES));
}

/* False: the row begins a group that belongs to the next page. */
static bool take_grouped(cass_selecting *g, const cass_row *row) {
    cass_scope scope = scope_of(g, &g->row_op, row);
    err code = OK;
    if (!g->gathering.any || !same_group(g, row)) {
        code = g->gathering.any ? put_group(g) : OK;
        g->gathering.any = false;
        if (code != OK) {
            return fail(g, code);
        }
        if (g->page.left <= 0) {
            g->done = true;
            return false;
        }
        if (is_full(g)) {
            g->full = true;
            return false;
        }
        code = begin_group(g, row);
    }
    code = code == OK ? cass_gathering_add(&g->group_op, &scope, g->selection, &g->gathering) : code;
    explain(g, code, &g->group_op);
    return code == OK || fail(g, code);
}

/* ---- rows ---- */

static bool keep_for_sorting(cass_selecting *g, const cass_row *row) {
    op *o = &g->q->op;
    if (g->sorted_n == g->sorted_room) {
        uint32_t room = g->sorted_room ? 2 * g->sorted_room : 64;
        if (!arena_fits(o->arena, room * sizeof(cass_row))) {
            return fail(g, budget_error(o->budget));
        }
        cass_row *rows = arena_array(o->arena, cass_row, room);
        if (g->sorted_n) {
            memcpy(rows, g->sorted, g->sorted_n * sizeof *rows);
        }
        g->sorted = rows;
        g->sorted_room = room;
    }
    cass_row *kept = &g->sorted[g->sorted_n++];
    cass_row_init(o, g->s->table, kept);
    for (uint32_t i = 0; i < g->s->table->table.n; i++) {
        kept->cells[i] = row->cells[i];
        slice bytes = row->cells[i].value.bytes;
        if (!arena_fits(o->arena, bytes.n)) {
            return fail(g, budget_error(o->budget));
        }
        kept->cells[i].value.bytes = bytes.n ? arena_copy(o->arena, bytes) : bytes;
    }
    return true;
}

/* The row was encoded, if `code` is OK. */
static bool count_row(cass_selecting *g, err code) {
    if (code != OK || !pieces_ok(&g->out)) {
        return fail(g, code != OK ? code : budget_error(g->q->op.budget));
    }
    g->n++;
    g->page.left--;
    if (g->page.partition_left != CASS_NO_LIMIT) {
        g->page.partition_left--;
    }
    return true;
}

static bool put_row(cass_selecting *g, const cass_row *row) {
    cass_scope scope = scope_of(g, &g->row_op, row);
    if (is_full(g)) {
        g->full = true;
        return false;
    }
    return count_row(g, cass_result_row_put(&scope, g->selection, pieces_room(&g->out, g->row_bytes)));
}

bool cass_selecting_take_row(cass_selecting *g, cass_row *row) {
    bool good;
    err code = passes(g, row, &good);
    if (code != OK) {
        return fail(g, code);
    }
    if (!good) {
        return true;
    }
    if (g->page.left <= 0 && !g->groups) {
        g->done = true;
        return false;
    }
    if (g->page.partition_left <= 0 || (g->s->tree->select.distinct && g->any_row)) {
        return true;
    }
    bool taken = g->s->sorts ? keep_for_sorting(g, row) : g->groups ? take_grouped(g, row) : put_row(g, row);
    g->any_row = g->any_row || taken;
    return taken;
}

static int64_t partition_limit(const cass_selecting *g) {
    cql_value v;
    int32_t n = 0;
    const cql_term *term = g->s->tree->select.partition_limit;
    cql_receiver receiver = {.name = SLICE_LIT("[per_partition_limit]"), .type = cql_type_of(CQL_INT)};
    bool given = term && cql_term_value(&g->q->op, &g->q->run, term, &receiver, &v) == OK && cql_as_int(v, &n);
    return given ? n : CASS_NO_LIMIT;
}

bool cass_selecting_end_partition(cass_selecting *g) {
    bool alone = g->has_statics && !g->any_row && (g->scans || !g->resumed) && !g->s->where.clustering_n && !g->s->where.slice[0] &&
                 !g->s->where.slice[1];
    bool taken = true;
    if (alone && cass_row_is_live(g->s->table, &g->statics, g->q->op.now_s)) {
        cass_row row = g->statics;
        taken = cass_selecting_take_row(g, &row);
    }
    if (taken) {
        g->has_statics = g->any_row = g->resumed = g->static_read = false;
        g->page.partition_left = partition_limit(g);
        buf_clear(&g->partition);
    }
    return taken;
}

/* A scan notices by the key's bytes that another partition begins. */
static bool follow_partition(cass_selecting *g, const cass_row *row) {
    buf bytes = buf_init(BUF_NO_LIMIT);
    uint32_t n = g->s->table->table.partition_n;
    cql_value *key = arena_array(g->row_op.arena, cql_value, n);
    for (uint32_t i = 0; i < n; i++) {
        key[i] = row->cells[i].value;
    }
    cql_partition_bytes(&bytes, key, n);
    bool same = slice_eq(buf_view(&bytes), buf_view(&g->partition)), good = true;
    if (!same) {
        good = !g->partition.n || cass_selecting_end_partition(g);
        if (good) {
            buf_clear(&g->partition);
            buf_add_slice(&g->partition, buf_view(&bytes));
        }
    }
    buf_free(&bytes);
    return good;
}

static err keep_statics(cass_selecting *g, const cass_row *row) {
    if (!g->statics.cells) {
        cass_row_init(&g->q->op, g->s->table, &g->statics);
    }
    arena_reset(&g->statics_bytes);
    for (uint32_t i = 0; i < g->s->table->table.n; i++) {
        cass_cell *cell = &g->statics.cells[i];
        *cell = row->cells[i];
        cell->elements = NULL;
        cell->n = 0;
        if (!arena_fits(&g->statics_bytes, cell->value.bytes.n)) {
            return budget_error(g->q->op.budget);
        }
        cell->value.bytes = cell->value.bytes.n ? arena_copy(&g->statics_bytes, cell->value.bytes) : cell->value.bytes;
    }
    g->statics.is_static = true;
    g->has_statics = true;
    return OK;
}

/* Another thread has sent what was in this memory last, so the processor has to get it back. It does that for the next row, which is about
 * as long, while this one is finished. */
static void fetch_room(const buf *out, size_t bytes) {
    enum { LINE_BYTES = 64, FETCHED_BYTES = 2048 };
    size_t end = out->n + LINE_BYTES + (bytes < FETCHED_BYTES ? bytes : FETCHED_BYTES);
    for (size_t i = out->n + LINE_BYTES; i < end && i < out->cap; i += LINE_BYTES) {
        __builtin_prefetch(out->p + i, 1);
    }
}

/* A row of a known partition of which columns are returned, and nothing else is asked. */
static bool take_plain(cass_selecting *g, size_t bytes) {
    if (g->page.left <= 0) {
        g->done = true;
        return false;
    }
    if (g->page.partition_left <= 0) {
        return true;
    }
    if (is_full(g)) {
        g->full = true;
        return false;
    }
    g->any_row = true;
    buf *out = pieces_room(&g->out, bytes);
    err code = cass_plain_put(&g->row_op, g->plain, out);
    fetch_room(out, bytes);
    return count_row(g, code);
}

static bool take(cass_selecting *g, slice body) {
    const cass_table *t = g->s->table;
    cass_row row;
    err code = cass_row_read(&g->row_op, t, body, g->q->op.now_s, g->s->needed, false, &row);
    if (code == OK && !cass_row_is_live(t, &row, g->q->op.now_s)) { /* a column that is not needed may show that it is */
        code = cass_row_read(&g->row_op, t, body, g->q->op.now_s, NULL, false, &row);
    }
    code = code == OK ? budget_error(g->q->op.budget) : code; /* small allocations do not ask */
    if (code != OK) {
        return fail(g, code);
    }
    if (g->scans && !follow_partition(g, &row)) {
        return false;
    }
    if (row.is_static) {
        code = keep_statics(g, &row);
        return code == OK || fail(g, code);
    }
    if (!cass_row_is_live(t, &row, g->q->op.now_s)) {
        return true;
    }
    for (uint32_t i = 0; g->has_statics && i < t->table.n; i++) {
        if (t->table.columns[i].kind == CQL_COLUMN_STATIC) {
            row.cells[i] = g->statics.cells[i];
        }
    }
    return cass_selecting_take_row(g, &row);
}

/* The arena's block stays from row to row. */
static arena_mark mark_scratch(cass_selecting *g) {
    if (!g->scratch.blocks) {
        arena_alloc(&g->scratch, 1);
    }
    return arena_marked(&g->scratch);
}

bool cass_selecting_take(cass_selecting *g, slice body) {
    if (g->plain && cass_plain_find(g->plain, body)) {
        return take_plain(g, body.n);
    }
    arena_mark mark = mark_scratch(g);
    g->row_op.detail_n = 0;
    g->row_bytes = body.n;
    bool taken = take(g, body);
    arena_release(&g->scratch, mark);
    return taken;
}

bool cass_selecting_take_change(cass_selecting *g, slice body) {
    const cass_table *t = g->s->table;
    arena_mark mark = mark_scratch(g);
    cass_row row;
    g->row_op.detail_n = 0;
    g->row_bytes = body.n;
    err code = cass_row_read(&g->row_op, t, body, g->q->op.now_s, NULL, false, &row);
    code = code == OK ? budget_error(g->q->op.budget) : code;
    bool taken = code != OK ? fail(g, code) : !cass_row_is_live(t, &row, g->q->op.now_s) || cass_selecting_take_row(g, &row);
    arena_release(&g->scratch, mark);
    return taken;
}

/* ---- the end ---- */

static _Thread_local const cass_selecting *sorting; /* qsort has no context */

static int compare_rows(const void *a, const void *b) {
    const cass_row *x = a, *y = b;
    const cql_table *table = &sorting->s->table->table;
    for (uint32_t i = table->partition_n; i < table->partition_n + table->clustering_n; i++) {
        int c = cql_compare(table->columns[i].type, x->cells[i].value, y->cells[i].value);
        if (c) {
            return (table->columns[i].descending != sorting->s->backward) ? -c : c;
        }
    }
    return 0;
}

static err put_sorted(cass_selecting *g) {
    sorting = g;
    qsort(g->sorted, g->sorted_n, sizeof *g->sorted, compare_rows);
    sorting = NULL;
    for (uint32_t i = 0; i < g->sorted_n && g->page.left > 0 && g->code == OK; i++) {
        if (g->groups ? !take_grouped(g, &g->sorted[i]) : !put_row(g, &g->sorted[i])) {
            break;
        }
    }
    return g->code;
}

/* Aggregates without GROUP BY have a row even if there was nothing to aggregate. */
err cass_selecting_finish(cass_selecting *g) {
    if (g->s->sorts && g->sorted_n) {
        TRY(put_sorted(g));
    }
    if (g->groups && !g->full && g->page.left > 0 && (g->gathering.any || (!g->s->group_n && g->selection->aggregates_n))) {
        if (!g->gathering.any) {
            TRY(cass_gathering_init(&g->group_op, g->selection, &g->gathering));
        }
        TRY(put_group(g));
    }
    return OK;
}
