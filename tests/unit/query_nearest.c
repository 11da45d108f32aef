/* ORDER BY VectorDistance by graphs: each row exists, has its right distance, comes once and in order; items just written are never missed;
 * and nearly all rows that comparing all vectors finds are found.
 *
 * Random items are written, replaced and deleted, ranges split, moved and merged, graphs updated now and then. Random queries over the
 * container or over its large partition run twice, by graph and by comparing all vectors. A failure prints its seed; SEEDS=from-to runs
 * others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "item/nearest.h"
#include "item_harness.h"
#include "query/exec.h"
#include "rounds.h"

enum { DIMENSIONS = 4, ITEMS = 2400, STEPS = SANITIZED ? 20 : 120, REWRITES = SANITIZED ? 3 : 6, SEEDS = SANITIZED ? 1 : 3, ROWS_MAX = 64 };

static harness h;
static container *c;
static random_source dice;
static uint64_t seed;
static unsigned ids;
static struct { unsigned queries, by_graph, rows, hits, split; } sums;

static uint64_t roll(uint64_t n) {
    return random_below(&dice, n);
}

/* ---- items ---- */

/* A quarter of the vectors are equal. */
static void add_vector(buf *out) {
    if (roll(4) == 0) {
        buf_add_lit(out, "[1,2,1,2]");
        return;
    }
    buf_add_byte(out, '[');
    for (unsigned i = 0; i < DIMENSIONS; i++) {
        buf_addf(out, "%s%d.%03u", i ? "," : "", (int)roll(9) - 4, (unsigned)roll(1000));
    }
    buf_add_byte(out, ']');
}

/* Most items have a vector; some have an invalid one, or one that floats cannot hold. */
static const char *any_item(unsigned id) {
    static const char *const odd[] = {
        "", ",\"v\":[1,2,3]", ",\"v\":\"near\"", ",\"v\":[0,0,0,0]", ",\"v\":[1e200,1,1,1]", ",\"v\":[1,null,1,1]"};
    buf b = buf_init(BUF_NO_LIMIT);
    buf_addf(&b, "{\"id\":\"%u\",\"pk\":\"%s%u\",\"n\":%u", id, id % 5 ? "large" : "small", id % 5 ? 0 : id % 50, id);
    if (roll(20) == 0) {
        buf_addf(&b, "%s", odd[roll(sizeof odd / sizeof *odd)]);
    } else {
        buf_add_lit(&b, ",\"v\":");
        add_vector(&b);
    }
    buf_add_byte(&b, '}');
    char *text = arena_text(&h.arena, buf_view(&b));
    buf_free(&b);
    return text;
}

static void write_item(unsigned id) {
    err code = harness_write(&h, c, ITEM_UPSERT, NULL, NULL, any_item(id));
    assert_int_equal(code, OK);
}

static void delete_item(unsigned id) {
    char key[64], name[16];
    snprintf(key, sizeof key, "[\"%s%u\"]", id % 5 ? "large" : "small", id % 5 ? 0 : id % 50);
    snprintf(name, sizeof name, "%u", id);
    err code = harness_write(&h, c, ITEM_DELETE, key, name, NULL);
    assert_true(code == OK || code == E_NOT_FOUND);
}

static void change_items(void) {
    for (uint64_t i = 0, n = roll(30); i < n; i++) {
        uint64_t kind = roll(4);
        if (kind == 0) {
            delete_item((unsigned)roll(ids));
        } else {
            write_item(kind == 1 ? (unsigned)roll(ids) : ids++);
        }
    }
}

static void change_tiles(void) {
    const container_tiles *tiles = c->space->newest;
    size_t n = tiles->map->n;
    uint64_t kind = roll(3);
    if (n == 1 && kind == 0) {
        sums.split += account_split(h.account, harness_op(&h), c, tiles->ranges[0]->id, 2) == OK;
    } else if (n == 2 && kind == 0) {
        assert_int_equal(account_merge(h.account, harness_op(&h), c, tiles->ranges[0]->id, tiles->ranges[1]->id), OK);
    } else {
        harness_move(&h, c, roll(2) ? 100 : 100000);
    }
    container_give(c);
    c = harness_found(&h, "d", "c");
}

/* ---- queries ---- */

typedef struct rows {
    char *text[ROWS_MAX]; /* {"n":…,"d":…} */
    size_t n;
    bool by_graph;
} rows;

static void split_rows(rows *r, slice json) {
    while (json.n) {
        const char *end = memchr(json.p, '}', json.n);
        assert_true(end && r->n < ROWS_MAX);
        slice row = slice_of(json.p, (size_t)(end - json.p) + 1);
        r->text[r->n++] = arena_text(&h.arena, row);
        json = slice_skip(json, row.n);
        json = json.n ? slice_skip(json, 1) : json; /* skip the comma */
    }
}

