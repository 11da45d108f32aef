#include "query/exec_int.h"

#include <stdlib.h>

#include "base/memory.h"
#include "item/foreign.h"
#include "query/key.h"
#include "query/notes.h"
#include "query/order_by.h"

enum {
    STEPS = 20000,
    /* limits of a quick page */
    QUICK_STEPS = 256, /* index entries */
    QUICK_ITEMS = 128,
    QUICK_ITEMS_ORDERED = 32, /* with ORDER BY: items beyond the rows wanted */
    QUICK_BYTES = 256 * 1024,
    QUICK_BUDGET = 20000, /* evaluation steps, about 0.2 ms */
    ITEMS_BETWEEN_CLOCKS = 64,
    STEPS_BETWEEN_CLOCKS = 20000
};

/* ---- one item ---- */

void query__set_item(exec *x, const item_found *found) {
    x->item = (query_item){.body = found->body, .number = found->head.number, .version = item_version(&found->head), .ts = found->head.ts};
    memcpy(x->item.container_rid, x->page->ask.container->rid, sizeof x->item.container_rid);
    x->item.shows_id = item_owner_shows_ids(x->page->ask.container);
    x->item_value = value_of_item(&x->item);
    x->row = 0;
    x->times = 1;
    x->found = found;
}

bool query__time_is_up(const query_page *p) {
    return p->ask.until_us && clock_monotonic_us(p->ask.items->clock) - op_waited_us(p->ask.op) >= p->ask.until_us;
}

void query__lap(exec *x, uint64_t *to) {
    if (x->page->ask.timed) {
        int64_t now = clock_monotonic_us(x->page->ask.items->clock);
        *(to ? to : &(uint64_t){0}) += (uint64_t)(now - x->lap_us);
        x->lap_us = now;
    }
}

bool query__may_keep(exec *x) {
    return query_may_keep(&x->runner);
}

/* Each item has its own budget of steps; a quick page has one for all its items. */
static void renew_steps(exec *x) {
    if (!x->page->ask.quick) {
        x->steps += QUERY_ITEM_STEPS - x->runner.steps;
        query_renew_steps(&x->runner, QUERY_ITEM_STEPS);
    }
}

/* If ORDER BY walks an index and WHERE passes few items, the page is left to a worker. */
static uint64_t quick_items(const exec *x) {
    uint64_t ordered = x->rows_wanted + QUICK_ITEMS_ORDERED;
    return x->select->order_n && ordered < QUICK_ITEMS ? ordered : QUICK_ITEMS;
}

/* Counts an item. False: the page must end before it. The clock is read every few items, and after an item that took long. */
bool query__may_continue(exec *x) {
    bool first = ++x->items == 1;
    bool asks = x->items % ITEMS_BETWEEN_CLOCKS == 0 || (x->unknown && !first) || QUERY_ITEM_STEPS - x->runner.steps > STEPS_BETWEEN_CLOCKS;
    x->late = asks && !x->access.turn.times && query__time_is_up(x->page);
    renew_steps(x);
    if (x->page->ask.quick && x->items > quick_items(x)) {
        x->runner.code = E_QUERY_TOO_LONG;
    }
    return !x->late && query__may_keep(x) && x->runner.code == OK;
}

static bool matched_row(void *context) {
    exec *x = context;
    x->matched = true;
    return x->on_row(x);
}

/* Notes in the trace which range is being read. */
static void enter_part(exec *x, uint32_t range_id) {
    query_trace *t = x->page->ask.trace;
    if (!t || (x->part && x->part->range_id == range_id)) {
        return;
    }
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 8;
        query_part *more = arena_array(x->page->ask.op->arena, query_part, t->cap);
        for (size_t i = 0; i < t->n; i++) {
            more[i] = t->parts[i];
        }
        t->parts = more;
    }
    x->part = &t->parts[t->n++];
    *x->part = (query_part){.range_id = range_id};
    x->cost.done = &x->part->done;
}

bool query__fills_page(const exec *x) {
    return x->page->ask.full_goes_on && x->page->outcome.rows == x->page->ask.rows_max && !x->finished;
}

static void count_item(exec *x, const item_found *found) {
    query_metrics *m = &x->page->outcome.metrics;
    m->read++;
    m->read_bytes += found->body.n;
    m->matched += x->matched;
    query_cost_item(&x->cost, &x->item_value, found->body.n, x->matched);
}

