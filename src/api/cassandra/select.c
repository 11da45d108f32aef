/* SELECT: where its rows come from, page by page, and the answer. */
#include "api/cassandra/select.h"

enum { SCAN_STEPS = 100000 };

static cass_selecting *of(call *c) {
    return ((cass_request *)c)->state;
}

/* ---- the answer ---- */

void cass_rows_put(cass_request *q, const cass_rows_answer *a) {
    enum { GLOBAL = 1, MORE_PAGES = 2, NO_METADATA = 4 };
    const cass_params *p = &q->query.params;
    bool skips = p->skip_metadata && q->envelope.opcode == CASS_EXECUTE;
    buf *out = cass_answer(q, CASS_RESULT);
    cass_put_int(out, CASS_RESULT_ROWS);
    cass_put_int(out, (skips ? NO_METADATA : GLOBAL) | (a->paging_state.n ? MORE_PAGES : 0));
    cass_put_int(out, a->selection->json ? 1 : (int32_t)a->selection->n);
    if (a->paging_state.n) {
        cass_put_bytes(out, a->paging_state);
    }
    if (!skips) {
        cass_metadata_put(out, a->selection, q->version);
    }
    cass_put_int(out, (int32_t)a->n);
    q->rows = a->rows;
}

static void clean(cass_request *q) {
    cass_selecting *g = q->state;
    pieces_free(&g->out);
    buf_free(&g->partition);
    arena_free(&g->scratch);
    arena_free(&g->group_bytes);
    arena_free(&g->statics_bytes);
}

static void answer(cass_selecting *g) {
    cass_request *q = g->q;
    err code = g->code == OK ? (g->full ? OK : cass_selecting_finish(g)) : g->code;
    if (code == OK && !pieces_ok(&g->out)) {
        code = budget_error(q->op.budget);
    }
    if (code != OK) {
        cass_fail(q, code);
        return;
    }
    cass_rows_answer a = {.selection = g->selection, .n = g->n, .rows = &g->out};
    if (g->full && g->page.left > 0) {
        g->page.range = g->scans ? g->any_row : g->page.range;
        g->page.key = g->scans || g->has_statics ? buf_view(&g->partition) : SLICE_EMPTY;
        a.paging_state = cass_page_write(q->frame->arena, &g->page);
    }
    cass_rows_put(q, &a);
    cass_end(q);
}

/* ---- sources ---- */

static const cql_value *key_at(const cass_selecting *g) {
    return g->keys + (size_t)g->page.partition * g->s->table->table.partition_n;
}

static void next_range(cass_selecting *g) {
    g->page.place = SLICE_EMPTY;
    if (++g->page.range >= g->ranges_n) {
        g->page.range = 0;
        if (cass_selecting_end_partition(g)) {
            g->page.partition++;
        } else if (g->full) {
            g->page.range = g->ranges_n; /* the static row alone is still to come */
        }
    }
}

static bool is_point(const cass_selecting *g) {
    const cql_range *r = &g->ranges[g->page.range];
    uint32_t n = g->s->table->table.clustering_n;
    if (r->start.n != n || r->end.n != n || !r->start.inclusive || !r->end.inclusive) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!slice_eq(r->start.values[i].bytes, r->end.values[i].bytes)) {
            return false;
        }
    }
    return true;
}

/* One row, or the static row of a partition. */
static void item_read_done(call *c) {
    cass_selecting *g = of(c);
    cass_request *q = g->q;
    err code = c->code;
    bool statics = g->reading_static;
    bool taken = true;
    if (code == OK) {
        taken = cass_selecting_take(g, q->call.read.found.body);
        call_read_give(&q->call.read);
    } else if (code == E_NOT_FOUND) {
        q->op.detail_n = 0;
    } else {
        g->code = code;
        taken = false;
    }
    if (statics) {
        g->static_read = true;
        g->reading_static = false;
    } else if (taken) {
        next_range(g);
    }
    cass_selecting_go_on(g);
}

