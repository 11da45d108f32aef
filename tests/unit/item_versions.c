/* The log of versions against a model: random lives with splits, merges, moves, expiry and restarts, read by readers that started at
 * different times and are at different positions. Each version must appear once, in order, with the one before it; versions removed by
 * retention must cause an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "item/versions.h"
#include "item_harness.h"
#include "rounds.h"

#define KEY "\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define KEPT ",\"changeFeedPolicy\":{\"retentionDuration\":10}"
#define UNIQUE ",\"uniqueKeyPolicy\":{\"uniqueKeys\":[{\"paths\":[\"/u\"]}]}"

enum { KEYS = 12, IDS = 4, ITEMS = KEYS * IDS, READERS = 5, STRETCHES = 512, KEPT_S = 600 };

static harness h;
static container *c;

/* ---- the model ---- */

typedef struct change {
    version_kind kind;
    bool expired;
    int n;        /* the item's `n`; for a delete, that of the deleted item */
    uint64_t lsn; /* 0: unknown */
} change;

typedef struct life {
    change *changes;
    size_t n, cap;
    bool there;
    int says;
    int64_t expires_s; /* 0: never */
} life;

static life lives[ITEMS];
static int next_n, default_ttl;

static void record(life *l, change made) {
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->changes = realloc(l->changes, l->cap * sizeof *l->changes);
    }
    l->changes[l->n++] = made;
}

static bool has_expired(const life *l) {
    return l->there && l->expires_s && l->expires_s <= harness_now_s(&h);
}

static void record_expiry(life *l) {
    record(l, (change){VERSION_DELETE, true, l->says, 0});
    l->there = false;
}

static void forget_lives(void) {
    for (size_t i = 0; i < ITEMS; i++) {
        free(lives[i].changes);
    }
    memset(lives, 0, sizeof lives);
}

/* ---- readers ---- */

typedef struct place {
    item_stretch stretch;
    int64_t read_s; /* the last time it was read to the end */
} place;

typedef struct reader {
    bool of_one; /* reads one partition: uses places[0] only */
    unsigned key;
    place places[STRETCHES];
    size_t places_n;
    size_t next[ITEMS];
    uint64_t lsn[ITEMS], key_lsn[KEYS];
    size_t page_max, page_n;
    uint64_t last; /* last lsn of the current page */
    size_t got;
} reader;

static reader readers[READERS];
static size_t seen, refused;

static bool see(void *context, const logged_version *v) {
    reader *r = context;
    bson_iter_t it;
    item_key key;
    if (r->page_n == r->page_max && v->lsn != r->last) {
        return false;
    }
    assert_true(v->lsn >= r->last);
    r->last = v->lsn;
    r->page_n++;
    r->got++;
    seen++;
    assert_int_equal(item__key_of(c, &h.arena, v->body, &key), OK);
    unsigned k = (unsigned)(key.partition.values[0].text.p[0] - 'a'), id = (unsigned)(key.row.p[0] - '0');
    size_t i = k * IDS + id;
    assert_true(i < ITEMS && (!r->of_one || k == r->key));
    assert_true(r->next[i] < lives[i].n);
    const change *expected = &lives[i].changes[r->next[i]++];
    assert_int_equal(v->entry.kind, expected->kind);
    assert_int_equal(v->entry.expired, expected->expired);
    assert_true(doc_find_key(v->body, SLICE_LIT("n"), &it));
    assert_int_equal(bson_iter_as_int64(&it), expected->n);
    assert_true(expected->lsn == 0 || expected->lsn == v->lsn);
    assert_true(v->lsn >= r->key_lsn[k] && v->lsn > r->lsn[i]); /* the items of a batch share an lsn */
    assert_true(v->entry.kind == VERSION_DELETE ? v->head.lsn == v->entry.previous_lsn : v->head.lsn == v->lsn);
    assert_true(v->entry.kind != VERSION_CREATE || v->entry.previous_lsn == 0);
    assert_true(v->entry.kind == VERSION_CREATE || r->lsn[i] == 0 || v->entry.previous_lsn == r->lsn[i]);
    r->lsn[i] = v->lsn;
    r->key_lsn[k] = v->lsn;
    return true;
}