static bool take_stop_values(void *context) {
    exec *x = context;
    for (size_t i = 0; i < x->select->order_n; i++) {
        query_value v = query_eval(&x->runner, x->select->order[i].expr);
        x->stopped_values[i] = value_keep(&x->keep, &v);
    }
    return false;
}

/* The deadline passed during an ordered walk: the next page begins with this item, whether or not it passes WHERE. */
static void stop_before(exec *x, const item_found *found) {
    query_select all = *x->select;
    all.where = NULL;
    arena_reset(&x->row_arena);
    query__set_item(x, found);
    x->stopped_values = arena_array(&x->keep, query_value, x->select->order_n); /* undefined */
    query_each_row(&x->runner, &all, &x->item_value, take_stop_values, x);
    if (x->access.turn.only_undefined) {
        x->stopped_values[0] = value_undefined();
    }
    x->stopped_number = x->select->order[0].descending ? found->place.number + 1 : found->place.number - 1;
}

/* Whether the entry of a key index that led to the item is the item's place in the order, and not another of its keys. */
static bool is_at_its_place(exec *x, const item_found *found) {
    slice key;
    char space[INDEX_VALUE_BYTES_MAX];
    buf spelled = {.p = space, .cap = sizeof space, .max = sizeof space};
    arena_reset(&x->row_arena);
    err code = query_key_of_item(x->select->order[0].expr->key, x->page->ask.op, &x->row_arena, found->body, &key);
    if (code != OK) {
        x->runner.code = x->runner.code == OK ? code : x->runner.code;
        return true;
    }
    index_spell_string(&spelled, key);
    return slice_eq(buf_view(&spelled), x->access.turn.key);
}

bool query__visit_item(void *context, const item_found *found) {
    exec *x = context;
    query_page *p = x->page;
    size_t rows = p->outcome.rows;
    query__lap(x, &p->outcome.metrics.load_us);
    if (find_nearest_was_offered(&x->access.report.graph, found->place.number)) {
        return true;
    }
    if (x->access.turn.key.n && !is_at_its_place(x, found)) {
        return true;
    }
    if (p->ask.quick && p->outcome.metrics.read_bytes + found->body.n > QUICK_BYTES) {
        x->runner.code = E_QUERY_TOO_LONG;
    }
    if (!query__may_continue(x)) {
        if (x->late && x->access.turn.in_order && !x->by_count) {
            stop_before(x, found);
        }
        return false;
    }
    enter_part(x, found->range->id);
    arena_reset(&x->row_arena);
    query__set_item(x, found);
    x->matched = x->gather != NULL;
    uint64_t taken = x->calls.taken;
    if (x->gather) {
        query_gather_add(x->gather, &x->runner, &x->item_value);
    } else {
        query_each_row(&x->runner, x->select, &x->item_value, matched_row, x);
    }
    query__lap(x, NULL);
    bool for_later = x->access.turn.beyond || (x->full && p->outcome.rows == rows);
    if (x->runner.code == OK && !for_later) {
        query__charge_calls(x, taken);
        count_item(x, found);
    }
    if (x->full || x->finished || x->access.turn.beyond || x->runner.code != OK) {
        return false;
    }
    if (p->outcome.rows > rows && query__fills_page(x)) {
        x->end = x->cursor->stretches[0]; /* the feed has cut it to the item's range */
        x->end.after = x->item.number;
    }
    return true;
}

/* ---- returning a row ---- */

double query__rows_left(const exec *x) {
    const query *q = x->page->ask.query;
    double most = q->top >= 0 && (q->limit < 0 || q->top < q->limit) ? q->top : q->limit;
    double left = most - (double)x->page->position.given;
    return most < 0 ? -1 : left > 0 ? left : 0;
}

uint64_t query__offset_left(const exec *x) {
    double skipped = (double)x->page->position.skipped, offset = x->page->ask.query->offset;
    return offset > skipped ? (uint64_t)(offset - skipped) : 0;
}