static err read_item(cass_selecting *g, const cql_value *clustering) {
    cass_request *q = g->q;
    item_key key;
    TRY(cass_key_of(&q->op, g->s->table, q->container, key_at(g), clustering, &key));
    call_read_init(&q->call.read, &q->front->core, &q->frame->client, &q->op, q->container, item_read_done);
    q->call.read.key = key;
    call_read_submit(&q->call.read);
    return OK;
}

static bool take_found(void *context, const item_found *found) {
    return cass_selecting_take(context, found->body);
}

/* A share that is spent in the middle of a page ends the page; without paging, and if there is nothing to show, it is an error. */
static void end_early(cass_selecting *g, err code) {
    if (code == E_THROTTLED && g->page_rows && g->n && !g->groups) {
        g->full = true;
        g->q->op.detail_n = 0;
    } else {
        g->code = code;
    }
}

/* A page of a long scan ends after some time, perhaps without a row: the client asks for the next. */
static bool is_late(const cass_selecting *g) {
    enum { PAGE_US = 3000000 };
    return g->page_rows && !g->groups && clock_monotonic_us(net_loop_clock(g->q->frame->client.loop)) - g->q->started_us > PAGE_US;
}

static void rows_done(call *c) {
    cass_selecting *g = of(c);
    cass_request *q = g->q;
    item_rows_cursor *cursor = &q->call.rows.cursor;
    if (c->code != OK) {
        end_early(g, c->code);
        cass_selecting_go_on(g);
        return;
    }
    g->page.place = cursor->place;
    if (g->code == OK && !g->full && !g->done && cursor->ended) {
        if (g->scans) {
            g->done = !g->partition.n || cass_selecting_end_partition(g);
        } else {
            next_range(g);
        }
    } else if (!cursor->ended && is_late(g)) {
        g->full = true;
    }
    cass_selecting_go_on(g);
}

static err bound_of(cass_selecting *g, const cql_bound *b, item_row_bound *bound) {
    bound->given = b->n > 0;
    bound->exclusive = !b->inclusive;
    return b->n ? cass_row_prefix(&g->q->op, g->s->table, g->q->container, b->values, b->n, &bound->prefix) : OK;
}

static void submit_rows(cass_selecting *g) {
    cass_request *q = g->q;
    q->call.rows.ask.steps_max = SCAN_STEPS;
    q->call.rows.ask.rows_max = 0;
    q->call.rows.cursor.place = g->page.place;
    q->call.rows.sink = take_found;
    q->call.rows.context = g;
    call_rows_submit(&q->call.rows);
}

static err read_range(cass_selecting *g) {
    cass_request *q = g->q;
    const cql_range *r = &g->ranges[g->page.range];
    item_key *key = arena_new(q->frame->arena, item_key);
    TRY(cass_key_of(&q->op, g->s->table, q->container, key_at(g), NULL, key));
    call_rows_init(&q->call.rows, &q->front->core, &q->frame->client, &q->op, q->container, rows_done);
    q->call.rows.ask = item_rows_ask_partition(key);
    TRY(bound_of(g, &r->start, &q->call.rows.ask.from));
    TRY(bound_of(g, &r->end, &q->call.rows.ask.to));
    q->call.rows.ask.backward = g->s->backward;
    submit_rows(g);
    return OK;
}

static bool take_indexed(void *context, const query_found *row) {
    return cass_selecting_take(context, row->body);
}

static void found(call *c) {
    cass_selecting *g = of(c);
    if (c->code != OK) {
        end_early(g, c->code);
    } else {
        g->page.place = g->q->call.find.next;
        g->done = g->done || (!g->full && !g->page.place.n);
        g->full = g->full || (!g->done && is_late(g));
    }
    cass_selecting_go_on(g);
}

