/* INSERT, UPDATE, DELETE and BATCH: range deletes are read first, then everything is committed. */
#include "api/cassandra/hiding.h"

/* The rows that are committed together. A statement with more is committed in several rounds, a batch is refused. */
enum { ROUND_ROWS = 1000, ROUND_BYTES = 2 * 1024 * 1024 };

typedef struct writing {
    cass_request *q;
    cass_targets targets; /* as the statements name them */
    cass_targets rows;    /* what is committed next: single rows */
    uint32_t at;          /* the target that is worked on */
    slice place;          /* within its range */
    item_rows_ask ask;    /* of its range */
    uint32_t noted_n;     /* of the targets: their ranges are written */
    uint32_t ranges_n;    /* of `rows`, of a batch: ranges, which do not count as rows */
    cass_hiding hiding;
    bool batch, atomic;
    bool more;                         /* the range has more rows than are committed now */
    const cass_statement *conditional; /* the statement whose result is [applied]; NULL: none */
    err code;
    arena scratch;     /* of one row that is read */
    bool *keys;        /* the columns that are read of it */
    arena round;       /* of the rows that are committed next */
    size_t read_bytes; /* their size before */
    cass_target *current;
    call_transaction *transaction; /* of a batch over several tables */
    size_t written;
    op row_op, round_op; /* of `scratch` and `round`; last, since they are not cleared */
} writing;

static writing *of(call *c) {
    return ((cass_request *)c)->state;
}

static void clean(cass_request *q) {
    writing *w = q->state;
    if (w->transaction) {
        call_transaction_end(w->transaction);
    }
    arena_free(&w->scratch);
    arena_free(&w->round);
}

static void fail(writing *w, err code) {
    cass_fail(w->q, code);
}

/* The error text of an operation becomes that of the request. */
static err explain(writing *w, err code, const op *by) {
    return code != OK && by->detail_n ? op_fail_as(&w->q->op, code, by->protocol_code, "%.*s", (int)by->detail_n, by->detail) : code;
}

static bool is_full(const writing *w) {
    return w->rows.n - w->ranges_n >= (w->batch ? CASS_BATCH_ROWS : ROUND_ROWS) || (!w->batch && w->read_bytes > ROUND_BYTES);
}

static err add_row(writing *w, const cass_target *t) {
    cass_targets *rows = &w->rows;
    op *o = &w->round_op;
    if (rows->n == rows->room) {
        uint32_t room = rows->room ? 2 * rows->room : 8;
        if (!arena_fits(o->arena, room * sizeof *rows->list)) {
            return budget_error(o->budget);
        }
        cass_target *list = arena_array(o->arena, cass_target, room);
        if (rows->n) {
            memcpy(list, rows->list, rows->n * sizeof *list);
        }
        rows->list = list;
        rows->room = room;
    }
    rows->list[rows->n++] = *t;
    return OK;
}

static err keep_row(writing *w, const cass_target *t) {
    return w->batch && is_full(w) ? cass_invalid(w->q, "The batch changes more than %d rows.", CASS_BATCH_ROWS) : add_row(w, t);
}

/* ---- the result ---- */

static const cass_selection *applied_selection(cass_request *q, const cass_statement *s, bool all) {
    const cass_table *t = s->table;
    op *o = &q->op;
    cql_select star = {.star = true};
    const cass_selection *whole;
    cass_selection *selection = arena_new(o->arena, cass_selection);
    cass_result_column *columns = arena_array(o->arena, cass_result_column, t->table.n + 1);
    columns[0] = (cass_result_column){.name = SLICE_LIT("[applied]"), .type = cql_type_of(CQL_BOOLEAN)};
    uint32_t n = 1;
    if (all && cass_selection_make(o, t, &star, &t->types.source, NULL, &whole) == OK) {
        for (uint32_t i = 0; i < whole->n; i++) {
            columns[n++] = whole->columns[i];
        }
    }
    *selection = (cass_selection){.table = t, .columns = columns, .n = n};
    return selection;
}

