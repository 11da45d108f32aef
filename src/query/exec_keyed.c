/* GROUP BY, aggregates and DISTINCT: rows that are known only when all their items were read.
 *
 * Rows come in the order of their keys (a group's values, or the distinct value itself). The next page begins after the last key returned,
 * so it does not depend on where items are then. If the path that keys begin with is indexed, a page reads only as many keys as it has room
 * for, in their order (find/index_access.h); keys that OFFSET skips are read in windows. Otherwise each page reads all items. If the
 * deadline passes before that, the groups so far go into the continuation; or, if the client merges groups, they are returned as a part
 * (query_stage). */
#include "query/exec_int.h"

#include <stdlib.h>

#include "base/limits.h"
#include "query/plan.h"
#include "query/position.h"

enum {
    PARTS_BYTES_MAX = 1024 * 1024, /* memory of the groups of a part, which is returned in one page */
    KEYS_WINDOW = 5000,            /* keys read at a time, if they are read in order */
    KEYS_SPARE = 256,              /* keys are cut when the page holds more than twice those wanted, plus this */
    SWITCH_BEFORE = 8              /* before 1/8 of the items were read, switching to key order pays */
};

typedef struct keyed keyed;

/* The operations on what a page collects: groups or distinct values. */
typedef struct gathered {
    void (*start)(exec *x); /* makes it empty */
    size_t (*held)(const exec *x);
    void (*count)(const exec *x, query_key_count *seen);
    const query_value *(*cut)(exec *x, size_t n); /* keeps the first n in order; returns the last one's key */
    bool (*save)(exec *x, bson_t *list, size_t bytes_max);
    bool (*load)(exec *x, slice list);
    void (*show)(exec *x, keyed *k); /* returns rows in order, by give_keyed */
    bool goes_on;                    /* a full page has a next one (query_ask.full_goes_on) */
} gathered;

/* Tells which keys earlier pages returned. */
typedef struct after_key {
    const query_position *at;
    size_t n;      /* values in a key */
    bool by_check; /* the last key was shortened in the continuation, and was found again by its hash */
    bool passed;
} after_key;

struct keyed {
    exec *exec;
    const gathered *gathered;
    query_position begun; /* the position at the page's start */
    after_key after;
    item_cursor cursor;      /* advanced as the page reads items */
    bool moved;              /* this page has advanced the position */
    bool whole;              /* each page reads all items, or the first keys in order: only keys for this page need to be held */
    query_key_count seen;    /* counts keys after some were cut */
    size_t checked;          /* number of keys at the last check_keys */
    uint64_t looked;         /* items visited before start_keys */
    size_t wanted;           /* number of keys: those for the page, and those that OFFSET skips */
    const query_value *edge; /* keys beyond this one are not held; NULL: all are held */
    bool switches;           /* stop reading items by number, and read them in key order */
};

static bool is_after(after_key *k, const query_value *key) {
    if (!k->at->ordered || k->passed) {
        return true;
    }
    if (k->by_check) {
        k->passed = query_position_check(key, k->n) == k->at->check;
        return false;
    }
    int order = 0;
    for (size_t i = 0; i < k->n && order == 0; i++) {
        order = value_compare(&key[i], &k->at->values[i]);
    }
    return k->at->cut ? order >= 0 : order > 0;
}

/* False: stop. If the deadline passed, the next page continues, as after a full page. */
static bool may_show(exec *x) {
    if (!query__may_continue(x)) {
        x->full = x->late;
        x->runner.code = x->late ? x->runner.code : E_QUERY_TOO_LONG;
        return false;
    }
    return true;
}

/* Whether all items of this key were read. */
static bool is_known(const exec *x, const query_value *key) {
    const find_access *a = &x->access;
    char space[INDEX_VALUE_BYTES_MAX];
    buf b = {.p = space, .cap = sizeof space, .max = sizeof space};
    if (!x->lead.by.given || !a->reached.bounded) {
        return true;
    }
    query_lead_encode(&x->lead, key, &b);
    return slice_cmp(buf_view(&b), slice_of(a->reached.bound, a->reached.bound_n)) <= 0;
}