/* False: the page has no room for it. */
static bool write_row(exec *x, const query_value *v) {
    query_page *p = x->page;
    size_t before = p->ask.out->n;
    if (p->outcome.rows == p->ask.rows_max) {
        return false;
    }
    if (p->outcome.rows) {
        buf_add_byte(p->ask.out, ',');
    }
    query__lap(x, NULL);
    value_write(p->ask.out, v);
    query__lap(x, &p->outcome.metrics.write_us);
    if (!buf_ok(p->ask.out)) {
        p->ask.out->n = before;
        query_made(&x->runner, value_undefined());
        return false;
    }
    if (p->outcome.rows && p->ask.out->n > p->ask.bytes_max) {
        p->ask.out->n = before;
        return false;
    }
    p->outcome.rows++;
    p->outcome.metrics.rows_bytes += p->ask.out->n - before;
    query_cost_row(&x->cost, p->ask.out->n - before);
    return true;
}

static bool sink_row(exec *x) {
    query_page *p = x->page;
    query_metrics *m = &p->outcome.metrics;
    uint64_t times = x->access.turn.times;
    const query_found row = {.container = p->ask.container, .head = x->found->head, .body = x->found->body, .times = times ? times : 1};
    bool fits = times || (p->outcome.rows < p->ask.rows_max && (p->outcome.rows == 0 || m->rows_bytes + row.body.n <= p->ask.bytes_max));
    if (!fits || !p->ask.sink(p->ask.sink_context, &row)) {
        return false;
    }
    query_cost_skipped(&x->cost, row.times - 1);
    p->outcome.rows++;
    m->rows_bytes += row.body.n;
    query_cost_row(&x->cost, row.body.n);
    return true;
}

/* Applies OFFSET, TOP and LIMIT, then returns the row. False: stop. */
bool query__give_row(exec *x, const query_value *v) {
    query_position *at = &x->page->position;
    if (x->page->ask.query->offset > 0 && (double)at->skipped < x->page->ask.query->offset) {
        at->skipped++;
        return true;
    }
    if (query__rows_left(x) == 0) {
        x->finished = true;
        return false;
    }
    if (!(x->page->ask.sink ? sink_row(x) : write_row(x, v))) {
        x->full = true;
        return false;
    }
    at->given++;
    x->finished = query__rows_left(x) == 0;
    return !x->finished;
}

/* ---- streaming ---- */

/* How many rows of the current item earlier pages have returned. */
static uint64_t rows_before(const exec *x) {
    const query_position *at = &x->page->position;
    uint64_t rows = 0;
    for (size_t i = 0; i < at->begun_n; i++) {
        rows = at->begun[i].number == x->item.number ? at->begun[i].rows : rows;
    }
    return rows;
}

/* The page ends before this row of the item. */
static void stop_inside(exec *x) {
    const container *c = x->page->ask.container;
    pkey key = {0};
    op unused = {0};
    x->inside = (query_begun){.number = x->item.number, .rows = x->row};
    if (c->key.n == 0 || pkey_extract(&unused, x->item.body, &c->key, &key) == OK) { /* as when the item was written */
        epk_of(&c->key, &key, &x->inside.epk);
    }
}

static bool stream_row(void *context) {
    exec *x = context;
    if (x->page->position.begun_n && x->row < rows_before(x)) {
        x->row++;
        return true;
    }
    query_value v = query_project(&x->runner, x->select);
    if (x->runner.code != OK) {
        return false;
    }
    bool goes_on = !value_is_defined(&v) || query__give_row(x, &v);
    if (x->full) {
        stop_inside(x);
    }
    x->row++;
    return goes_on;
}

/* Whether the next pages may still come to the item. */
static bool is_ahead(const item_cursor *c, const query_begun *b) {
    bool ahead = false;
    for (size_t i = 0; i < c->n && !ahead; i++) {
        const item_stretch *s = &c->stretches[i];
        bool within = c->partition || (epk_cmp(&s->min, &b->epk) <= 0 && epk_cmp(&b->epk, &s->max) < 0);
        ahead = within && s->after < b->number;
    }
    return ahead;
}

/* The items that the next page finds begun. */
static void keep_begun(exec *x) {
    query_position *at = &x->page->position;
    const item_cursor *c = x->page->cursor;
    bool inside = x->inside.rows && c->n;
    size_t n = 0, from = at->begun_n + inside > QUERY_BEGUN_MAX;
    if (at->begun_n + inside == 0) {
        return;
    }
    query_begun *kept = arena_array(x->page->ask.op->arena, query_begun, at->begun_n + inside);
    for (size_t i = from; i < at->begun_n; i++) {
        if (at->begun[i].number != x->inside.number && is_ahead(c, &at->begun[i])) {
            kept[n++] = at->begun[i];
        }
    }
    if (inside) {
        kept[n++] = x->inside;
    }
    at->begun = kept;
    at->begun_n = n;
}