/* Not applied: the columns that the conditions name, or the whole row for IF NOT EXISTS. */
static const cass_selection *unapplied_selection(cass_request *q, const cass_statement *s, const cass_mutation *m, bool found) {
    const cass_selection *all = applied_selection(q, s, found);
    cass_selection *some = arena_new(q->op.arena, cass_selection);
    cass_result_column *columns = arena_array(q->op.arena, cass_result_column, all->n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        bool named = i == 0 || m->if_not_exists;
        for (uint32_t k = 0; !named && k < m->ifs_n; k++) {
            named = slice_eq(m->ifs[k].columns[0], all->columns[i].name);
        }
        if (named) {
            columns[n++] = all->columns[i];
        }
    }
    *some = *all;
    some->columns = columns;
    some->n = n;
    return some;
}

/* `unmet` is the row whose conditions are not met, as it is. */
static err answer_applied(writing *w, bool applied, const cass_mutation *m, slice unmet) {
    cass_request *q = w->q;
    cass_row row;
    bool live = false;
    if (unmet.n) {
        TRY(cass_row_read(&q->op, m->table, unmet, m->now_s, NULL, false, &row));
        live = cass_row_is_live(m->table, &row, m->now_s);
    }
    const cass_selection *s = applied ? applied_selection(q, w->conditional, false) : unapplied_selection(q, w->conditional, m, live);
    pieces *rows = arena_new(q->frame->arena, pieces);
    *rows = pieces_init(q->op.budget);
    buf *out = pieces_room(rows, 0);
    cql_value_encode(out, cql_value_bool(applied));
    cass_scope scope = {.o = &q->op, .run = &q->run, .table = m->table, .row = &row, .now_s = m->now_s};
    err code = OK;
    for (uint32_t i = 1; code == OK && i < s->n; i++) {
        cql_value v;
        code = cass_evaluate(&scope, s->columns[i].expression, &v);
        cql_value_encode(out, v);
    }
    if (code == OK) {
        q->query.params.skip_metadata = false;
        cass_rows_put(q, &(cass_rows_answer){.selection = s, .n = 1, .rows = rows});
        call_commit_give(&q->call.commit);
        cass_end(q);
    } else {
        pieces_free(rows);
    }
    return code;
}

static void next(writing *w);

static void end_round(writing *w) {
    w->rows = (cass_targets){0};
    w->read_bytes = w->ranges_n = 0;
    arena_reset(&w->round);
    next(w);
}

/* ---- committing: one container ---- */

static err error_of(writing *w, const call_commit *c) {
    op *o = &w->q->op;
    for (size_t i = 0; i < c->n; i++) {
        const item_op *each = &c->ops[i];
        if (each->code != OK && each->code != E_FAILED_DEPENDENCY) {
            if (each->op.detail_n) {
                return op_fail_as(o, each->code, each->op.protocol_code, "%.*s", (int)each->op.detail_n, each->op.detail);
            }
            o->retry_after_ms = each->op.retry_after_ms;
            return each->code;
        }
    }
    return OK;
}

static bool is_unmet(const cass_mutation *m, const item_op *op) {
    return op->code == E_PRECONDITION || (op->code == OK && cass_mutation_is_conditional(m) && !op->reply.n);
}

static err answer_conditional(writing *w, const call_commit *commit, bool met) {
    uint32_t i = 0;
    while (i < w->rows.n && !is_unmet(&w->rows.list[i].mutation, &commit->ops[i])) {
        i++;
    }
    if (i == w->rows.n) {
        return answer_applied(w, met, &w->rows.list[0].mutation, SLICE_EMPTY);
    }
    const item_op *op = &commit->ops[i];
    return answer_applied(w, false, &w->rows.list[i].mutation, op->before_there ? op->before_body : SLICE_EMPTY);
}