static void move_behind(keyed *k, const query_value *key) {
    query_position *at = &k->exec->page->position;
    at->ordered = true;
    at->values = (query_value *)(uintptr_t)key;
    at->cut = 0;
    k->moved = true;
}

/* `row` undefined: the key has no row. */
static bool give_keyed(keyed *k, const query_value *row, const query_value *key) {
    exec *x = k->exec;
    uint64_t skipped = x->page->position.skipped;
    bool go_on = !value_is_defined(row) || query__give_row(x, row);
    if (x->lead.by.given && x->page->position.skipped > skipped) {
        query_cost_distinct(&x->cost);
    }
    if (!x->full) {
        move_behind(k, key);
    }
    return go_on;
}

/* ---- carrying groups in the continuation ---- */

/* False for gathered subqueries, which have no groups yet, and without items. */
static bool may_carry(const exec *x) {
    return !x->gather && x->select->sources_n > 0;
}

/* Whether the client merges rows, as it merges those of several ranges. */
static bool merges(const exec *x) {
    const query *q = x->page->ask.query;
    bool bounded = q->top >= 0 || q->limit >= 0 || q->offset > 0; /* rows of a part would be cut off */
    return q->aggregates && !bounded && may_carry(x) && query_is_rewritten(q);
}

/* Puts the groups so far into the position. False: they are too large. */
static bool carry(keyed *k, query_stage stage) {
    exec *x = k->exec;
    query_position *at = &x->page->position;
    bson_t list = BSON_INITIALIZER;
    bool good = may_carry(x) && !k->edge && k->gathered->save(x, &list, QUERY_CARRIED_BYTES_MAX) && list.len <= QUERY_CARRIED_BYTES_MAX;
    if (good) {
        at->stage = stage;
        at->carried = arena_copy(x->page->ask.op->arena, slice_of(bson_get_data(&list), list.len));
    }
    bson_destroy(&list);
    return good;
}

/* Groups made from index entries cannot be continued: the next page begins again, and reads items. */
static err begin_again(keyed *k) {
    query_page *p = k->exec->page;
    p->position = k->begun;
    p->position.stage = STAGE_CARRIED;
    p->outcome.more = true;
    return OK;
}

/* Whether items were read by number, each range to its end, so that the cursor tells which were read. */
static bool is_read_in_turn(const exec *x) {
    return x->access.report.way != WAY_COVERED && x->access.report.way != WAY_BY_KEY && !x->access.reached.bounded;
}

/* The deadline passed before everything was read. */
static err go_on_later(keyed *k) {
    exec *x = k->exec;
    if (!is_read_in_turn(x)) {
        return begin_again(k);
    }
    if (!carry(k, STAGE_CARRIED)) {
        return E_QUERY_TOO_LONG;
    }
    *x->page->cursor = k->cursor;
    x->page->outcome.more = true;
    return OK;
}

/* The deadline is not checked before the first item or row, so that every page makes progress. */
static void start_clock(exec *x) {
    x->late = false;
    if (!x->page->ask.quick) {
        x->items = 0;
        query_renew_steps(&x->runner, QUERY_ITEM_STEPS);
    }
}

static err show(keyed *k) {
    exec *x = k->exec;
    query_page *p = x->page;
    arena_reset(&x->row_arena);
    start_clock(x);
    k->gathered->show(x, k);
    if (x->full && p->outcome.rows == 0 && merges(x)) {
        return E_QUERY_TOO_LONG;
    }
    bool fills = k->gathered->goes_on && k->begun.stage == STAGE_WHOLE && query__fills_page(x);
    p->outcome.more = x->full || (k->edge && !x->finished) || fills;
    bool reads_again = k->begun.stage == STAGE_WHOLE && !(x->late && p->outcome.rows == 0); /* the next page may read everything again */
    if (x->full && (x->late || k->begun.stage != STAGE_WHOLE) && !carry(k, STAGE_FOUND) && !reads_again) {
        return E_QUERY_TOO_LONG;
    }
    p->cursor->n = p->outcome.more ? p->cursor->n : 0;
    return x->runner.code;
}