/* Stands in for an item: the value of an index entry, or just a number of items (`decided`: they pass WHERE). */
static bool visit_value(void *context, slice spelled, uint64_t times, bool decided) {
    exec *x = context;
    item_found found = {0};
    if (!query__may_continue(x)) {
        return false;
    }
    if (x->page->ask.query->counts) {
        x->page->outcome.counted += times;
        x->page->outcome.metrics.matched += times;
        query_cost_skipped(&x->cost, times);
        return true;
    }
    arena_reset(&x->row_arena);
    query_cover_item(&x->row_arena, &x->access.asked.cover, spelled, &found.body, &found.head.ts);
    query__set_item(x, &found);
    x->times = times;
    x->matched = decided;
    if (decided) {
        x->runner.item = &x->item_value;
        x->runner.slots[x->select->first_slot] = x->item_value;
        x->on_row(x);
    } else {
        query_each_row(&x->runner, x->select, &x->item_value, matched_row, x);
    }
    x->page->outcome.metrics.matched += x->matched ? times : 0;
    query_cost_entry(&x->cost, &x->item_value, times, x->matched);
    return !x->full && !x->finished && x->runner.code == OK;
}

static void before_load(void *context) {
    exec *x = context;
    query__lap(x, &x->page->outcome.metrics.index_us);
}

static void note_part(exec *x, const item_view *v, uint64_t entries) {
    const find_access *a = &x->access;
    query_part *part = x->part;
    part->asked = true;
    part->items = v->items_n;
    part->way = a->report.way;
    part->used = a->report.used;
    part->demands = a->report.others;
    part->demands_n = a->report.others_n;
    part->intersected = a->report.intersected;
    part->backward = a->report.composite && a->report.backward; /* only composite indexes need this: otherwise `order` has the direction */
    part->too_many = a->report.too_many;
    part->vector = a->report.nearest.meant ? a->report.nearest.vector->path.text : SLICE_EMPTY;
    part->graph = a->report.graph;
    part->small = v->partition && !v->local;
    part->entries += entries;
    arena *to = x->page->ask.op->arena;
    const find_path *by_key = a->asked.each.given ? &a->asked.each.path : &x->lead.by.path;
    part->order = a->report.way == WAY_IN_ORDER ? query_note_order(to, x->page->ask.query, a->report.composite)
                  : a->report.way == WAY_BY_KEY ? query_note_path(to, by_key->steps, by_key->n, "/?")
                                                : SLICE_EMPTY;
}

/* The key index by which a range was read. */
static void note_key_index(exec *x, bool found) {
    const find_report *r = &x->access.report;
    const query *q = x->page->ask.query;
    query_outcome *out = &x->page->outcome;
    const query_expr *by = x->select->order_n ? x->select->order[0].expr : NULL;
    out->index = !found                                               ? SLICE_EMPTY
                 : r->way == WAY_BY_KEY && q->each                    ? q->each->name
                 : r->way == WAY_IN_ORDER && by->kind == EXPR_KEY     ? by->key->name
                 : r->used && r->used->steps && r->used->steps[0].key ? r->used->steps[0].name
                                                                      : SLICE_EMPTY;
    out->keys_only = out->keys_only || (found && ((r->way == WAY_COVERED && q->counts) || (r->way == WAY_BY_KEY && q->each)));
}