static void end_commit(writing *w);

static void committed(call *c) {
    writing *w = of(c);
    cass_request *q = w->q;
    const call_commit *commit = &q->call.commit;
    err code = c->code != OK ? c->code : error_of(w, commit);
    if (w->conditional && (code == E_PRECONDITION || code == OK)) {
        q->op.detail_n = 0;
        q->op.protocol_code = 0;
        code = answer_conditional(w, commit, code == OK);
        if (code != OK) {
            call_commit_give(&q->call.commit);
            fail(w, code);
        }
        return;
    }
    call_commit_give(&q->call.commit);
    if (code != OK) {
        fail(w, code);
        return;
    }
    end_commit(w);
}

static err make_op(writing *w, const cass_target *t, item_op *each) {
    each->kind = ITEM_EDIT;
    each->edit = cass_edit_of(&t->mutation);
    op_init(&each->op, &w->round, w->q->op.now_s);
    err code = cass_key_of(&w->round_op, t->mutation.table, t->container, t->mutation.partition, t->mutation.clustering, &each->key);
    return explain(w, code, &w->round_op);
}

static err commit_rows(writing *w) {
    cass_request *q = w->q;
    if (!arena_fits(&w->round, w->rows.n * sizeof(item_op))) {
        return budget_error(q->op.budget);
    }
    item_op *ops = arena_array(&w->round, item_op, w->rows.n);
    for (uint32_t i = 0; i < w->rows.n; i++) {
        TRY(make_op(w, &w->rows.list[i], &ops[i]));
    }
    call_commit_init(&q->call.commit, &q->front->core, &q->frame->client, &q->op, w->rows.list[0].container, committed);
    q->call.commit.ops = ops;
    q->call.commit.n = w->rows.n;
    q->call.commit.atomic = w->rows.n > 1;
    call_commit_submit(&q->call.commit);
    return OK;
}

/* ---- committing: several containers, in a transaction ---- */

static void write_next(writing *w);

static void transaction_committed(call *c) {
    writing *w = of(c);
    if (c->code != OK) {
        fail(w, c->code);
        return;
    }
    end_commit(w);
}

static void written(call *c) {
    writing *w = of(c);
    if (c->code != OK) {
        fail(w, c->code);
        return;
    }
    write_next(w);
}

static void write_next(writing *w) {
    cass_request *q = w->q;
    call_within *within = &q->call.within;
    if (w->written == w->rows.n) {
        call_within_init(within, w->transaction, &q->front->core, &q->frame->client, &q->op, NULL, transaction_committed);
        call_within_commit(within);
        return;
    }
    const cass_target *t = &w->rows.list[w->written++];
    item_op *op = arena_new(&w->round, item_op);
    err code = make_op(w, t, op);
    if (code != OK) {
        fail(w, code);
        return;
    }
    call_within_init(within, w->transaction, &q->front->core, &q->frame->client, &q->op, t->container, written);
    within->op = op;
    call_within_write(within);
}

static bool spans_tables(const writing *w) {
    for (uint32_t i = 1; i < w->rows.n; i++) {
        if (memcmp(w->rows.list[i].container->rid, w->rows.list[0].container->rid, sizeof w->rows.list[0].container->rid) != 0) {
            return true;
        }
    }
    return false;
}

static err commit_seen(writing *w) {
    if (!spans_tables(w)) {
        return commit_rows(w);
    }
    if (w->conditional) {
        return cass_invalid(w->q, "Batch with conditions cannot span multiple tables");
    }
    w->transaction = call_transaction_begin(&w->q->front->core, w->q->frame->client.loop);
    w->written = 0;
    write_next(w);
    return OK;
}

/* ---- what deleted ranges hide of it (hiding.h) ---- */

static void hidden_seen(cass_request *q, err code) {
    writing *w = q->state;
    code = code == OK ? commit_seen(w) : explain(w, code, &w->round_op);
    if (code != OK) {
        fail(w, code);
    }
}