/* ---- which keys are held ---- */

/* Keys for the page, and those that OFFSET skips. */
static size_t keys_wanted(const exec *x) {
    const query_page *p = x->page;
    double left = query__rows_left(x), rows = (double)(p->ask.rows_max - p->outcome.rows);
    double wanted = (double)query__offset_left(x) + (left >= 0 && left < rows ? left : rows);
    return wanted < 1 ? 1 : wanted < (double)UINT32_MAX ? (size_t)wanted : UINT32_MAX;
}

static size_t keys_seen(void *context) {
    const exec *x = context;
    return x->keyed->edge ? x->keyed->seen.n : x->keyed->gathered->held(x);
}

static int compare_keys(const query_value *a, const query_value *b, size_t n) {
    int order = 0;
    for (size_t i = 0; i < n && order == 0; i++) {
        order = value_compare(&a[i], &b[i]);
    }
    return order;
}

/* A client that merges gets parts instead, each of which reads its own items only. Other clients get an error that says what would help. */
static err refuse(const exec *x, uint64_t pages, uint64_t items) {
    if (merges(x) || x->page->ask.quick) {
        return E_QUERY_TOO_LONG;
    }
    bool groups = x->page->ask.query->aggregates;
    return op_fail(x->page->ask.op, E_BAD_REQUEST,
                   "%s would read %lu items for each of more than %lu pages, since no index has its values in order. %s, ask for larger "
                   "pages, name a partition key, or make the condition narrower.",
                   groups ? "GROUP BY" : "DISTINCT", (unsigned long)items, (unsigned long)pages,
                   groups ? "Group by an indexed property first"
                          : "Select an indexed property, under the name that sorts first if there are several");
}

/* Rejects the query if as many pages as the keys so far need would together read too many items. */
static void check_pages(keyed *k) {
    exec *x = k->exec;
    const query_page *p = x->page;
    double left = query__rows_left(x);
    uint64_t offset = query__offset_left(x), rows = k->checked > offset ? k->checked - offset : 0;
    uint64_t looked = x->items - k->looked, items = x->scanned > looked ? x->scanned : looked;
    uint64_t pages = (left >= 0 && left < (double)rows ? (uint64_t)left : rows) / p->ask.rows_max;
    if (pages > 1 && (double)pages * (double)items > LIMIT_QUERY_READS && x->runner.code == OK) {
        x->runner.code = refuse(x, pages, items);
    }
}

/* There are more keys than the page needs, and they begin with an indexed path: walking the index finds the page's keys sooner. */
static bool switches(const keyed *k) {
    const exec *x = k->exec;
    return x->lead.by.given && !x->keys_walked && x->access.report.way == WAY_SCAN && k->checked > k->wanted &&
           x->items * SWITCH_BEFORE < x->scanned;
}

/* Whether a key must be held. Keys that earlier pages returned need not be; but if the last of them was shortened in the continuation, all
 * keys are held, to find it again. Keys beyond the edge are for later pages. */
static bool takes_key(keyed *k, const query_value *key) {
    if (k->begun.ordered && !k->begun.cut && !is_after(&k->after, key)) {
        return false;
    }
    if (!k->edge) {
        return true;
    }
    query_key_count_add(&k->seen, key, k->after.n);
    return compare_keys(key, k->edge, k->after.n) <= 0;
}

/* Drops keys that this page cannot return, once they outnumber those that it can. */
static void cut_keys(keyed *k) {
    exec *x = k->exec;
    size_t held = k->gathered->held(x);
    if (k->begun.cut || x->gather || held <= KEYS_SPARE || (held - KEYS_SPARE) / 2 <= k->wanted) {
        return;
    }
    if (!k->edge) {
        k->gathered->count(x, &k->seen);
    }
    k->edge = k->gathered->cut(x, k->wanted + 1);
}