static err find_in_range(void *context, item_view *v, bool *found_out) {
    exec *x = context;
    find_access *a = &x->access;
    uint64_t entries = a->report.entries, passed = a->report.passed;
    x->several = x->several || x->cursor->n > 1;
    a->asked.skips = a->asked.skips && !x->several;
    enter_part(x, v->range->id);
    query__lap(x, NULL);
    x->view = v;
    query_cost_search(&x->cost, v->stretch.after ? 0 : v->items_n, (double)x->rows_wanted);
    find_demands demands = query_demands_of(&x->runner, &v->index->policy);
    find_nearest nearest = query_nearest_of(&x->runner, &v->index->policy);
    err code = x->runner.code != OK ? x->runner.code : find_items(a, v, &demands, &nearest, found_out);
    x->scanned += *found_out || v->stretch.after ? 0 : v->items_n;
    note_key_index(x, code == OK && *found_out);
    if (code == OK && *found_out && !v->stopped && !query__evaluate_held(x)) {
        v->stopped = !a->turn.beyond;
        a->turn.beyond = false;
    }
    x->view = NULL;
    query_cost_passed(&x->cost, a->report.passed - passed);
    query__lap(x, &x->page->outcome.metrics.index_us);
    x->page->outcome.metrics.entries += a->report.entries - entries;
    if (x->part) {
        note_part(x, v, a->report.entries - entries);
    }
    return code;
}

static bool may_go_on_with_value(void *context) {
    return query__may_continue(context);
}

/* The row after which an ordered walk begins. */
static find_start start_of(const exec *x) {
    const query_position *at = &x->page->position;
    arena *to = x->page->ask.op->arena;
    if (!at->ordered || x->by_count || x->select->order_n == 0) {
        return (find_start){0};
    }
    find_spelled *values = arena_array(to, find_spelled, x->select->order_n);
    for (size_t i = 0; i < x->select->order_n; i++) {
        char space[INDEX_VALUE_BYTES_MAX];
        buf b = {.p = space, .cap = sizeof space, .max = sizeof space};
        values[i].whole = query_index_encode(&b, &at->values[i]);
        values[i].undefined = !value_is_defined(&at->values[i]);
        values[i].bytes = arena_copy(to, buf_view(&b));
    }
    return (find_start){true, values, at->number};
}

/* The key after which keys are read. */
static find_keys key_of(const exec *x) {
    find_keys key = {.given = x->key != NULL, .cut = x->key_cut, .wanted = x->keys_wanted, .many = x->keys_walked};
    if (key.given && x->lead.by.given) {
        char space[INDEX_VALUE_BYTES_MAX];
        buf b = {.p = space, .cap = sizeof space, .max = sizeof space};
        query_lead_encode(&x->lead, x->key, &b);
        key.spelled = arena_copy(x->page->ask.op->arena, buf_view(&b));
        key.defined = value_is_defined(x->key);
    }
    return key;
}

/* One item of each key of an index. */
static find_each each_of(const query_page *p) {
    const query_key *k = p->ask.query->each;
    find_each each = {.given = k != NULL};
    if (!k) {
        return each;
    }
    each.path = (find_path){.steps = {{.name = k->name, .key = k->of}}, .n = 1, .single = true};
    each.any = p->ask.query->each_any;
    if (k->separate.n) {
        char space[INDEX_VALUE_BYTES_MAX];
        buf b = {.p = space, .cap = sizeof space, .max = sizeof space};
        index_spell_prefix(&b, k->separate);
        each.separate = arena_copy(p->ask.op->arena, buf_view(&b));
    }
    return each;
}

/* Fills in what to ask the index for. `wanted`: rows that suffice. */
static void ask_index(exec *x, size_t wanted) {
    const query_page *p = x->page;
    const find_visitor visitor = {.context = x,
                                  .before_load = p->ask.timed ? before_load : NULL,
                                  .on_walk = x->select->order_n ? query__enter_walk : NULL,
                                  .may_skip = may_go_on_with_value,
                                  .keys_held = x->keys_held,
                                  .on_value = visit_value};
    find_access_init(&x->access, wanted, &visitor);
    find_asked *a = &x->access.asked;
    a->conditional = x->select->where != NULL;
    a->given = p->position.passed;
    a->quick = p->ask.quick;
    a->narrow = p->ask.narrow;
    a->verified = p->ask.verified;
    a->order = query_order_of(p->ask.op->arena, p->ask.query);
    a->start = start_of(x);
    if (p->position.stage == STAGE_WHOLE) {
        a->cover = query_cover_of(p->ask.query);
    }
    a->lead = x->lead.by;
    a->key = key_of(x);
    a->each = each_of(p);
    a->skips = x->skips && !x->several;
    a->skips_lacking = !x->select->value;
    a->skip = query__offset_left(x);
}