static err commit_all(writing *w) {
    w->hiding = (cass_hiding){.q = w->q, .op = &w->round_op, .rows = w->rows.list, .n = w->rows.n, .then = hidden_seen};
    cass_hiding_begin(&w->hiding);
    return OK;
}

static void hide_next(writing *w);

static void row_hidden(call *c) {
    writing *w = of(c);
    err code = c->code != OK ? c->code : error_of(w, &w->q->call.commit);
    call_commit_give(&w->q->call.commit);
    if (code != OK) {
        fail(w, code);
    } else {
        hide_next(w);
    }
}

/* Rows that a range hides, which was deleted while they were committed: each is deleted by itself, since there are hardly any. */
static void hide_next(writing *w) {
    cass_request *q = w->q;
    while (w->written < w->rows.n && !w->rows.list[w->written].mutation.is_hidden) {
        w->written++;
    }
    if (w->written == w->rows.n) {
        end_round(w);
        return;
    }
    cass_target t = w->rows.list[w->written++];
    const cass_mutation *m = &t.mutation;
    cass_mutation *deletes = arena_new(&w->round, cass_mutation);
    *deletes = (cass_mutation){.table = m->table,
                               .partition = m->partition,
                               .clustering = m->clustering,
                               .us = m->hidden_us,
                               .now_s = m->now_s,
                               .run = m->run,
                               .deletes_row = true};
    item_op *op = arena_new(&w->round, item_op);
    t.mutation = *deletes;
    err code = make_op(w, &t, op);
    op->edit = cass_edit_of(deletes);
    if (code != OK) {
        fail(w, code);
        return;
    }
    call_commit_init(&q->call.commit, &q->front->core, &q->frame->client, &q->op, t.container, row_hidden);
    q->call.commit.ops = op;
    q->call.commit.n = 1;
    call_commit_submit(&q->call.commit);
}

static void hidden_afterwards(cass_request *q, err code) {
    writing *w = q->state;
    if (code != OK) {
        fail(w, explain(w, code, &w->round_op));
        return;
    }
    w->written = w->hiding.any ? 0 : w->rows.n;
    hide_next(w);
}

static void end_commit(writing *w) {
    if (cass_hiding_is_behind(&w->hiding)) {
        w->hiding.then = hidden_afterwards;
        cass_hiding_begin(&w->hiding);
    } else {
        end_round(w);
    }
}

/* ---- range deletes: the rows are read, and each becomes a mutation ---- */

/* False for rows that the deletion leaves as they are: those deleted by now, and the static row unless the whole partition goes. */
static bool is_deleted_by(const cass_target *t, const cass_row *row) {
    return row->deleted_us < t->mutation.us && (!row->is_static || t->whole);
}

static err keep_found(writing *w, const cass_row *row) {
    const cql_table *table = &w->current->mutation.table->table;
    cass_target t = *w->current;
    cql_value *clustering = arena_array(&w->round, cql_value, table->clustering_n);
    for (uint32_t i = 0; i < table->clustering_n; i++) {
        cql_value v = row->cells[table->partition_n + i].value;
        clustering[i] = v.null ? v : cql_value_of(arena_copy(&w->round, v.bytes));
    }
    t.ranged = false;
    t.mutation.clustering = row->is_static ? NULL : clustering;
    TRY(budget_error(w->q->op.budget));
    return keep_row(w, &t);
}

/* False: the row counts as not read. */
static bool take_found(void *context, const item_found *found) {
    writing *w = context;
    const cass_mutation *m = &w->current->mutation;
    arena_mark mark = arena_marked(&w->scratch);
    cass_row row;
    if (is_full(w)) {
        w->more = true;
        return false;
    }
    w->code = cass_row_read(&w->row_op, m->table, found->body, m->now_s, w->keys, false, &row);
    if (w->code == OK && is_deleted_by(w->current, &row)) {
        w->code = keep_found(w, &row);
        w->read_bytes += found->body.n;
    }
    arena_release(&w->scratch, mark);
    return w->code == OK;
}