/* Called after each row. */
static void check_keys(keyed *k) {
    exec *x = k->exec;
    size_t n = k->whole ? keys_seen(x) : 0;
    if (n > k->checked) {
        k->checked = n;
        check_pages(k);
        k->switches = k->switches || switches(k);
        x->full = x->full || k->switches;
        cut_keys(k);
    }
}

/* ---- in parts ---- */

/* A part ends between two items, never between two rows of one item. */
static bool may_end_here(const exec *x) {
    return x->page->position.stage == STAGE_PARTS && x->grouped != x->item.number;
}

static bool is_a_part(const keyed *k) {
    const exec *x = k->exec;
    bool small = query_groups_count(x->groups) <= x->page->ask.rows_max && x->keep.held <= PARTS_BYTES_MAX;
    return k->begun.stage == STAGE_PARTS || (small && is_read_in_turn(x));
}

static bool is_wanted(void *context, const query_value *key) {
    return takes_key(context, key);
}

/* Starts to hold and count keys from none. */
static void start_keys(keyed *k, size_t wanted) {
    exec *x = k->exec;
    arena_reset(&x->ordered);
    k->seen = (query_key_count){.keep = &x->ordered};
    k->edge = NULL;
    k->checked = 0;
    k->whole = k->begun.stage == STAGE_WHOLE && x->page->position.stage == STAGE_WHOLE;
    k->wanted = wanted;
    k->looked = x->items;
    x->keyed = k;
    if (x->groups) {
        query_groups_filter(x->groups, is_wanted, k);
    }
}

/* The groups so far do not fit a page, or do not end at an item: reads some of the same items again as a part, with the time of a second
 * page. */
static err read_a_part(keyed *k) {
    exec *x = k->exec;
    query_page *p = x->page;
    int64_t span = p->ask.until_us - x->begun_us;
    p->ask.until_us = span > 0 ? clock_monotonic_us(p->ask.items->clock) + span : p->ask.until_us;
    x->calls.until_us = p->ask.until_us;
    arena_free(&x->keep);
    arena_free(&x->ordered);
    arena_free(&x->row_arena);
    if (p->ask.op->budget) {
        budget_renew(p->ask.op->budget);
    }
    k->gathered->start(x);
    x->runner.code = OK;
    x->full = x->lead.by.given = false;
    start_clock(x);
    k->cursor = *p->cursor;
    p->position.stage = STAGE_PARTS;
    start_keys(k, SIZE_MAX);
    return query__read_items(x, &k->cursor, SIZE_MAX, true);
}

/* Returns a part whole. If SELECT VALUE's sum is undefined, it stays undefined whatever follows, so nothing more is read. */
static err show_part(keyed *k) {
    exec *x = k->exec;
    query_page *p = x->page;
    arena_reset(&x->row_arena);
    x->full = false;
    p->ask.rows_max = p->ask.bytes_max = SIZE_MAX;
    p->ask.until_us = 0;
    k->gathered->show(x, k);
    *p->cursor = k->cursor;
    p->cursor->n = x->select->value && query_groups_spoiled(x->groups) ? 0 : k->cursor.n;
    p->outcome.more = p->cursor->n > 0;
    p->position = k->begun;
    p->position.carried = SLICE_EMPTY;
    p->position.stage = STAGE_PARTS;
    return p->outcome.rows == 0 && p->outcome.more ? E_QUERY_TOO_LONG : x->runner.code;
}

/* Not possible after a key that was shortened, nor if returning groups calls UDFs, which takes time. */
static err run_in_parts(keyed *k) {
    exec *x = k->exec;
    if (k->begun.cut || (x->select->group_n && query__calls_functions(x))) {
        return E_QUERY_TOO_LONG;
    }
    if (x->runner.code != OK || !is_a_part(k)) {
        TRY(read_a_part(k));
    }
    return show_part(k);
}

/* ---- a page ---- */

static err read_keyed(keyed *k) {
    exec *x = k->exec;
    if (k->begun.stage == STAGE_FOUND) {
        return OK;
    }
    return may_carry(x) ? query__read_items(x, &k->cursor, SIZE_MAX, true) : query__read_all(x);
}