static err find(cass_selecting *g) {
    cass_request *q = g->q;
    call_find *f = &q->call.find;
    call_find_init(f, &q->front->core, &q->frame->client, &q->op, q->container, found);
    f->find.where = g->found_by;
    f->find.scope.min = g->min;
    f->find.scope.max = g->max;
    f->from = g->page.place;
    f->sink = take_indexed;
    f->context = g;
    call_find_submit(f);
    return OK;
}

static err scan(cass_selecting *g) {
    cass_request *q = g->q;
    call_rows_init(&q->call.rows, &q->front->core, &q->frame->client, &q->op, q->container, rows_done);
    q->call.rows.ask = item_rows_ask_space(g->min, g->max);
    submit_rows(g);
    return OK;
}

/* ---- steps ---- */

static bool wants_statics(const cass_selecting *g) {
    bool part = g->s->where.clustering_n || g->s->where.slice[0] || g->s->where.slice[1];
    return g->s->table->has_static && (g->s->uses_static || !part);
}

/* The values of a partition key from its bytes (cql_partition_bytes). False: they are not those of a key of this table. */
static bool split_key(cass_selecting *g, slice bytes, cql_value *values) {
    uint32_t n = g->s->table->table.partition_n;
    uint8_t end = 0;
    values[0] = cql_value_of(bytes);
    for (uint32_t i = 0; n > 1 && i < n; i++) {
        slice part;
        if (!cass_take_string(&bytes, &part) || !cass_take_byte(&bytes, &end) || end) {
            return false;
        }
        values[i] = cql_value_of(part);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (cql_value_check(&g->q->op, g->s->table->table.columns[i].type, values[i]) != OK) {
            return false;
        }
    }
    return n == 1 || bytes.n == 0;
}

/* A scan that goes on within a partition needs its static row, which the page before has passed. */
static err read_statics_of_page(cass_selecting *g) {
    cql_value *key = arena_array(g->q->frame->arena, cql_value, g->s->table->table.partition_n);
    g->static_read = true;
    if (!split_key(g, g->page.key, key)) {
        return op_fail_as(&g->q->op, E_BAD_CONTINUATION, CASS_CODE_PROTOCOL, "Invalid value for the paging state");
    }
    g->keys = key;
    g->page.partition = 0;
    g->reading_static = true;
    return read_item(g, NULL);
}

static err step(cass_selecting *g) {
    if (g->follows) {
        return cass_select_changes(g);
    }
    if (g->scans && g->resumed && !g->static_read && g->s->table->has_static && g->page.key.n) {
        return read_statics_of_page(g);
    }
    if (g->scans && g->resumed && g->page.key.n && !g->page.place.n) { /* the page before ended between the last row and the static row */
        g->done = cass_selecting_end_partition(g) || g->done;
        cass_selecting_go_on(g);
        return OK;
    }
    if (g->scans) {
        return g->finds ? find(g) : scan(g);
    }
    if (!g->static_read && wants_statics(g)) {
        g->reading_static = true;
        return read_item(g, NULL);
    }
    if (g->page.range >= g->ranges_n) { /* the page before ended between the rows and the static row */
        g->page.range = 0;
        g->page.partition += cass_selecting_end_partition(g);
        cass_selecting_go_on(g);
        return OK;
    }
    const cql_range *r = &g->ranges[g->page.range];
    if (!g->s->table->table.clustering_n) {
        return read_item(g, NULL);
    }
    return is_point(g) ? read_item(g, r->start.values) : read_range(g);
}

/* A step may complete before it returns, and begin the next: the depth is bounded by the loop below. */
void cass_selecting_go_on(cass_selecting *g) {
    if (g->stepping) {
        g->again = true;
        return;
    }
    g->stepping = true;
    do {
        g->again = false;
        bool ended = g->done || g->full || g->code != OK || (!g->scans && g->page.partition >= g->keys_n);
        if (ended) {
            g->stepping = false;
            answer(g);
            return;
        }
        err code = step(g);
        if (code != OK) {
            g->stepping = false;
            cass_fail(g->q, code);
            return;
        }
    } while (g->again);
    g->stepping = false;
}

/* ---- beginning ---- */