static rows run(const char *text, const char *partition, size_t page, bool scans) {
    query q;
    op *o = harness_op(&h);
    query_schema schema = query_schema_of(c->settings);
    item_cursor cursor = {.n = 1, .stretches = {{.min = epk_min(), .max = epk_max()}}};
    item_key key;
    rows r = {0};
    buf out = buf_init(BUF_NO_LIMIT);
    if (partition) {
        pkey *header = arena_new(&h.arena, pkey);
        assert_int_equal(pkey_parse(o, slice_str(partition), header), OK);
        assert_int_equal(item_check_key(o, c, header, SLICE_EMPTY, &key), OK);
        cursor.partition = &key;
    }
    if (query_prepare(o, &h.arena, arena_copy(&h.arena, slice_str(text)), NULL, 0, &schema, &q) != OK) {
        fail_msg("no query: %s: %.*s", text, (int)o->detail_n, o->detail);
    }
    query_position position = {0};
    for (bool more = true; more; out.n = 0) {
        query_trace trace = {0};
        query_page p;
        query_page_init(&p, harness_items(&h), harness_op(&h), c, &q, &cursor, &out);
        p.position = position;
        p.ask.rows_max = page;
        p.ask.scans = scans;
        p.ask.trace = &trace;
        assert_int_equal(query_run_page(&p), OK);
        split_rows(&r, buf_view(&out));
        for (size_t i = 0; i < trace.n; i++) {
            r.by_graph = r.by_graph || trace.parts[i].way == WAY_NEAREST;
        }
        position = p.position;
        more = p.outcome.more;
    }
    buf_free(&out);
    return r;
}

static double distance_of(const char *row) {
    return strtod(strstr(row, "\"d\":") + 4, NULL);
}

static void check_rows(const char *text, const rows *found, const rows *exact, bool greatest_first) {
    if (found->n != exact->n) {
        fail_msg("seed %lu: %zu rows, comparing all %zu: %s", (unsigned long)seed, found->n, exact->n, text);
    }
    for (size_t i = 0; i < found->n; i++) {
        double now = distance_of(found->text[i]), before = i ? distance_of(found->text[i - 1]) : now;
        double best = distance_of(exact->text[i]), last = distance_of(exact->text[exact->n - 1]);
        assert_true(greatest_first ? now <= before && now <= best : now >= before && now >= best);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(found->text[i], found->text[j]);
        }
        sums.rows++;
        sums.hits += greatest_first ? now >= last : now <= last; /* ties may be resolved differently */
    }
}

static void ask(bool euclidean) {
    static const char *const conditions[] = {"", "", "WHERE c.n % 3 = 1", "WHERE c.n < 90", "WHERE c.n > 700", "WHERE c.n % 97 = 1"};
    buf text = buf_init(BUF_NO_LIMIT), vector = buf_init(BUF_NO_LIMIT);
    unsigned wanted = 1 + (unsigned)roll(40), skipped = roll(3) ? 0 : (unsigned)roll(20);
    add_vector(&vector);
    buf_addf(&text, "SELECT c.n, VectorDistance(c.v, %.*s) AS d FROM c %s ORDER BY VectorDistance(c.v, %.*s) OFFSET %u LIMIT %u",
             (int)vector.n, vector.p, conditions[roll(sizeof conditions / sizeof *conditions)], (int)vector.n, vector.p, skipped, wanted);
    char *query = arena_text(&h.arena, buf_view(&text));
    const char *partition = roll(3) ? NULL : "[\"large0\"]";
    rows exact = run(query, partition, 100, true), found = run(query, partition, roll(2) ? 100 : 1 + roll(8), false);
    check_rows(query, &found, &exact, !euclidean);
    sums.queries++;
    sums.by_graph += found.by_graph;
    buf_free(&text);
    buf_free(&vector);
}

/* Items written since the graph was updated are compared one by one, so they cannot be missed. */
static void ask_for_new(void) {
    char item[256], query[256];
    int x = 100 + (int)roll(100);
    ids += ids % 5 == 0; /* those ids belong to small partitions */
    unsigned id = ids++;
    snprintf(item, sizeof item, "{\"id\":\"%u\",\"pk\":\"large0\",\"n\":%u,\"v\":[%d,-%d,%d,-%d]}", id, id, x, x, x, x);
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, item), OK);
    snprintf(query, sizeof query,
             "SELECT TOP 1 c.n, VectorDistance(c.v, [%d,-%d,%d,-%d]) AS d FROM c ORDER BY VectorDistance(c.v, [%d,-%d,%d,-%d])", x, x, x, x,
             x, x, x, x);
    rows found = run(query, NULL, 100, false), exact = run(query, NULL, 100, true);
    assert_int_equal(found.n, 1);
    assert_true(distance_of(found.text[0]) == distance_of(exact.text[0]));
}