static item_key *partition_of(unsigned k) {
    char text[8];
    op *o = harness_op(&h);
    pkey *header = arena_new(&h.arena, pkey);
    item_key *key = arena_new(&h.arena, item_key);
    snprintf(text, sizeof text, "[\"%c\"]", (char)('a' + k));
    assert_int_equal(pkey_parse(o, arena_copy(&h.arena, slice_str(text)), header), OK);
    assert_int_equal(item_check_key(o, c, header, SLICE_EMPTY, key), OK);
    return key;
}

/* A place that now spans several ranges is cut. */
static void cut_place(reader *r, size_t i) {
    container_tiles *tiles = container_space_newest(c->space);
    size_t at = container_position(tiles, &r->places[i].stretch.min);
    assert_true(r->places_n < STRETCHES && !r->of_one);
    r->places[r->places_n] = r->places[i];
    r->places[i].stretch.max = tiles->map->ranges[at].max;
    r->places[r->places_n++].stretch.min = tiles->map->ranges[at].max;
    container_tiles_give(tiles);
}

/* Reads a page of one place. *ended_out: there is no more. */
static err read_place(reader *r, size_t i, size_t page_max, bool from_now, bool *ended_out) {
    place *p = &r->places[i];
    item_mark mark;
    item_changes asked = {
        .partition = r->of_one ? partition_of(r->key) : NULL,
        .min = p->stretch.min,
        .max = p->stretch.max,
        .after = p->stretch.after,
        .from_now = from_now,
    };
    r->page_max = page_max;
    r->page_n = 0;
    r->last = 0;
    err code = item_versions_read(harness_items(&h), harness_op(&h), c, &asked, see, r, &mark);
    if (code == E_RANGE_GONE) {
        cut_place(r, i);
        return read_place(r, i, page_max, from_now, ended_out);
    }
    TRY(code);
    assert_true(from_now || asked.after >= p->stretch.after);
    p->stretch.after = asked.after;
    *ended_out = !asked.more;
    p->read_s = *ended_out ? harness_now_s(&h) : p->read_s;
    return OK;
}

static void begin(reader *r, bool of_one, unsigned key) {
    bool ended;
    *r = (reader){.of_one = of_one, .key = key, .places_n = 1};
    r->places[0].stretch = (item_stretch){.min = epk_min(), .max = epk_max()};
    for (size_t i = 0; i < r->places_n; i++) {
        assert_int_equal(read_place(r, i, 0, true, &ended), OK);
    }
    for (size_t i = 0; i < ITEMS; i++) {
        r->next[i] = lives[i].n;
    }
}

static void read_all(reader *r) {
    for (size_t i = 0; i < r->places_n; i++) {
        bool ended = false;
        while (!ended) {
            assert_int_equal(read_place(r, i, 7, false, &ended), OK);
        }
    }
    for (size_t i = 0; i < ITEMS; i++) {
        assert_true((r->of_one && i / IDS != r->key) || r->next[i] == lives[i].n);
    }
}

/* ---- events ---- */

static void find_again(void) {
    container_give(c);
    c = harness_found(&h, "d", "c");
}

static void body_of(char *text, size_t n, size_t i, int says, int ttl) {
    int at =
        snprintf(text, n, "{\"id\":\"%zu\",\"pk\":\"%c\",\"n\":%d,\"u\":\"%zu\"", i % IDS, (char)('a' + (char)(i / IDS)), says, i % IDS);
    snprintf(text + at, n - (size_t)at, ttl ? ",\"ttl\":%d}" : "}", ttl);
}