/* Whether the position could be one of ours; loads the groups that it carries. */
static bool is_sound(keyed *k) {
    const query_position *at = &k->begun;
    if (at->stage == STAGE_WHOLE) {
        return true;
    }
    if (at->stage == STAGE_PARTS) {
        return merges(k->exec) && !at->cut && !at->carried.n;
    }
    bool possible = may_carry(k->exec) && !(at->stage == STAGE_CARRIED && merges(k->exec));
    return possible && (!at->carried.n || k->gathered->load(k->exec, at->carried));
}

/* After reading: returns the rows, or arranges to continue with the next page. */
static err end_reading(keyed *k, err code) {
    exec *x = k->exec;
    bool ended = code == OK && !x->late && k->begun.stage != STAGE_PARTS;
    bool too_much = code == E_QUERY_TOO_LONG || code == E_MEMORY || code == E_BUSY_MEMORY;
    if (!ended && (code == OK || too_much) && !x->page->ask.quick && merges(x)) {
        return run_in_parts(k);
    }
    TRY(code);
    return ended ? show(k) : go_on_later(k);
}

/* ---- in the order of keys ---- */

static void begin_window(keyed *k) {
    exec *x = k->exec;
    const query_page *p = x->page;
    query__keep_position(x);
    arena_reset(&x->keep);
    k->gathered->start(x);
    k->begun = p->position;
    k->after = (after_key){.at = &k->begun, .n = k->after.n};
    k->cursor = *p->cursor;
    k->moved = k->switches = false;
    x->full = false;
    x->scanned = 0;
    start_keys(k, keys_wanted(x));
    bool lost = k->begun.cut && x->lead.member.n; /* a shortened object key has lost its first value: all keys are read */
    x->key = k->begun.ordered && !lost ? k->begun.values : NULL;
    x->key_cut = k->begun.cut;
    x->keys_wanted = lost ? SIZE_MAX : k->wanted < KEYS_WINDOW ? k->wanted : KEYS_WINDOW;
}

/* No key of the window had a row: the next page begins after the last complete key all the same. */
static bool move_to_bound(keyed *k) {
    exec *x = k->exec;
    arena *a = x->page->ask.op->arena;
    query_value *key = arena_array(a, query_value, 1);
    if (!query_lead_key(a, &x->lead, slice_of(x->access.reached.bound, x->access.reached.bound_n), key)) {
        return false;
    }
    move_behind(k, key);
    return true;
}

/* *ended_out: the page has ended. */
static err show_window(keyed *k, bool late, bool *ended_out) {
    exec *x = k->exec;
    query_page *p = x->page;
    arena_reset(&x->row_arena);
    start_clock(x);
    k->gathered->show(x, k);
    TRY(x->runner.code);
    bool stands = !k->moved && !x->full && !x->finished;
    *ended_out = x->full || x->finished || late;
    p->outcome.more = !x->finished;
    if ((stands && !move_to_bound(k)) || (*ended_out && p->outcome.more && p->outcome.rows == 0 && merges(x))) {
        x->late = true;
        *ended_out = true;
        return p->outcome.rows ? OK : end_reading(k, OK);
    }
    return OK;
}

/* False: everything was read, or no key is known to be complete. */
static bool is_window(const keyed *k, err code) {
    const exec *x = k->exec;
    return code == OK && (x->access.reached.bounded || (k->edge && !x->late)) &&
           (!x->late || (x->access.reached.by_key && k->cursor.n == 1 && x->access.reached.bound_n));
}

static err run_windows(keyed *k) {
    exec *x = k->exec;
    query_page *p = x->page;
    bool ended = false;
    err code = OK;
    x->keys_held = keys_seen;
    while (code == OK && !ended) {
        begin_window(k);
        code = query__read_items(x, &k->cursor, SIZE_MAX, true);
        if (code == OK && k->switches) {
            x->keys_walked = true;
        } else if (code == OK && x->late && p->outcome.rows && !is_window(k, code)) { /* left to the next page, which has more time */
            p->outcome.more = ended = true;
        } else if (is_window(k, code)) {
            code = show_window(k, x->late, &ended);
        } else {
            code = end_reading(k, code);
            ended = true;
        }
    }
    p->cursor->n = p->outcome.more ? p->cursor->n : 0;
    return code;
}