static void range_read(call *c) {
    writing *w = of(c);
    const item_rows_cursor *cursor = &w->q->call.rows.cursor;
    err code = c->code != OK ? c->code : explain(w, w->code, &w->row_op);
    if (code == OK && w->more && w->batch) {
        code = cass_invalid(w->q, "The batch deletes ranges of more than %d rows: delete them outside a batch.", CASS_BATCH_ROWS);
    }
    if (code != OK) {
        fail(w, code);
        return;
    }
    w->place = cursor->ended ? SLICE_EMPTY : cursor->place;
    w->more = !cursor->ended;
    w->at += cursor->ended;
    next(w);
}

static err bound_of(writing *w, const cass_target *t, const cql_bound *b, item_row_bound *bound) {
    bound->given = b->n > 0;
    bound->exclusive = !b->inclusive;
    return b->n ? cass_row_prefix(&w->q->op, t->mutation.table, t->container, b->values, b->n, &bound->prefix) : OK;
}

static err begin_range(writing *w, cass_target *t) {
    op *o = &w->q->op;
    const cql_table *table = &t->mutation.table->table;
    item_key *key = arena_new(o->arena, item_key);
    w->current = t;
    w->keys = arena_array(o->arena, bool, table->n);
    for (uint32_t i = 0; i < table->clustering_n; i++) {
        w->keys[table->partition_n + i] = true;
    }
    TRY(cass_key_of(o, t->mutation.table, t->container, t->mutation.partition, NULL, key));
    w->ask = item_rows_ask_partition(key);
    w->ask.steps_max = ROUND_ROWS * 4;
    TRY(bound_of(w, t, &t->range.start, &w->ask.from));
    return bound_of(w, t, &t->range.end, &w->ask.to);
}

/* ---- range deletes: before the rows are read, the partitions remember their ranges ---- */

static bool is_remembered(const cass_target *t) {
    return t->ranged && t->mutation.table->gc_grace_s > 0 && !t->mutation.table->counters;
}

/* The mutation of the partition's static row that adds the range. */
static err range_mutation(writing *w, const cass_target *t, cass_target *out) {
    op *o = &w->round_op;
    item_row_bound from = {0}, to = {0};
    cass_range *range = arena_new(o->arena, cass_range);
    TRY(bound_of(w, t, &t->range.start, &from));
    TRY(bound_of(w, t, &t->range.end, &to));
    const cass_mutation *m = &t->mutation;
    *range = cass_range_of(&from, &to, m->us, m->now_s + m->table->gc_grace_s);
    *out = *t;
    out->ranged = false;
    out->mutation.clustering = NULL;
    out->mutation.deletes_row = t->whole;
    out->mutation.range = range;
    out->mutation.bytes += from.prefix.n + to.prefix.n;
    return OK;
}

static err read_range(writing *w);

static void ranges_noted(call *c) {
    writing *w = of(c);
    cass_request *q = w->q;
    err code = c->code != OK ? c->code : error_of(w, &q->call.commit);
    call_commit_give(&q->call.commit);
    if (code == OK) {
        cass_hiding_note(q->front, w->targets.list[0].container, w->targets.list[0].mutation.us);
        code = read_range(w);
    }
    if (code != OK) {
        fail(w, code);
    }
}

