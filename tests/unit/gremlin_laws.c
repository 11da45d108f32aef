/* Laws that hold for all traversals, tried on random ones by seed; and the bounds of memory and rounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "gremlin_graph.h"

enum { ROUNDS = 40, MEMORY = 64 * 1024 * 1024 };

typedef struct found {
    int64_t n;
    uint64_t sum; /* of the hashes of the results' texts: does not depend on their order */
    gremlin_value last;
} found;

static void take(void *context, gremlin_value result, int64_t bulk) {
    found *f = context;
    buf out = buf_init(1 << 20);
    gremlin_show(&out, result);
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < out.n; i++) {
        h = (h ^ (unsigned char)out.p[i]) * 1099511628211u;
    }
    buf_free(&out);
    f->n += bulk;
    f->sum += h * (uint64_t)bulk;
    f->last = result;
}

typedef struct way {
    size_t batch, slice, page;
    bool full, ignores;
} way;

static err run(const char *graph_name, const char *text, way w, size_t memory_max, found *f) {
    budget b = budget_init(NULL, memory_max);
    arena memory = arena_init_counted(&b);
    op o;
    gremlin_script script;
    graph *g = graph_open(graph_name);
    g->page = w.page;
    g->full = w.full;
    g->ignores = w.ignores;
    op_init(&o, &memory, 0);
    *f = (found){0};
    gremlin_run_options options = {.batch = w.batch, .slice_steps = w.slice};
    err e = gremlin_parse(&o, &gremlin_limits_of_service, slice_str(text), gremlin_null(), &script);
    if (e == OK) {
        e = graph_run(g, &o, script.traversals[0], &options, take, f);
    }
    if (e != OK && e != E_MEMORY) {
        fprintf(stderr, "%s: %.*s\n", text, (int)o.detail_n, o.detail);
    }
    graph_close(g);
    arena_free(&memory);
    assert_int_equal(b.used, 0);
    assert_true(b.overrun < 4 * 1024 * 1024);
    return e;
}

static const way usual = {512, 500, 1000, false, false};

/* ---- random traversals ---- */

static const char *pick(random_source *r, const char *const *words, size_t n) {
    return words[random_below(r, n)];
}
#define PICK(r, words) pick(r, words, sizeof words / sizeof *words)

/* Steps from vertices to vertices. */
static void random_steps(random_source *r, buf *out, unsigned depth) {
    static const char *const moves[] = {".out()",         ".in()",         ".both()",          ".out('knows')",
                                        ".in('created')", ".outE().inV()", ".bothE().otherV()"};
    static const char *const tests[] = {".hasLabel('person')",
                                        ".has('age', gt(28))",
                                        ".has('name', neq('lop'))",
                                        ".hasNot('age')",
                                        ".dedup()",
                                        ".identity()",
                                        ".has('lang')",
                                        ".barrier()",
                                        ".as('x')"};
    size_t n = 1 + random_below(r, 3);
    for (size_t i = 0; i < n; i++) {
        uint64_t kind = random_below(r, depth ? 9 : 4);
        static const char *const opens[] = {".where(__", ".not(__", ".optional(__", ".local(__", ".flatMap(__"};
        if (kind < 2) {
            buf_add_slice(out, slice_str(PICK(r, moves)));
        } else if (kind < 4) {
            buf_add_slice(out, slice_str(PICK(r, tests)));
        } else if (kind < 7) {
            buf_add_slice(out, slice_str(PICK(r, opens)));
            random_steps(r, out, depth - 1);
            buf_add_lit(out, ")");
        } else {
            static const char *const pairs[] = {".union(__", ".coalesce(__", ".or(__"};
            buf_add_slice(out, slice_str(kind == 7 ? PICK(r, pairs) : ".repeat(__"));
            random_steps(r, out, depth - 1);
            if (kind == 7) {
                buf_add_lit(out, ", __");
                random_steps(r, out, depth - 1);
                buf_add_lit(out, ")");
            } else {
                buf_add_slice(out, random_below(r, 2) ? SLICE_LIT(").times(2)") : SLICE_LIT(").emit().times(2)"));
            }
        }
    }
}

