/* The nearest of random vectors, found by a graph and by comparing all; vectors that are replaced, removed, too large or zero. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/random.h"
#include "rounds.h"
#include "text/search.h"
#include "vector/graph.h"

enum { DIMENSIONS = 24, VECTORS = ROUNDS(4000), CENTRES = 50, WANTED = 10, LIST = 128, QUERIES = SANITIZED ? 20 : 40 };

static random_source dice;

static double unit(void) {
    return (double)random_below(&dice, 1 << 24) / (1 << 24) * 2 - 1;
}

typedef struct world {
    vector_graph *graph;
    search_distance distance;
    double centres[CENTRES][DIMENSIONS];
    double (*vectors)[DIMENSIONS];
    bool *there;
} world;

static void any_vector(const world *w, double *numbers) {
    const double *centre = w->centres[random_below(&dice, CENTRES)];
    for (size_t i = 0; i < DIMENSIONS; i++) {
        numbers[i] = centre[i] + 0.2 * unit();
    }
}

static void put(world *w, size_t label) {
    any_vector(w, w->vectors[label]);
    w->there[label] = true;
    assert_int_equal(vector_graph_put(w->graph, label, w->vectors[label]), VECTOR_PUT);
}

static world world_open(search_distance distance) {
    world w = {.distance = distance, .graph = vector_graph_new(distance, DIMENSIONS, 0, 3 * VECTORS)};
    assert_non_null(w.graph);
    w.vectors = mem_zero(VECTORS * sizeof *w.vectors);
    w.there = mem_zero(VECTORS * sizeof *w.there);
    for (size_t i = 0; i < CENTRES * DIMENSIONS; i++) {
        w.centres[i / DIMENSIONS][i % DIMENSIONS] = unit();
    }
    for (size_t i = 0; i < VECTORS; i++) {
        put(&w, i);
    }
    return w;
}

static void world_close(world *w) {
    vector_graph_free(w->graph);
    free(w->vectors);
    free(w->there);
}

/* A distance: smaller is nearer. */
static double far(const world *w, const double *from, size_t label) {
    double d = search_distance_between(w->distance, from, w->vectors[label], DIMENSIONS);
    return w->distance == SEARCH_EUCLIDEAN ? d : -d;
}

/* The number of vectors nearer than this one. */
static size_t rank_of(const world *w, const double *from, size_t label) {
    size_t nearer = 0;
    double distance = far(w, from, label);
    for (size_t i = 0; i < VECTORS; i++) {
        nearer += w->there[i] && far(w, from, i) < distance;
    }
    return nearer;
}

static double recall(const world *w) {
    size_t hits = 0;
    for (unsigned q = 0; q < QUERIES; q++) {
        double from[DIMENSIONS];
        vector_near near[LIST];
        any_vector(w, from);
        size_t n = vector_graph_search(w->graph, from, LIST, near);
        assert_true(n >= WANTED && n <= LIST);
        for (size_t i = 0; i < n; i++) {
            assert_true(near[i].label < VECTORS && w->there[near[i].label]);
            assert_true(i == 0 || near[i].distance >= near[i - 1].distance);
            hits += i < WANTED && rank_of(w, from, near[i].label) < WANTED;
        }
    }
    return (double)hits / (QUERIES * WANTED);
}

static void finds_the_nearest(void **state) {
    (void)state;
    for (search_distance d = SEARCH_COSINE; d <= SEARCH_EUCLIDEAN; d++) {
        world w = world_open(d);
        assert_true(recall(&w) > 0.97);
        assert_int_equal(vector_graph_count(w.graph), VECTORS);
        for (size_t i = 0; i < VECTORS; i++) {
            if (random_below(&dice, 3) == 0) {
                put(&w, i);
            } else if (random_below(&dice, 3) == 0) {
                vector_graph_remove(w.graph, i);
                vector_graph_remove(w.graph, i); /* not in the graph: nothing happens */
                w.there[i] = false;
            }
        }
        size_t there = 0;
        for (size_t i = 0; i < VECTORS; i++) {
            there += w.there[i];
        }
        assert_int_equal(vector_graph_count(w.graph), there);
        assert_true(vector_graph_dead(w.graph) > VECTORS / 4);
        assert_true(recall(&w) > 0.97);
        world_close(&w);
    }
}

static void grows(void **state) {
    (void)state;
    double numbers[DIMENSIONS] = {1};
    vector_near near[8];
    vector_graph *g = vector_graph_new(SEARCH_EUCLIDEAN, DIMENSIONS, 10, 3);
    assert_int_equal(vector_graph_search(g, numbers, 8, near), 0);
    for (uint64_t i = 0; i < 100; i++) {
        numbers[1] = (double)i;
        if (vector_graph_put(g, i, numbers) == VECTOR_NO_ROOM) {
            assert_int_equal(vector_graph_count(g), i);
            assert_true(vector_graph_grow(g, 2 * vector_graph_room(g)));
            assert_int_equal(vector_graph_put(g, i, numbers), VECTOR_PUT);
        }
    }
    numbers[1] = 50.2;
    assert_int_equal(vector_graph_search(g, numbers, 0, near), 0);
    assert_int_equal(vector_graph_search(g, numbers, 3, near), 3);
    assert_int_equal(near[0].label, 50);
    assert_int_equal(near[1].label, 51);
    assert_int_equal(near[2].label, 49);
    assert_true(vector_graph_bytes(DIMENSIONS, 2000) > vector_graph_bytes(DIMENSIONS, 1000));
    vector_graph_free(g);
    vector_graph_free(NULL);
    assert_null(vector_graph_new(SEARCH_COSINE, DIMENSIONS, 0, SIZE_MAX / 64)); /* more than the available memory */
}