static void open_world(size_t vector_bytes, const char *distance, unsigned items) {
    char settings[512];
    ids = 0;
    harness_open(&h);
    h.vector_bytes = vector_bytes;
    harness_restart(&h);
    snprintf(settings, sizeof settings,
             "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},"
             "\"vectorEmbeddingPolicy\":{\"vectorEmbeddings\":[{\"path\":\"/v\",\"dataType\":\"float32\",\"dimensions\":%d,"
             "\"distanceFunction\":\"%s\"}]},\"indexingPolicy\":{\"vectorIndexes\":[{\"path\":\"/v\",\"type\":\"diskANN\"}]}}",
             DIMENSIONS, distance);
    c = harness_container(&h, settings, 400);
    while (ids < items) {
        write_item(ids++);
    }
}

static void close_world(void) {
    container_give(c);
    harness_close(&h);
}

static void run_seed(uint64_t s, const char *distance) {
    seed = s;
    random_seed(&dice, s);
    open_world(64 << 20, distance, ITEMS);
    for (unsigned step = 0; step < STEPS; step++) {
        change_items();
        if (roll(8) == 0) {
            change_tiles();
        }
        ask(strcmp(distance, "euclidean") == 0);
        if (roll(3)) {
            item_nearest_work(harness_items(&h)->nearest);
        }
        if (roll(10) == 0) {
            ask_for_new();
        }
        if (roll(40) == 0) {
            container_give(c);
            harness_restart(&h);
            c = harness_found(&h, "d", "c");
        }
    }
    harness_check(&h, c);
    close_world();
}

static void is_as_good_as_comparing_all(void **state) {
    static const char *const distances[] = {"cosine", "euclidean", "dotproduct"};
    (void)state;
    uint64_t from = 1, to = SEEDS;
    const char *given = getenv("SEEDS");
    if (given && sscanf(given, "%lu-%lu", &from, &to) < 1) {
        fail_msg("SEEDS is from-to");
    }
    for (uint64_t s = from; s <= to; s++) {
        run_seed(s, distances[s % 3]);
    }
    print_message("%u queries, %u by graph, %u of %u rows, %u splits\n", sums.queries, sums.by_graph, sums.hits, sums.rows, sums.split);
    assert_true(sums.by_graph > sums.queries / 4);
    assert_true(sums.hits > 0.98 * sums.rows);
}

static const char five[] = "SELECT TOP 5 c.n, VectorDistance(c.v, [1,2,3,4]) AS d FROM c ORDER BY VectorDistance(c.v, [1,2,3,4])";

static void keeps_within_its_memory(void **state) {
    (void)state;
    random_seed(&dice, 5);
    open_world(1 << 20, "cosine", 2 * ITEMS); /* less than one graph needs */
    rows exact = run(five, NULL, 100, true);
    for (unsigned i = 0; i < 3; i++) {
        rows found = run(five, NULL, 100, false);
        assert_false(found.by_graph);
        assert_int_equal(found.n, 5);
        assert_string_equal(found.text[0], exact.text[0]);
        item_nearest_work(harness_items(&h)->nearest);
    }
    close_world();
}

/* The container is deleted while its graph waits to be built. */
static void outlives_its_container(void **state) {
    (void)state;
    random_seed(&dice, 6);
    open_world(64 << 20, "cosine", ITEMS);
    assert_int_equal(run(five, NULL, 100, false).n, 5);
    assert_int_equal(harness_delete_container(&h, "d", "c"), OK);
    container_give(c);
    item_nearest_work(harness_items(&h)->nearest);
    harness_close(&h);
}

/* Items that are rewritten again and again leave dead vectors behind, until the graph is rebuilt. */
static void is_made_anew(void **state) {
    (void)state;
    random_seed(&dice, 8);
    open_world(64 << 20, "euclidean", ITEMS);
    for (unsigned i = 0; i < REWRITES; i++) {
        for (unsigned id = 0; id < ITEMS; id++) {
            write_item(id);
        }
        rows found = run(five, NULL, 100, false), exact = run(five, NULL, 100, true);
        assert_string_equal(found.text[0], exact.text[0]);
        item_nearest_work(harness_items(&h)->nearest);
        const range_graph *g = c->space->newest->ranges[0]->graphs;
        assert_true(item_nearest_dead(g) <= ITEMS + 2048);
        assert_true(run(five, NULL, 100, false).by_graph);
    }
    close_world();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_as_good_as_comparing_all),
        cmocka_unit_test(keeps_within_its_memory),
        cmocka_unit_test(outlives_its_container),
        cmocka_unit_test(is_made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