/* Reads items until the visitor stops, all are read or, if `may_stop`, the deadline passes. `wanted`: rows that suffice. */
err query__read_items(exec *x, item_cursor *cursor, size_t wanted, bool may_stop) {
    query_page *p = x->page;
    err code = OK;
    ask_index(x, wanted);
    x->cursor = cursor;
    item_reader *reader = &x->reader;
    bool calls = query__calls_functions(x);
    item_reader_init(reader, calls ? query__hold_item : query__visit_item, x, p->ask.quick ? QUICK_STEPS : STEPS);
    reader->leave = calls ? query__evaluate_held : NULL;
    reader->find = x->gather || x->select->order_by_rank || p->ask.scans ? NULL : find_in_range;
    reader->unpriced = true;
    reader->trial = p->ask.quick;
    reader->entry_charge = x->entered ? 0 : query_cost_base(&x->cost);
    x->entered = true;
    while (code == OK && cursor->n && !x->full && !x->finished && !x->late && x->runner.code == OK) {
        code = item_feed_by(p->ask.items, p->ask.op, p->ask.container, cursor, reader, &p->outcome.mark);
        query__drop_held(x);
        p->ask.op->admitted = true;
        x->settled_ru = p->ask.quick ? x->settled_ru : p->ask.op->charge_ru;
        code = code == OK && p->ask.quick && cursor->n && !x->full && !x->finished ? E_QUERY_TOO_LONG : code;
    }
    code = code != OK ? code : x->runner.code;
    return code == OK && x->late && !may_stop ? E_QUERY_TOO_LONG : code;
}

/* Reads all items, for rows that are only known afterwards. */
err query__read_all(exec *x) {
    item_cursor all;
    item_cursor_copy(&all, x->page->cursor);
    TRY(query__read_items(x, &all, SIZE_MAX, false));
    if (x->gather) {
        query_gather_each(x->gather, &x->runner, may_go_on_with_value, x->on_row, x);
    }
    return x->runner.code != OK ? x->runner.code : x->late ? E_QUERY_TOO_LONG : OK;
}

/* Skips rows that earlier pages returned. */
static bool gathered_row(void *context) {
    exec *x = context;
    query_value v = query_project(&x->runner, x->select);
    if (!value_is_defined(&v) || x->row++ < x->seen_before) {
        return x->runner.code == OK;
    }
    return x->runner.code == OK && query__give_row(x, &v);
}

static err run_gathered(exec *x) {
    query_page *p = x->page;
    x->seen_before = p->position.given + p->position.skipped;
    x->on_row = gathered_row;
    TRY(query__read_all(x));
    p->outcome.more = x->full;
    p->cursor->n = p->outcome.more ? p->cursor->n : 0;
    return OK;
}

static err run_streaming(exec *x) {
    x->on_row = stream_row;
    TRY(query__read_items(x, x->page->cursor, x->page->ask.rows_max, true));
    item_cursor *c = x->page->cursor;
    if (x->finished) {
        c->n = 0;
    } else if (c->n == 0 && x->end.after) {
        c->stretches[c->n++] = x->end;
    }
    keep_begun(x);
    x->page->outcome.more = c->n > 0;
    return OK;
}

/* ---- the page ---- */

void query__keep_position(exec *x) {
    query_position *at = &x->page->position;
    if (at->ordered) {
        size_t n = query_position_values(x->page->ask.query);
        query_value *values = arena_array(x->page->ask.op->arena, query_value, n + 1);
        for (size_t i = 0; i < n; i++) {
            values[i] = value_keep(x->page->ask.op->arena, &at->values[i]);
        }
        at->values = values;
    }
}

/* Takes from the range's share what was charged since it was last settled. */
static void settle_rest(exec *x) {
    query_page *p = x->page;
    double ru = p->ask.op->charge_ru - x->settled_ru;
    if (p->ask.quick && x->entered && p->outcome.mark.segment) {
        item_debit_trial(p->ask.items, p->ask.op, p->ask.container, p->cursor, &p->outcome.mark, ru);
    } else if (p->outcome.mark.segment && ru > 0) {
        item_debit_more(p->ask.items, p->ask.op, p->ask.container, &p->outcome.mark, ru);
    }
}