/* Puts a vector with only one number that is not zero. */
static vector_put_result put_one(vector_graph *g, uint64_t label, double number) {
    double numbers[DIMENSIONS] = {0};
    numbers[3] = number;
    return vector_graph_put(g, label, numbers);
}

static bool finds(vector_graph *g, double number, uint64_t label) {
    double numbers[DIMENSIONS] = {0};
    vector_near near[4];
    numbers[3] = number;
    size_t n = vector_graph_search(g, numbers, 4, near);
    for (size_t i = 0; i < n; i++) {
        if (near[i].label == label) {
            return true;
        }
    }
    return false;
}

static void knows_what_floats_cannot_hold(void **state) {
    (void)state;
    vector_graph *g = vector_graph_new(SEARCH_EUCLIDEAN, DIMENSIONS, 0, 100);
    assert_int_equal(put_one(g, 1, 1), VECTOR_PUT);
    assert_int_equal(put_one(g, 2, 0), VECTOR_PUT);
    assert_int_equal(put_one(g, 3, 1e16), VECTOR_UNFIT);
    assert_int_equal(put_one(g, 4, 1e-16), VECTOR_UNFIT);
    assert_int_equal(put_one(g, 5, INFINITY), VECTOR_UNFIT);
    assert_int_equal(put_one(g, 6, NAN), VECTOR_UNFIT);
    assert_true(finds(g, 1, 1));
    assert_int_equal(put_one(g, 1, 1e300), VECTOR_UNFIT); /* the old vector is removed too */
    assert_false(finds(g, 1, 1));
    assert_int_equal(vector_graph_count(g), 1);
    vector_graph_free(g);

    g = vector_graph_new(SEARCH_COSINE, DIMENSIONS, 0, 100);
    assert_int_equal(put_one(g, 1, 1e300), VECTOR_PUT); /* only the direction counts */
    assert_int_equal(put_one(g, 2, -1e-300), VECTOR_PUT);
    assert_int_equal(put_one(g, 3, 0), VECTOR_ZERO);
    assert_int_equal(put_one(g, 4, 5e-324), VECTOR_PUT);
    assert_true(finds(g, 1, 4));
    double all[DIMENSIONS];
    for (size_t i = 0; i < DIMENSIONS; i++) {
        all[i] = 1.7e308;
    }
    assert_int_equal(vector_graph_put(g, 5, all), VECTOR_PUT);
    assert_true(fabs(search_distance_between(SEARCH_COSINE, all, all, DIMENSIONS) - 1) < 1e-9);
    assert_true(finds(g, 4, 1));
    assert_false(finds(g, 0, 1));
    vector_graph_free(g);

    const double none[DIMENSIONS] = {0}, some[DIMENSIONS] = {1}, odd[DIMENSIONS] = {NAN};
    assert_false(vector_graph_fits(SEARCH_COSINE, none, DIMENSIONS));
    assert_true(vector_graph_fits(SEARCH_DOT_PRODUCT, none, DIMENSIONS));
    assert_true(vector_graph_fits(SEARCH_COSINE, some, DIMENSIONS));
    assert_false(vector_graph_fits(SEARCH_COSINE, odd, DIMENSIONS));
}

/* Equal vectors must not be linked only to each other. */
static void finds_among_equal_ones(void **state) {
    (void)state;
    vector_graph *g = vector_graph_new(SEARCH_COSINE, DIMENSIONS, 0, 3000);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(put_one(g, i, 1), VECTOR_PUT);
        assert_int_equal(put_one(g, 1000 + i, -1), VECTOR_PUT);
    }
    double numbers[DIMENSIONS] = {0};
    vector_near near[100];
    numbers[3] = 1;
    assert_int_equal(vector_graph_search(g, numbers, 100, near), 100);
    for (size_t i = 0; i < 100; i++) {
        assert_true(near[i].label < 1000);
    }
    vector_graph_free(g);
}

/* New vectors are found even where all others near them were replaced. */
static void finds_where_others_died(void **state) {
    (void)state;
    vector_graph *g = vector_graph_new(SEARCH_EUCLIDEAN, DIMENSIONS, 0, 4000);
    double here[DIMENSIONS] = {5, 5}, there[DIMENSIONS] = {-5};
    vector_near near[200];
    for (uint64_t i = 0; i < 300; i++) {
        here[2] = there[2] = (double)i / 10000;
        assert_int_equal(vector_graph_put(g, i, here), VECTOR_PUT);
        assert_int_equal(vector_graph_put(g, 1000 + i, there), VECTOR_PUT);
    }
    for (uint64_t i = 0; i < 300; i++) {
        there[2] = (double)i / 1000 + 0.5;
        assert_int_equal(vector_graph_put(g, i, there), VECTOR_PUT);
    }
    for (uint64_t i = 2000; i < 2060; i++) {
        here[2] = (double)(i - 1900) / 30000;
        assert_int_equal(vector_graph_put(g, i, here), VECTOR_PUT);
    }
    unsigned found = 0;
    size_t n = vector_graph_search(g, here, 200, near);
    for (size_t i = 0; i < n; i++) {
        found += near[i].label >= 2000;
    }
    assert_true(found >= 55);
    vector_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_nearest),
        cmocka_unit_test(grows),
        cmocka_unit_test(knows_what_floats_cannot_hold),
        cmocka_unit_test(finds_among_equal_ones),
        cmocka_unit_test(finds_where_others_died),
    };
    random_seed(&dice, 7);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