static err run_keyed(exec *x, const gathered *gathered, size_t key_n) {
    query_page *p = x->page;
    keyed k = {.exec = x, .gathered = gathered, .begun = p->position, .cursor = *p->cursor};
    k.after = (after_key){.at = &k.begun, .n = key_n};
    if (!is_sound(&k)) {
        return E_BAD_CONTINUATION;
    }
    x->lead = k.begun.stage == STAGE_WHOLE && may_carry(x) ? query_lead_of(p->ask.query) : (query_lead){0};
    x->lead.by.given = x->lead.by.given && index_policy_covers(&x->cost.index->policy, x->lead.by.path.steps, x->lead.by.path.n);
    if (x->lead.by.given) {
        return run_windows(&k);
    }
    start_keys(&k, keys_wanted(x));
    return end_reading(&k, read_keyed(&k));
}

/* ---- groups ---- */

/* An item that may lack the lead is visited a second time for rows that do (`only_undefined`); its other rows come by their entries. */
static bool has_meant_lead(exec *x, const query_value *key) {
    if (!x->access.turn.only_undefined || !x->lead.by.given) {
        return true;
    }
    query_value v = key ? query_lead_value(&x->lead, key) : query_eval(&x->runner, x->select->group[0]);
    return !value_is_defined(&v);
}

static bool group_row(void *context) {
    exec *x = context;
    if (!has_meant_lead(x, NULL)) {
        return true;
    }
    bool may_end = may_end_here(x);
    x->full = may_end && x->keep.held > PARTS_BYTES_MAX;
    if (x->full || !query_groups_add(x->groups, &x->runner, x->times, may_end ? x->page->ask.rows_max : SIZE_MAX)) {
        x->full = true;
        return false;
    }
    x->grouped = x->item.number;
    x->access.turn.matched++;
    if (x->keyed) {
        check_keys(x->keyed);
    }
    return query__may_keep(x);
}

static void start_groups(exec *x) {
    x->groups = query_groups_new(&x->keep, x->select);
}

static size_t groups_held(const exec *x) {
    return query_groups_count(x->groups);
}

static void count_groups(const exec *x, query_key_count *seen) {
    query_groups_count_keys(x->groups, seen);
}

static const query_value *cut_groups(exec *x, size_t n) {
    const query_value *last = NULL;
    x->groups = query_groups_cut(x->groups, n, &last);
    return last;
}

static bool save_groups(exec *x, bson_t *list, size_t bytes_max) {
    return query_groups_save(x->groups, list, bytes_max);
}

static bool load_groups(exec *x, slice list) {
    return query_groups_load(x->groups, &x->runner, list);
}

static bool find_check(void *context) {
    keyed *k = context;
    k->after.by_check = query_position_check(k->exec->runner.keys, k->after.n) == k->begun.check;
    return !k->after.by_check;
}

static bool show_group(void *context) {
    keyed *k = context;
    exec *x = k->exec;
    if (!is_after(&k->after, x->runner.keys)) {
        return true;
    }
    if (!is_known(x, x->runner.keys) || !may_show(x)) {
        return false;
    }
    uint64_t taken = x->calls.taken;
    query_value v = query_project(&x->runner, x->select);
    if (x->runner.code == E_QUERY_TOO_LONG && query__time_is_up(x->page)) { /* the deadline passed before its UDFs were called */
        x->runner.code = OK;
        x->full = x->late = true;
        return false;
    }
    bool go_on = x->runner.code == OK && give_keyed(k, &v, x->runner.keys);
    if (!x->full) {
        query__charge_calls(x, taken);
    }
    return go_on;
}