static err read_limit(cass_selecting *g, const cql_term *term, const char *name, int64_t *limit_out) {
    cql_receiver receiver = {.name = slice_str(name), .type = cql_type_of(CQL_INT)};
    cql_value v;
    int32_t n;
    *limit_out = CASS_NO_LIMIT;
    if (!term) {
        return OK;
    }
    TRY(cql_term_value(&g->q->op, &g->q->run, term, &receiver, &v));
    if (v.unset) {
        return OK;
    }
    if (!cql_as_int(v, &n) || n <= 0) {
        return cass_invalid(g->q, v.null ? "Invalid null value of limit" : "LIMIT must be strictly positive");
    }
    *limit_out = n;
    return OK;
}

static err begin_page(cass_selecting *g) {
    const cql_select *select = &g->s->tree->select;
    const cass_params *p = &g->q->query.params;
    TRY(read_limit(g, select->limit, "[limit]", &g->limit));
    g->page.left = g->limit;
    TRY(read_limit(g, select->partition_limit, "[per_partition_limit]", &g->page.partition_left));
    g->page_rows = p->page_size > 0 && !(g->selection->aggregates_n && !g->s->group_n) && !g->s->sorts ? p->page_size : 0;
    if (!p->paging_state.n) {
        return OK;
    }
    cass_page page = {0};
    bool good = cass_page_read(p->paging_state, &page) && page.left <= g->page.left && page.partition_left <= g->page.partition_left;
    if (!good || (!g->scans && (page.partition >= g->keys_n || page.range > g->ranges_n))) {
        return op_fail_as(&g->q->op, E_BAD_CONTINUATION, CASS_CODE_PROTOCOL, "Invalid value for the paging state");
    }
    g->page = page;
    g->resumed = true;
    if (g->scans) {
        buf_add_slice(&g->partition, page.key);
        g->any_row = page.range;
    }
    return OK;
}

/* The first place of the hash space with this token: two zero bits, the token from 0 on, zeros. */
static epk place_of(int64_t token) {
    uint64_t number = (uint64_t)token ^ (uint64_t)1 << 63;
    epk e = {.n = 16};
    for (int i = 0; i < 8; i++) {
        e.bytes[i] = (unsigned char)(number >> 2 >> (56 - 8 * i));
    }
    e.bytes[8] = (unsigned char)((number & 3) << 6);
    return e;
}

void cass_token_range(int64_t first, int64_t last, epk *min_out, epk *max_out) {
    *min_out = first == INT64_MIN ? epk_min() : place_of(first);
    *max_out = last == INT64_MAX ? epk_max() : place_of(last + 1);
}

static err find_partitions(cass_selecting *g) {
    cass_request *q = g->q;
    const cql_restrictions *r = &g->s->where;
    const cql_select *select = &g->s->tree->select;
    g->follows = r->change_feed;
    g->scans = g->follows || !r->whole_partition_key;
    g->min = epk_min();
    g->max = epk_max();
    if (g->follows && r->whole_partition_key) {
        TRY(cql_restrict_keys(&q->op, &q->run, r, &g->keys, &g->keys_n));
    }
    if (!g->scans) {
        TRY(cql_restrict_keys(&q->op, &q->run, r, &g->keys, &g->keys_n));
        TRY(cql_restrict_ranges(&q->op, &q->run, r, &g->ranges, &g->ranges_n));
        g->done = !g->ranges_n || !g->keys_n;
        if (g->s->backward && g->ranges_n > 1) {
            cql_range *reversed = arena_array(q->frame->arena, cql_range, g->ranges_n);
            for (uint32_t i = 0; i < g->ranges_n; i++) {
                reversed[i] = g->ranges[g->ranges_n - 1 - i];
            }
            g->ranges = reversed;
        }
        return OK;
    }
    if (r->token[0] || r->token[1]) {
        bool any;
        int64_t first, last;
        TRY(cql_restrict_tokens(&q->op, &q->run, r, &first, &last, &any));
        g->done = !any;
        cass_token_range(first, last, &g->min, &g->max);
    }
    bool grouped = g->s->group_n || select->distinct || select->partition_limit; /* rows of an index are not in the order of partitions */
    if (r->uses_index && !grouped && !g->follows) {
        TRY(cass_index_condition(g, &g->found_by));
        g->finds = g->found_by.n;
    }
    return OK;
}