static const char *random_traversal(random_source *r, buf *out) {
    buf_clear(out);
    buf_add_lit(out, "g.V()");
    random_steps(r, out, 2);
    buf_add_byte(out, 0);
    return out->p;
}

static int64_t number(const char *text) {
    found f;
    assert_int_equal(run("modern", text, usual, MEMORY, &f), OK);
    assert_int_equal(f.n, 1);
    return f.last.i;
}

static int64_t number_of(const char *t, const char *rest) {
    char text[4096];
    assert_true(snprintf(text, sizeof text, "%s%s", t, rest) < (int)sizeof text);
    return number(text);
}

/* Neither the batch, the slice, nor the graph's way of answering changes the results. */
static void ways_of_running(void **state) {
    static const way ways[] = {{1, 3, 4, false, false}, {3, 100, 1000, true, false}, {7, 500, 1000, false, true}};
    random_source r;
    buf text = buf_init(4096);
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        random_seed(&r, seed);
        const char *t = random_traversal(&r, &text);
        found first, other;
        err e = run("modern", t, usual, MEMORY, &first);
        for (size_t i = 0; e == OK && i < sizeof ways / sizeof *ways; i++) {
            assert_int_equal(run("modern", t, ways[i], MEMORY, &other), OK);
            if (first.n != other.n || first.sum != other.sum) {
                fail_msg("seed %llu, way %zu: %s gives %lld and %lld results", (unsigned long long)seed, i, t, (long long)first.n,
                         (long long)other.n);
            }
        }
    }
    buf_free(&text);
}

/* count() counts what there is; fold() keeps it; union() doubles it; a filter and its negation divide it; order() and barrier() lose
 * nothing. */
static void counts_agree(void **state) {
    random_source r;
    buf text = buf_init(4096);
    (void)state;
    for (uint64_t seed = 1000; seed < 1000 + ROUNDS; seed++) {
        random_seed(&r, seed);
        const char *t = random_traversal(&r, &text);
        found f;
        if (run("modern", t, usual, MEMORY, &f) != OK || f.n > 20000) {
            continue;
        }
        assert_int_equal(number_of(t, ".count()"), f.n);
        assert_int_equal(number_of(t, ".fold().count(local)"), f.n);
        assert_int_equal(number_of(t, ".order().by(id).barrier().count()"), f.n);
        assert_int_equal(number_of(t, ".union(__.identity(), __.out().fold().count(local).constant(1)).count()"), f.n + 1);
        assert_int_equal(number_of(t, ".filter(__.out('created')).count()") + number_of(t, ".not(__.out('created')).count()"), f.n);
        assert_int_equal(number_of(t, ".choose(__.in(), __.constant(1), __.constant(2)).count()"), f.n);
        assert_int_equal(number_of(t, ".groupCount().by(label).select(values).unfold().fold(0, sum)"), f.n);
    }
    buf_free(&text);
}

/* ---- a naive evaluator: chains of moves and labels, by recursion over the edges ---- */

typedef struct move {
    unsigned direction;
    const char *edge, *vertex; /* labels; NULL: any */
} move;

static bool has_label(const gremlin_element *e, const char *label) {
    return !label || slice_eq(e->label, slice_str(label));
}

static int64_t walk(const graph *g, const gremlin_element *v, const move *moves, size_t n) {
    int64_t ways = 0;
    if (n == 0) {
        return 1;
    }
    for (size_t i = 0; i < g->edge_n; i++) {
        const gremlin_element *e = g->edges[i];
        if (!has_label(e, moves->edge)) {
            continue;
        }
        if (moves->direction != DIRECTION_IN && e->out == v && has_label(e->in, moves->vertex)) {
            ways += walk(g, e->in, moves + 1, n - 1);
        }
        if (moves->direction != DIRECTION_OUT && e->in == v && has_label(e->out, moves->vertex)) {
            ways += walk(g, e->out, moves + 1, n - 1);
        }
    }
    return ways;
}