static void show_groups(exec *x, keyed *k) {
    query_groups_sort(x->groups);
    if (k->begun.cut) {
        query_groups_each(x->groups, &x->runner, find_check, k);
    }
    query_groups_each(x->groups, &x->runner, show_group, k);
}

err query__run_groups(exec *x) {
    static const gathered groups = {start_groups, groups_held, count_groups, cut_groups, save_groups, load_groups, show_groups, false};
    start_groups(x);
    x->on_row = group_row;
    if (x->select->sources_n == 0) {
        query_each_row(&x->runner, x->select, NULL, group_row, x);
    }
    return run_keyed(x, &groups, x->select->group_n);
}

/* ---- DISTINCT ---- */

bool query__add_distinct(exec *x, const query_value *v) {
    query_pay_value(&x->runner, v);
    return query_distinct_add(&x->distinct, v) && query__may_keep(x);
}

static bool is_meant(exec *x, const query_value *row) {
    enum { EMPTY_DOCUMENT = 5 };
    if (x->access.turn.only_empty && row->bytes.n > EMPTY_DOCUMENT) {
        return false;
    }
    return has_meant_lead(x, row);
}

static bool distinct_row(void *context) {
    exec *x = context;
    query_value v = query_project(&x->runner, x->select);
    if (x->runner.code == OK && value_is_defined(&v) && is_meant(x, &v)) {
        x->access.turn.matched++;
        if (takes_key(x->keyed, &v) && query__add_distinct(x, &v) && !x->lead.by.given) {
            query_cost_distinct(&x->cost);
        }
        check_keys(x->keyed);
    }
    return x->runner.code == OK;
}

static void start_distinct(exec *x) {
    x->distinct = (query_distinct){.keep = &x->keep};
}

static size_t distinct_held(const exec *x) {
    return x->distinct.n;
}

static void count_distinct(const exec *x, query_key_count *seen) {
    for (size_t i = 0; i < x->distinct.n; i++) {
        query_key_count_add(seen, &x->distinct.values[i], 1);
    }
}

static const query_value *cut_distinct(exec *x, size_t n) {
    query_distinct_cut(&x->distinct, n);
    return x->distinct.n ? &x->distinct.values[x->distinct.n - 1] : NULL;
}

static bool save_distinct(exec *x, bson_t *list, size_t bytes_max) {
    bool good = true;
    for (size_t i = 0; i < x->distinct.n && good; i++) {
        const query_value *v = &x->distinct.values[i];
        good = v->bytes.n <= bytes_max && value_append_exact(list, i, v) && list->len <= bytes_max;
    }
    return good;
}

static bool load_distinct(exec *x, slice list) {
    bson_t document;
    bson_iter_t each;
    bool good = bson_init_static(&document, (const uint8_t *)list.p, list.n) && bson_iter_init(&each, &document);
    while (good && bson_iter_next(&each)) {
        query_value v = value_of_exact(&each);
        good = value_is_defined(&v) && query_distinct_add(&x->distinct, &v);
    }
    return good;
}

static int by_value(const void *a, const void *b) {
    return value_compare(a, b);
}

/* Nothing is looked up any more, so the values may be sorted in place. */
static void show_distinct(exec *x, keyed *k) {
    query_value *values = x->distinct.values;
    if (x->distinct.n) {
        qsort(values, x->distinct.n, sizeof *values, by_value);
    }
    for (size_t i = 0; i < x->distinct.n && k->begun.cut && !k->after.by_check; i++) {
        k->after.by_check = query_position_check(&values[i], 1) == k->begun.check;
    }
    for (size_t i = 0; i < x->distinct.n; i++) {
        if (is_after(&k->after, &values[i]) && !(is_known(x, &values[i]) && may_show(x) && give_keyed(k, &values[i], &values[i]))) {
            break;
        }
    }
}

err query__run_distinct(exec *x) {
    static const gathered distinct = {start_distinct, distinct_held, count_distinct, cut_distinct,
                                      save_distinct,  load_distinct, show_distinct,  true};
    x->on_row = distinct_row;
    return run_keyed(x, &distinct, 1);
}