/* A page that fails still costs: loaded items were charged already, evaluation steps are charged now. */
static void end_in_error(exec *x, err code) {
    if (x->page->ask.quick && code == E_QUERY_TOO_LONG) {
        x->page->ask.op->charge_ru = x->settled_ru; /* the worker charges it again from the start */
    } else if (!x->page->ask.quick && code != E_THROTTLED) {
        query_cost_steps(&x->cost, x->steps + QUERY_ITEM_STEPS - x->runner.steps);
        settle_rest(x);
    }
}

/* Charges the page, and fills its metrics and notes. */
static void end_page(exec *x) {
    query_page *p = x->page;
    query_renew_steps(&x->runner, QUERY_ITEM_STEPS);
    query_cost_rows(&x->cost);
    settle_rest(x);
    if (p->ask.trace) {
        query_note_where(p->ask.trace, &x->runner, &x->cost.index->policy);
    }
    if (p->ask.notes_indexes) {
        query_note_indexes(p, &x->runner, &x->cost.index->policy);
    }
    p->outcome.metrics.rows = p->outcome.rows;
    p->outcome.metrics.calls = x->calls.taken;
    p->outcome.metrics.calls_us = x->calls.took_us;
    p->outcome.metrics.took_us = (uint64_t)(clock_monotonic_us(p->ask.items->clock) - x->begun_us);
}

/* A query without FROM has one row, and no item. */
static err run_without_items(exec *x) {
    x->page->cursor->n = 0;
    op_charge(x->page->ask.op, query_cost_base(&x->cost));
    if (x->page->ask.query->aggregates) {
        return query__run_groups(x);
    }
    query_each_row(&x->runner, x->select, NULL, stream_row, x);
    query__charge_calls(x, 0);
    return x->runner.code;
}

void query_page_init(query_page *p, const items *items, op *o, container *c, const query *q, item_cursor *cursor, buf *out) {
    *p = (query_page){.cursor = cursor};
    p->ask = (query_ask){
        .items = items, .op = o, .container = c, .query = q, .rows_max = SIZE_MAX / 2, .bytes_max = LIMIT_RESPONSE_BYTES, .out = out};
}

err query_run_page(query_page *p) {
    if (p->ask.quick && (p->ask.query->udfs_n || p->position.stage != STAGE_WHOLE)) { /* UDFs have threads of their own; a page that
                                                                                         continues STAGE_CARRIED and the like takes long */
        return E_QUERY_TOO_LONG;
    }
    arena counted = arena_init_counted(p->ask.op->budget);
    exec x = {.page = p, .select = p->ask.query->select, .times = 1, .row_arena = counted, .keep = counted, .ordered = counted};
    x.begun_us = x.lap_us = clock_monotonic_us(p->ask.items->clock);
    query_runner_init(&x.runner, p->ask.query, p->ask.op, &x.row_arena, clock_wall_ms(p->ask.items->clock));
    query_calls_init(&x.calls, p->ask.udfs, p->ask.items->clock, p->ask.until_us, p->ask.op->budget);
    x.runner.calls = p->ask.udfs ? &x.calls : NULL;
    x.distinct.keep = &x.keep;
    x.settled_ru = p->ask.op->charge_ru;
    x.gather = query_gather_new(&x.keep, x.select);
    x.runner.context.keep = p->ask.op->arena; /* lives as long as the tree, which points to prepared patterns */
    query_renew_steps(&x.runner, p->ask.quick ? QUICK_BUDGET : QUERY_ITEM_STEPS);
    query_cost_begin(&x.cost, &x.runner, p->ask.container, p->cursor->partition != NULL);
    err code = x.select->sources_n == 0   ? run_without_items(&x)
               : p->ask.query->aggregates ? query__run_groups(&x)
               : x.select->order_by_rank  ? query__run_ranked(&x)
               : x.select->order_n        ? query__run_ordered(&x)
               : x.select->distinct       ? query__run_distinct(&x)
               : x.gather                 ? run_gathered(&x)
                                          : run_streaming(&x);
    code = code == OK && !query_may_keep(&x.runner) ? x.runner.code : code;
    if (code == OK) {
        query__keep_position(&x);
        end_page(&x);
    } else {
        end_in_error(&x, code);
    }
    query_cost_end(&x.cost);
    query__free_rows(&x);
    free(x.held);
    query_calls_free(&x.calls);
    arena_free(&x.row_arena);
    arena_free(&x.keep);
    arena_free(&x.ordered);
    return code;
}