static void write_one(random_source *random, size_t i) {
    static const item_kind kinds[] = {ITEM_CREATE, ITEM_UPSERT, ITEM_UPSERT, ITEM_REPLACE, ITEM_EDIT, ITEM_DELETE, ITEM_READ};
    item_kind kind = kinds[random_below(random, 7)];
    int says = next_n++, ttl = random_below(random, 3) == 0 ? (int)random_below(random, 40) + 1 : 0;
    char text[200], key[8], id[8];
    life *l = &lives[i];
    bool expired = has_expired(l), there = l->there && !expired;
    item_op *o = arena_new(&h.arena, item_op);
    snprintf(key, sizeof key, "[\"%c\"]", (char)('a' + (char)(i / IDS)));
    snprintf(id, sizeof id, "%zu", i % IDS);
    if (kind == ITEM_EDIT) {
        snprintf(text, sizeof text, "{\"operations\":[{\"op\":\"set\",\"path\":\"/n\",\"value\":%d}]}", says);
    } else {
        body_of(text, sizeof text, i, says, ttl);
    }
    err code = harness_one(&h, c, o, kind, key, id, text);
    err expected = kind == ITEM_CREATE ? (there ? E_CONFLICT : OK) : kind == ITEM_UPSERT || there ? OK : E_NOT_FOUND;
    assert_int_equal(code, expected);
    if (code != OK || kind == ITEM_READ) {
        return;
    }
    if (expired) {
        record_expiry(l);
    }
    if (kind == ITEM_DELETE) {
        record(l, (change){VERSION_DELETE, false, l->says, o->after.lsn});
        l->there = false;
        return;
    }
    record(l, (change){there ? VERSION_REPLACE : VERSION_CREATE, false, says, o->after.lsn});
    l->there = true;
    l->says = says;
    if (kind == ITEM_EDIT) { /* it keeps its own ttl, which starts again */
        ttl = (int)o->after.ttl;
    }
    ttl = ttl ? ttl : default_ttl;
    l->expires_s = ttl > 0 ? harness_now_s(&h) + ttl : 0;
}

/* Two writes of one partition, atomically. */
static void write_two(random_source *random) {
    size_t k = random_below(random, KEYS), a = k * IDS + random_below(random, IDS), b = k * IDS + random_below(random, IDS);
    item_op *ops = arena_array(&h.arena, item_op, 2);
    char text[200], key[8];
    int says = next_n;
    next_n += 2;
    bool expired_a = has_expired(&lives[a]), there_a = lives[a].there && !expired_a;
    bool expired_b = a == b ? false : has_expired(&lives[b]), there_b = a == b || (lives[b].there && !expired_b);
    snprintf(key, sizeof key, "[\"%c\"]", (char)('a' + (char)k));
    body_of(text, sizeof text, a, says, 0);
    assert_int_equal(harness_prepare(&h, c, &ops[0], ITEM_UPSERT, key, NULL, text), OK);
    body_of(text, sizeof text, b, says + 1, 0);
    assert_int_equal(harness_prepare(&h, c, &ops[1], ITEM_CREATE, key, NULL, text), OK);
    err code = harness_commit(&h, c, ops, 2, true);
    assert_int_equal(code, there_b ? E_CONFLICT : OK);
    if (code != OK) {
        return;
    }
    size_t which[] = {a, b};
    bool expired[] = {expired_a, expired_b}, there[] = {there_a, there_b};
    for (int i = 0; i < 2; i++) {
        life *l = &lives[which[i]];
        if (expired[i]) {
            record_expiry(l);
        }
        record(l, (change){there[i] ? VERSION_REPLACE : VERSION_CREATE, false, says + i, ops[i].after.lsn});
        l->there = true;
        l->says = says + i;
        l->expires_s = default_ttl ? harness_now_s(&h) + default_ttl : 0;
    }
}