/* The rows of a system table are in memory. */
static err take_system_rows(cass_selecting *g) {
    cass_system_rows rows;
    TRY(cass_system_read(g->q, g->s->table, &rows));
    for (uint32_t i = 0; i < rows.n && g->code == OK && !g->done; i++) {
        g->page_rows = 0;
        cass_selecting_take_row(g, &rows.rows[i]);
    }
    g->full = false;
    return OK;
}

static void take_on_worker(call *c) {
    c->code = take_system_rows(of(c));
}

static void system_taken(call *c) {
    cass_selecting *g = of(c);
    if (c->code != OK) {
        cass_fail(g->q, c->code);
    } else {
        answer(g);
    }
}

static err select_system(cass_selecting *g) {
    cass_request *q = g->q;
    if (cass_system_is_large(g->s->table)) {
        call_init(&q->call.any, &q->front->core, &q->frame->client, &q->op, NULL, system_taken);
        call_work(&q->call.any, NET_PAGES, take_on_worker);
    } else {
        TRY(take_system_rows(g));
        answer(g);
    }
    return OK;
}

/* As Cassandra warns, in its words. */
static slice warning_of(const cass_selecting *g) {
    const cql_restrictions *r = &g->s->where;
    bool keyed = r->token[0] || r->token[1] || r->whole_partition_key;
    for (uint32_t i = 0; i < r->filters_n; i++) {
        keyed = keyed || r->filters[i].column->kind == CQL_COLUMN_PARTITION;
    }
    return !g->groups        ? SLICE_EMPTY
           : !keyed          ? SLICE_LIT("Aggregation query used without partition key")
           : r->partition_in ? SLICE_LIT("Aggregation query used on multiple partition keys (IN restriction)")
                             : SLICE_EMPTY;
}

/* Rows of known partitions of which columns are returned, and nothing else is asked, need not become cells. */
static bool takes_plain(const cass_selecting *g) {
    const cql_restrictions *r = &g->s->where;
    bool more = g->scans || g->groups || g->s->sorts || g->s->tree->select.distinct || r->filters_n;
    return !more;
}

err cass_select(cass_request *q) {
    cass_selecting *g = arena_alloc(q->frame->arena, sizeof *g);
    memset(g, 0, offsetof(cass_selecting, row_op));
    g->q = q;
    g->s = q->statement;
    g->selection = q->statement->selection;
    g->out = pieces_init(q->op.budget);
    g->partition = buf_init(BUF_NO_LIMIT);
    g->scratch = arena_init_counted(q->op.budget);
    g->group_bytes = arena_init_counted(q->op.budget);
    g->statics_bytes = arena_init_counted(q->op.budget);
    op_init(&g->row_op, &g->scratch, q->op.now_s);
    op_init(&g->group_op, &g->group_bytes, q->op.now_s);
    g->groups = g->s->group_n || g->selection->aggregates_n;
    g->group = arena_array(q->frame->arena, cql_value, g->s->group_n + 1);
    q->state = g;
    q->clean = clean;
    if (g->s->table->system) {
        g->page = (cass_page){.left = CASS_NO_LIMIT, .partition_left = CASS_NO_LIMIT};
        TRY(read_limit(g, g->s->tree->select.limit, "[limit]", &g->page.left));
        return select_system(g);
    }
    q->warning = warning_of(g);
    TRY(find_partitions(g));
    TRY(begin_page(g));
    g->plain = takes_plain(g) ? cass_plain_make(&q->op, g->selection) : NULL;
    cass_selecting_go_on(g);
    return OK;
}