/* Those of the next targets in one commit; the targets of a statement are of one table. In a batch they are committed with the rows. */
static err note_ranges(writing *w) {
    cass_request *q = w->q;
    uint32_t left = w->targets.n - w->at, n = left < ROUND_ROWS ? left : ROUND_ROWS, ops_n = 0;
    if (!arena_fits(&w->round, n * (sizeof(cass_target) + sizeof(item_op)))) {
        return budget_error(q->op.budget);
    }
    cass_target *made = arena_array(&w->round, cass_target, n);
    item_op *ops = arena_array(&w->round, item_op, n);
    for (uint32_t i = 0; i < n; i++) {
        const cass_target *t = &w->targets.list[w->at + i];
        if (is_remembered(t)) {
            TRY(range_mutation(w, t, &made[ops_n]));
            TRY(make_op(w, &made[ops_n], &ops[ops_n]));
            ops_n++;
        }
    }
    w->noted_n = w->at + n;
    cass_hiding_note(q->front, w->targets.list[w->at].container, w->targets.list[w->at].mutation.us);
    call_commit_init(&q->call.commit, &q->front->core, &q->frame->client, &q->op, w->targets.list[w->at].container, ranges_noted);
    q->call.commit.ops = ops;
    q->call.commit.n = ops_n;
    call_commit_submit(&q->call.commit);
    return OK;
}

static err note_in_batch(writing *w, const cass_target *t) {
    cass_target made;
    w->noted_n = w->at + 1;
    if (w->ranges_n == CASS_BATCH_ROWS) {
        return cass_invalid(w->q, "The batch deletes more than %d ranges.", CASS_BATCH_ROWS);
    }
    TRY(range_mutation(w, t, &made));
    cass_hiding_note(w->q->front, t->container, t->mutation.us);
    TRY(add_row(w, &made));
    w->ranges_n++;
    return OK;
}

/* ---- range deletes: reading ---- */

static err read_range(writing *w) {
    cass_request *q = w->q;
    cass_target *t = &w->targets.list[w->at];
    if (w->at >= w->noted_n && is_remembered(t)) {
        if (!w->batch) {
            return note_ranges(w);
        }
        TRY(note_in_batch(w, t));
    }
    if (w->current != t) {
        TRY(begin_range(w, t));
    }
    call_rows_init(&q->call.rows, &q->front->core, &q->frame->client, &q->op, t->container, range_read);
    q->call.rows.ask = w->ask;
    q->call.rows.cursor.place = w->place;
    q->call.rows.sink = take_found;
    q->call.rows.context = w;
    w->more = false;
    call_rows_submit(&q->call.rows);
    return OK;
}

/* ---- steps ---- */

static err step(writing *w) {
    bool all_read = w->at == w->targets.n;
    if (w->rows.n && (all_read || (!w->batch && (w->more || is_full(w))))) {
        return commit_all(w);
    }
    if (!all_read && w->targets.list[w->at].ranged) {
        return read_range(w);
    }
    if (!all_read) {
        TRY(keep_row(w, &w->targets.list[w->at++]));
        next(w);
        return OK;
    }
    return cass_answer_void(w->q);
}

static void next(writing *w) {
    while (w->at < w->targets.n && !w->targets.list[w->at].ranged && !(w->more && w->rows.n) && (w->batch || !is_full(w))) {
        err code = keep_row(w, &w->targets.list[w->at++]);
        if (code != OK) {
            fail(w, code);
            return;
        }
    }
    err code = step(w);
    if (code != OK) {
        fail(w, code);
    }
}

static writing *begin(cass_request *q) {
    writing *w = arena_alloc(q->frame->arena, sizeof *w);
    memset(w, 0, offsetof(writing, row_op));
    w->q = q;
    w->scratch = arena_init_counted(q->op.budget);
    w->round = arena_init_counted(q->op.budget);
    op_init(&w->row_op, &w->scratch, q->op.now_s);
    op_init(&w->round_op, &w->round, q->op.now_s);
    q->state = w;
    q->clean = clean;
    return w;
}

static err check_time(cass_request *q, int64_t us) {
    return us != INT64_MIN ? OK
                           : op_fail_as(&q->op, E_BAD_REQUEST, CASS_CODE_PROTOCOL,
                                        "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807]");
}