static void sweep(void) {
    atomic_uint in_flight = 0;
    item_sweep(harness_items(&h), c, 100000, &in_flight);
    while (in_flight) {
        usleep(50);
    }
    for (size_t i = 0; i < ITEMS; i++) {
        if (has_expired(&lives[i])) {
            record_expiry(&lives[i]);
        }
    }
}

static void trim(void) {
    atomic_uint in_flight = 0;
    for (int i = 0; i < 100 && item_trim_due(c, harness_now_s(&h)); i++) {
        item_trim(harness_items(&h), c, &in_flight);
        while (in_flight) {
            usleep(20);
        }
    }
}

static void reshape(random_source *random) {
    container_tiles *tiles = container_space_newest(c->space);
    size_t n = tiles->map->n, i = random_below(random, n);
    if (n < 6 && (n == 1 || random_below(random, 2))) {
        err code = account_split(h.account, harness_op(&h), c, tiles->ranges[i]->id, 2 + (uint32_t)random_below(random, 2));
        assert_true(code == OK || code == E_BAD_REQUEST);
    } else if (i + 1 < n) {
        assert_int_equal(account_merge(h.account, harness_op(&h), c, tiles->ranges[i]->id, tiles->ranges[i + 1]->id), OK);
    }
    container_tiles_give(tiles);
    find_again();
}

/* Reads a page of a random place. A reader may be rejected only if it was away for as long as versions are kept; then it starts again. */
static void read_some(random_source *random) {
    reader *r = &readers[random_below(random, READERS)];
    size_t i = random_below(random, r->places_n);
    bool ended, fails = random_below(random, 8) == 0;
    reader before = *r;
    if (fails) {
        *(random_below(random, 2) ? &h.plan.get_in : &h.plan.scan_in) = 1 + (unsigned)random_below(random, 4);
    }
    err code = read_place(r, i, random_below(random, 12), false, &ended);
    h.plan.get_in = h.plan.scan_in = 0;
    if (fails && code == E_STORE_IO) { /* as if it had not been called */
        *r = before;
    } else if (code != OK) {
        assert_int_equal(code, E_BAD_REQUEST);
        assert_true(harness_now_s(&h) - r->places[i].read_s >= KEPT_S);
        refused++;
        begin(r, r->of_one, r->key);
    }
}

static void happen(random_source *random, int pass_max_s) {
    switch (random_below(random, 24)) {
    case 0:
        clock_manual_advance(&h.clock, (int64_t)random_below(random, (uint32_t)pass_max_s) * 1000);
        break;
    case 1:
        sweep();
        break;
    case 2:
        reshape(random);
        break;
    case 3:
        harness_move(&h, c, 8);
        find_again();
        break;
    case 4:
        if (random_below(random, 6) == 0) {
            harness_restart(&h);
            find_again();
        }
        break;
    case 5: {
        reader *r = &readers[random_below(random, READERS)];
        if (random_below(random, 20) == 0) {
            begin(r, r->of_one, r->key);
        }
        break;
    }
    case 6:
        if (random_below(random, 3) == 0) { /* fails in the middle, and continues another time */
            unsigned *const kinds[] = {&h.plan.get_in, &h.plan.scan_in, &h.plan.write_in};
            *kinds[random_below(random, 3)] = 1 + (unsigned)random_below(random, 6);
        }
        trim();
        h.plan.get_in = h.plan.scan_in = h.plan.write_in = 0;
        break;
    case 7:
    case 8:
        write_two(random);
        break;
    case 9:
    case 10:
    case 11:
    case 12:
    case 13:
        read_some(random);
        break;
    default:
        write_one(random, random_below(random, ITEMS));
    }
}

static size_t stored(layout_tag tag) {
    layout_key from, to;
    slice key, value;
    size_t n = 0;
    layout_container(&from, c->space->container);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(h.store, STORE_VERSIONS, NULL, layout_view(&from), layout_view(&to), false);
    while (store_scan_next(scan, &key, &value)) {
        n += key.p[4] == (char)tag;
    }
    assert_int_equal(store_scan_close(scan), OK);
    return n;
}