static void naive_walks(void **state) {
    static const char *const names[] = {"out", "in", "both"}, *const edges[] = {"next", "skips", NULL},
                             *const vertices[] = {"song", "artist", NULL, NULL};
    random_source r;
    graph *g = graph_open("ring");
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        move moves[4];
        char text[1024];
        random_seed(&r, seed);
        size_t n = 1 + random_below(&r, 4), at = (size_t)snprintf(text, sizeof text, "g.V()");
        for (size_t i = 0; i < n; i++) {
            moves[i] = (move){(unsigned)random_below(&r, 3), PICK(&r, edges), PICK(&r, vertices)};
            at += (size_t)snprintf(text + at, sizeof text - at, ".%s(%s%s%s)", names[moves[i].direction], moves[i].edge ? "'" : "",
                                   moves[i].edge ? moves[i].edge : "", moves[i].edge ? "'" : "");
            at += moves[i].vertex ? (size_t)snprintf(text + at, sizeof text - at, ".hasLabel('%s')", moves[i].vertex) : 0;
        }
        snprintf(text + at, sizeof text - at, ".count()");
        int64_t expected = 0;
        for (size_t i = 0; i < g->vertex_n; i++) {
            expected += walk(g, g->vertices[i], moves, n);
        }
        found f;
        assert_int_equal(run("ring", text, usual, MEMORY, &f), OK);
        assert_int_equal(f.last.i, expected);
    }
    graph_close(g);
}

/* ---- bounds ---- */

/* 60 · 3^12 paths do not fit; the run ends with an error, and nearly no memory beyond its budget. */
static void path_explosion(void **state) {
    found f;
    (void)state;
    assert_int_equal(run("ring", "g.V().repeat(__.out()).times(12).path().fold()", usual, 16 * 1024 * 1024, &f), E_MEMORY);
    assert_int_equal(run("ring", "g.V().repeat(__.out().as('a')).times(30).select('a')", usual, 16 * 1024 * 1024, &f), E_MEMORY);
}

/* The same without paths: traversers at the same place are one. */
static void equal_traversers(void **state) {
    found f;
    (void)state;
    assert_int_equal(run("ring", "g.V().repeat(__.out()).times(30).count()", usual, 16 * 1024 * 1024, &f), OK);
    assert_int_equal(f.last.i, 60 * 205891132094649);
}

/* Many times the budget passes through: what is not reachable any more is freed. */
static void garbage(void **state) {
    found f;
    (void)state;
    assert_int_equal(
        run("ring", "g.V().out().out().out().out().out().out().as('a').path().by(__.valueMap()).count()", usual, 48 * 1024 * 1024, &f), OK);
    assert_int_equal(f.last.i, 60 * 729);
}

/* ---- hashes ---- */

/* Whole numbers that share a double are others; one that a double stands for exactly equals it, whatever their types. */
static void whole_numbers(void **state) {
    arena a = arena_init();
    gremlin_bigint large = (gremlin_bigint)1 << 100;
    (void)state;
    for (int i = 1; i < 1000; i++) {
        gremlin_value v = gremlin_big(&a, large + i);
        assert_false(gremlin_hash(v) == gremlin_hash(gremlin_big(&a, large)));
        assert_false(gremlin_equal(v, gremlin_double(0x1p100)));
    }
    assert_true(gremlin_equal(gremlin_big(&a, large), gremlin_double(0x1p100)));
    assert_true(gremlin_hash(gremlin_big(&a, large)) == gremlin_hash(gremlin_double(0x1p100)));
    assert_true(gremlin_hash(gremlin_int(-3)) == gremlin_hash(gremlin_double(-3)));
    assert_true(gremlin_hash(gremlin_long(0)) == gremlin_hash(gremlin_double(-0.0)));
    arena_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ways_of_running), cmocka_unit_test(counts_agree),     cmocka_unit_test(naive_walks),
        cmocka_unit_test(path_explosion),  cmocka_unit_test(equal_traversers), cmocka_unit_test(garbage),
        cmocka_unit_test(whole_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