static err time_of(cass_request *q, const cass_params *p, int64_t *us_out) {
    *us_out = p->timed ? p->timestamp_us : cass_write_time(q->front, q->now_us);
    return check_time(q, *us_out);
}

static int64_t seconds_of(const cass_request *q, const cass_params *p) {
    return p->has_now ? p->now_s : q->now_us / 1000000;
}

err cass_write(cass_request *q) {
    writing *w = begin(q);
    cass_write_input in = {.statement = q->statement, .container = q->container, .run = &q->run, .now_s = seconds_of(q, &q->query.params)};
    TRY(time_of(q, &q->query.params, &in.us));
    TRY(cass_targets_add(&q->op, &in, &w->targets));
    if (w->targets.n && w->targets.list[0].mutation.prevails) {
        w->conditional = q->statement;
    }
    next(w);
    return OK;
}

/* ---- batches ---- */

static container *container_of(const cass_request *q, const cass_table *t) {
    for (const cass_held *h = q->held; h; h = h->next) {
        if (h->table == t) {
            return h->container;
        }
    }
    return NULL;
}

static err check_batch(cass_request *q, cql_batch_kind kind, const cass_batch_item *items, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        bool counts = items[i].statement->table->counters;
        if (counts && kind != CQL_BATCH_COUNTER) {
            return cass_invalid(q, "Cannot include counter statement in a %s batch", kind == CQL_BATCH_LOGGED ? "logged" : "unlogged");
        }
        if (!counts && kind == CQL_BATCH_COUNTER) {
            return cass_invalid(q, "Cannot include non-counter statement in a counter batch");
        }
    }
    return OK;
}

static err read_batch_time(cass_request *q, const cql_using *usings, int64_t *us, bool *given) {
    cql_receiver receiver = {.name = SLICE_LIT("[timestamp]"), .type = cql_type_of(CQL_BIGINT)};
    cql_value v;
    *given = usings && usings->timestamp;
    if (*given) {
        TRY(cql_term_value(&q->op, &q->run, usings->timestamp, &receiver, &v));
        if (!cql_as_bigint(v, us)) {
            return cass_invalid(q, "Invalid null value of timestamp");
        }
        return check_time(q, *us);
    }
    return OK;
}

static err check_conditional(writing *w) {
    for (uint32_t i = 0; w->conditional && i < w->targets.n; i++) {
        if (!cass_mutation_same_partition(&w->targets.list[0].mutation, &w->targets.list[i].mutation)) {
            return cass_invalid(w->q, "Batch with conditions cannot span multiple partitions");
        }
        if (w->targets.list[i].ranged) {
            return cass_invalid(w->q, "Batch with conditions cannot delete ranges");
        }
    }
    return OK;
}

err cass_write_batch(cass_request *q, cql_batch_kind kind, const cass_batch_item *items, uint32_t n, const cql_using *usings) {
    const cass_params *p = usings ? &q->query.params : &q->batch.params;
    writing *w = begin(q);
    cql_run *runs = arena_array(q->frame->arena, cql_run, n ? n : 1);
    cass_write_input in = {.now_s = seconds_of(q, p), .in_batch = true};
    TRY(time_of(q, p, &in.us));
    TRY(check_batch(q, kind, items, n));
    TRY(read_batch_time(q, usings, &in.us, &in.us_is_given));
    w->batch = true;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t before = w->targets.n;
        runs[i] = q->run;
        runs[i].values = items[i].values;
        runs[i].values_n = items[i].values_n;
        in.statement = items[i].statement;
        in.container = container_of(q, items[i].statement->table);
        in.run = &runs[i];
        TRY(cass_targets_add(&q->op, &in, &w->targets));
        if (!w->conditional && w->targets.n > before && w->targets.list[before].mutation.prevails) {
            w->conditional = items[i].statement;
        }
    }
    TRY(check_conditional(w));
    next(w);
    return OK;
}