static void start(const char *properties, uint32_t throughput) {
    harness_open(&h);
    next_n = 1;
    c = harness_container(&h, properties, throughput);
}

static void stop(void) {
    harness_check(&h, c);
    container_give(c);
    harness_close(&h);
    forget_lives();
}

static void live(uint64_t seed, const char *properties, int steps, int pass_max_s) {
    random_source random;
    random_seed(&random, seed);
    start(properties, 400);
    for (unsigned i = 0; i < READERS; i++) {
        begin(&readers[i], i >= 3, (unsigned)random_below(&random, KEYS));
    }
    seen = refused = 0;
    for (int i = 0; i < steps; i++) {
        happen(&random, pass_max_s);
    }
    for (unsigned i = 0; i < READERS; i++) {
        if (pass_max_s >= 30) { /* it may have been away for too long */
            begin(&readers[i], readers[i].of_one, readers[i].key);
            write_two(&random);
        }
        read_all(&readers[i]);
    }
    assert_true(seen > (size_t)steps / 10);
    assert_true((refused > 0) == (pass_max_s >= 30));
    stop();
}

/* ---- tests ---- */

/* Time hardly passes: nothing is removed, and every reader sees everything. */
static void every_version_once_in_order(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(12); seed++) {
        live(seed, "{" KEY KEPT ",\"defaultTtl\":-1}", 1200, 2);
    }
    for (uint64_t seed = 101; seed <= 100 + ROUNDS(6); seed++) {
        default_ttl = 30;
        live(seed, "{" KEY KEPT UNIQUE ",\"defaultTtl\":30}", 1200, 3);
    }
    default_ttl = 0;
}

/* Time passes quickly: versions and whole segments are removed; a reader that reads often enough misses none. */
static void what_is_gone_is_told(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS(12); seed++) {
        live(seed, "{" KEY KEPT ",\"defaultTtl\":-1}", 1500, 300);
    }
}

static err put(item_kind kind, const char *id, const char *more) {
    char body[300];
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"pk\":\"a\",\"n\":1%s}", id, more);
    return harness_write(&h, c, kind, "[\"a\"]", id, body);
}

static void no_policy_no_log(void **state) {
    (void)state;
    reader r = {.places_n = 1, .places = {{.stretch = {.min = epk_min(), .max = epk_max()}}}};
    bool ended;
    start("{" KEY ",\"changeFeedPolicy\":{\"retentionDuration\":0}}", 400);
    assert_int_equal(put(ITEM_CREATE, "0", ""), OK);
    assert_int_equal(stored(LAYOUT_VERSION) + stored(LAYOUT_LOG_HEAD), 0);
    assert_int_equal(read_place(&r, 0, 10, false, &ended), E_BAD_REQUEST);
    assert_int_equal(read_place(&r, 0, 10, true, &ended), E_BAD_REQUEST);
    stop();
}

/* An expired item that is removed by a write of its unique value, or of its id, is logged as a delete by ttl. */
static void expiry_by_whoever_meets_it(void **state) {
    (void)state;
    reader r = {.places_n = 1, .places = {{.stretch = {.min = epk_min(), .max = epk_max()}}}};
    bool ended;
    start("{" KEY KEPT UNIQUE ",\"defaultTtl\":-1}", 400);
    assert_int_equal(put(ITEM_CREATE, "0", ",\"u\":1,\"ttl\":5"), OK);
    assert_int_equal(put(ITEM_CREATE, "1", ",\"u\":1"), E_UNIQUE_KEY);
    clock_manual_advance(&h.clock, 5000);
    assert_int_equal(put(ITEM_CREATE, "1", ",\"u\":1,\"ttl\":5"), OK);
    clock_manual_advance(&h.clock, 5000);
    assert_int_equal(put(ITEM_UPSERT, "1", ",\"u\":2"), OK);
    assert_int_equal(put(ITEM_DELETE, "1", ""), OK);
    record(&lives[0], (change){VERSION_CREATE, false, 1, 0});
    record(&lives[0], (change){VERSION_DELETE, true, 1, 0});
    record(&lives[1], (change){VERSION_CREATE, false, 1, 0});
    record(&lives[1], (change){VERSION_DELETE, true, 1, 0});
    record(&lives[1], (change){VERSION_CREATE, false, 1, 0});
    record(&lives[1], (change){VERSION_DELETE, false, 1, 0});
    assert_int_equal(read_place(&r, 0, 10, false, &ended), OK);
    assert_true(ended);
    assert_int_equal(r.got, 6);
    stop();
}

static void the_log_turned_off_and_on(void **state) {
    (void)state;
    reader r;
    bool ended;
    start("{" KEY KEPT "}", 3000);
    begin(&r, false, 0);
    reader before = r;
    assert_int_equal(put(ITEM_CREATE, "0", ""), OK);
    record(&lives[0], (change){VERSION_CREATE, false, 1, 0});
    read_all(&r);
    assert_int_equal(harness_replace_container(&h, "d", "c", "{" KEY "}"), OK);
    find_again();
    assert_int_equal(stored(LAYOUT_VERSION) + stored(LAYOUT_LOG_HEAD), 0);
    assert_int_equal(read_place(&r, 0, 10, false, &ended), E_BAD_REQUEST);
    assert_int_equal(harness_replace_container(&h, "d", "c", "{" KEY KEPT "}"), OK);
    find_again();
    assert_int_equal(stored(LAYOUT_LOG_HEAD), 3);
    read_all(&r); /* nothing was written while the log was off */
    size_t too_old = 0;
    for (size_t i = 0; i < before.places_n; i++) {
        too_old += read_place(&before, i, 10, false, &ended) == E_BAD_REQUEST;
    }
    assert_int_equal(too_old, 1);
    assert_int_equal(put(ITEM_REPLACE, "0", ""), OK);
    record(&lives[0], (change){VERSION_REPLACE, false, 1, 0});
    read_all(&r);
    harness_restart(&h);
    find_again();
    assert_int_equal(harness_replace_container(&h, "d", "c", "{" KEY ",\"changeFeedPolicy\":{\"retentionDuration\":5}}"), OK);
    find_again();
    assert_int_equal(put(ITEM_DELETE, "0", ""), OK);
    record(&lives[0], (change){VERSION_DELETE, false, 1, 0});
    read_all(&r);
    stop();
}

/* Versions past their retention are removed completely, from current and former ranges. */
static void retention(void **state) {
    (void)state;
    reader r, late;
    bool ended;
    char id[8];
    start("{" KEY KEPT "}", 400);
    begin(&r, false, 0);
    late = r;
    for (int i = 0; i < 100; i++) {
        snprintf(id, sizeof id, "%d", i % 4);
        assert_int_equal(put(ITEM_UPSERT, id, ""), OK);
        clock_manual_advance(&h.clock, 1000);
    }
    assert_int_equal(stored(LAYOUT_VERSION), 100);
    clock_manual_advance(&h.clock, (KEPT_S - 50) * 1000);
    trim();
    assert_int_equal(stored(LAYOUT_VERSION), 50);
    assert_int_equal(read_place(&late, 0, 10, false, &ended), E_BAD_REQUEST);
    assert_int_equal(harness_write(&h, c, ITEM_CREATE, "[\"b\"]", "0", "{\"id\":\"0\",\"pk\":\"b\",\"n\":1}"), OK);
    assert_int_equal(account_split(h.account, harness_op(&h), c, c->tiles->ranges[0]->id, 2), OK);
    find_again();
    trim();
    assert_int_equal(stored(LAYOUT_VERSION), 51);
    assert_int_equal(stored(LAYOUT_LOG_HEAD), 1);
    clock_manual_advance(&h.clock, KEPT_S * 1000);
    trim();
    assert_int_equal(stored(LAYOUT_VERSION), 1); /* exactly at the end of its retention */
    clock_manual_advance(&h.clock, 20 * 1000);
    trim();
    assert_int_equal(stored(LAYOUT_VERSION), 0);
    assert_int_equal(stored(LAYOUT_LOG_HEAD), 1); /* the two ranges have written nothing: the old head shows that versions were removed */
    assert_int_equal(read_place(&late, 0, 10, false, &ended), E_BAD_REQUEST);
    assert_int_equal(put(ITEM_DELETE, "0", ""), OK);
    assert_int_equal(harness_write(&h, c, ITEM_DELETE, "[\"b\"]", "0", ""), OK);
    assert_int_equal(stored(LAYOUT_LOG_HEAD), 3);
    for (int i = 0; i < 3; i++) {
        clock_manual_advance(&h.clock, KEPT_S * 1000);
        trim();
    }
    assert_int_equal(stored(LAYOUT_VERSION), 0);
    assert_int_equal(stored(LAYOUT_LOG_HEAD), 2);
    assert_int_equal(read_place(&late, 0, 10, false, &ended), E_BAD_REQUEST);
    begin(&r, false, 0);
    assert_int_equal(read_place(&r, 0, 10, false, &ended), OK);
    assert_int_equal(harness_delete_container(&h, "d", "c"), OK);
    assert_int_equal(stored(LAYOUT_LOG_HEAD), 0);
    assert_int_equal(read_place(&r, 0, 10, false, &ended), E_OWNER_NOT_FOUND);
    container_give(c);
    harness_close(&h);
    forget_lives();
}

/* Forged positions. */
static void hostile_positions(void **state) {
    (void)state;
    reader r = {0};
    item_mark mark;
    start("{" KEY KEPT "}", 3000);
    assert_int_equal(put(ITEM_CREATE, "0", ""), OK);
    static const uint64_t after[] = {UINT64_MAX, UINT64_MAX - 1, INT64_MAX, 1000};
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        item_changes asked = {.min = epk_min(), .max = c->tiles->map->ranges[0].max, .after = after[i]};
        assert_int_equal(item_versions_read(harness_items(&h), harness_op(&h), c, &asked, see, &r, &mark), OK);
        assert_true(!asked.more && r.got == 0);
        assert_int_equal(asked.after, mark.lsn); /* it continues at the range's current lsn */
    }
    stop();
}

/* A page may see the versions of a commit that is not published yet. They come with the next page, once. */
static void unpublished_versions_wait(void **state) {
    (void)state;
    reader r = {.places_n = 1, .places = {{.stretch = {.min = epk_min(), .max = epk_max()}}}};
    bool ended;
    start("{" KEY KEPT "}", 400);
    container_range *range = c->tiles->ranges[0];
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(put(ITEM_CREATE, i ? "1" : "0", ""), OK);
        record(&lives[i], (change){VERSION_CREATE, false, 1, 0});
    }
    uint64_t published = atomic_load(&range->lsn);
    atomic_store(&range->lsn, published - 1);
    assert_int_equal(read_place(&r, 0, 10, false, &ended), OK);
    assert_int_equal(r.got, 1);
    assert_int_equal(read_place(&r, 0, 10, false, &ended), OK);
    assert_int_equal(r.got, 1);
    atomic_store(&range->lsn, published);
    assert_int_equal(read_place(&r, 0, 10, false, &ended), OK);
    assert_int_equal(r.got, 2);
    stop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpublished_versions_wait),
        cmocka_unit_test(no_policy_no_log),
        cmocka_unit_test(expiry_by_whoever_meets_it),
        cmocka_unit_test(the_log_turned_off_and_on),
        cmocka_unit_test(retention),
        cmocka_unit_test(hostile_positions),
        cmocka_unit_test(every_version_once_in_order),
        cmocka_unit_test(what_is_gone_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
