/* Cells: points lie in the cells that their numbers name, covers contain their shapes, and everything that the exact functions find is
 * among the candidates, also at the poles and on the 180th meridian. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "doc/json.h"
#include "geo/cells.h"
#include "geo/geojson.h"
#include "rounds.h"

static arena memory;
static random_source source;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    random_seed(&source, 42);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static double uniform(double from, double to) {
    return from + (to - from) * (double)(random_u64(&source) >> 11) / 9007199254740992.0;
}

static unsigned below(unsigned n) {
    return (unsigned)(random_u64(&source) % n);
}

/* ---- random shapes ---- */

static geo_vector unit(geo_vector v) {
    double n = sqrt(v.x * v.x + v.y * v.y + v.z * v.z);
    return (geo_vector){v.x / n, v.y / n, v.z / n};
}

static geo_vector somewhere(void) {
    static const geo_vector special[] = {{0, 0, 1}, {0, 0, -1}, {-1, 0, 0}, {-1, 1e-9, 1}, {1, 1, 1}, {-1, -1, 1}, {1, 0, 0}, {1, -1, 0}};
    if (below(2)) {
        return unit(special[below(8)]);
    }
    return unit((geo_vector){uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)});
}

/* The point at a distance (in radians, approximately) and bearing. */
static geo_vector away(geo_vector from, double distance, double bearing) {
    geo_vector other = fabs(from.z) < 0.9 ? (geo_vector){0, 0, 1} : (geo_vector){1, 0, 0};
    geo_vector e =
        unit((geo_vector){other.y * from.z - other.z * from.y, other.z * from.x - other.x * from.z, other.x * from.y - other.y * from.x});
    geo_vector n = {from.y * e.z - from.z * e.y, from.z * e.x - from.x * e.z, from.x * e.y - from.y * e.x};
    double t = tan(distance), c = cos(bearing) * t, s = sin(bearing) * t;
    return unit((geo_vector){from.x + c * n.x + s * e.x, from.y + c * n.y + s * e.y, from.z + c * n.z + s * e.z});
}

static void add_place(buf *out, geo_vector v) {
    buf_addf(out, "[%.17g,%.17g]", atan2(v.y, v.x) * 180 / M_PI, asin(fmin(1, fmax(-1, v.z))) * 180 / M_PI);
}

/* Adds a ring around a centre, in either direction. */
static void add_ring(buf *out, geo_vector middle, double size, bool turned) {
    unsigned n = 3 + below(8);
    geo_vector places[16];
    for (unsigned i = 0; i < n; i++) {
        double bearing = (turned ? 2 : -2) * M_PI * (i + uniform(0, 0.8)) / n; /* bearings increase clockwise */
        places[i] = away(middle, size * uniform(0.3, 1), bearing);
    }
    buf_add_byte(out, '[');
    for (unsigned i = 0; i <= n; i++) {
        buf_addf(out, i ? "," : "");
        add_place(out, places[i % n]);
    }
    buf_add_byte(out, ']');
}

static void add_line(buf *out, geo_vector middle, double size) {
    unsigned n = 2 + below(6);
    buf_add_byte(out, '[');
    for (unsigned i = 0; i < n; i++) {
        buf_addf(out, i ? "," : "");
        add_place(out, away(middle, size * uniform(0, 1), uniform(0, 2 * M_PI)));
    }
    buf_add_byte(out, ']');
}

static void write_shape(buf *out, geo_vector middle, double size) {
    switch (below(4)) {
    case 0:
        buf_add_lit(out, "{\"type\":\"Point\",\"coordinates\":");
        add_place(out, away(middle, size * uniform(0, 1), uniform(0, 2 * M_PI)));
        break;
    case 1:
        buf_add_lit(out, "{\"type\":\"LineString\",\"coordinates\":");
        add_line(out, middle, size);
        break;
    case 2:
        buf_add_lit(out, "{\"type\":\"Polygon\",\"coordinates\":[");
        add_ring(out, middle, size, below(8) == 0);
        if (below(3) == 0) {
            buf_add_byte(out, ',');
            add_ring(out, middle, size * 0.25, true);
        }
        buf_add_byte(out, ']');
        break;
    default:
        buf_add_lit(out, "{\"type\":\"MultiPolygon\",\"coordinates\":[[");
        add_ring(out, middle, size, false);
        buf_add_lit(out, "],[");
        add_ring(out, away(middle, size * 3, uniform(0, 6)), size * 0.5, false);
        buf_add_lit(out, "]]");
    }
    buf_add_byte(out, '}');
}

static bool read_shape(slice text, geo_shape *shape_out) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    slice reason;
    assert_int_equal(json_to_bson(text, NULL, &bson, &root, NULL), OK);
    bool valid = geojson_read(&memory, arena_copy(&memory, buf_view(&bson)), shape_out, &reason);
    buf_free(&bson);
    return valid;
}

static geo_shape random_shape(geo_vector middle, double size, slice *text_out) {
    geo_shape shape;
    bool valid;
    do {
        buf text = buf_init(BUF_NO_LIMIT);
        write_shape(&text, middle, size);
        *text_out = arena_copy(&memory, buf_view(&text));
        buf_free(&text);
        valid = read_shape(*text_out, &shape);
    } while (!valid);
    return shape;
}

/* ---- numbers ---- */

static void cells_lie_in_each_other(void **state) {
    (void)state;
    for (int i = 0; i < 10000; i++) {
        geo_vector p = somewhere();
        geo_cell leaf = geo_cell_at(p, GEO_CELL_LEVELS);
        assert_int_equal(geo_cell_level(leaf), GEO_CELL_LEVELS);
        for (unsigned level = 0; level < GEO_CELL_LEVELS; level++) {
            geo_cell cell = geo_cell_at(p, level);
            assert_int_equal(geo_cell_level(cell), level);
            assert_true(cell == geo_cell_parent(leaf, level));
            assert_in_range(leaf, geo_cell_first(cell), geo_cell_last(cell));
            assert_in_range(geo_cell_at(p, level + 1), geo_cell_first(cell), geo_cell_last(cell));
        }
    }
}

static void spellings_sort_as_numbers(void **state) {
    (void)state;
    for (int i = 0; i < 1000; i++) {
        geo_cell a = geo_cell_at(somewhere(), below(31)), b = geo_cell_at(somewhere(), below(31));
        buf x = buf_init(BUF_NO_LIMIT), y = buf_init(BUF_NO_LIMIT);
        geo_cell_spell(&x, a);
        geo_cell_spell(&y, b);
        assert_int_equal(x.n, GEO_CELL_BYTES);
        assert_true((slice_cmp(buf_view(&x), buf_view(&y)) < 0) == (a < b));
        buf_free(&x);
        buf_free(&y);
    }
}

/* ---- candidates ---- */

static bool is_candidate(const geo_shape *stored, const geo_shape *asked, double angle) {
    geo_cell cells[GEO_CELLS_STORED];
    geo_cell_span spans[GEO_CELL_SPANS_MAX];
    uint64_t steps = 4000000;
    size_t n = geo_cells_of(stored, &steps, cells), m = geo_cells_near(asked, angle, &steps, spans);
    assert_in_range(n, 1, GEO_CELLS_STORED);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++) {
            if (cells[i] >= spans[j].first && cells[i] <= spans[j].last) {
                return true;
            }
        }
    }
    return false;
}

static void check_pair(const geo_shape *a, const geo_shape *b, slice a_text, slice b_text, size_t *found) {
    uint64_t steps = 100000000;
    bool meets = geo_intersects(a, b, &steps) || geo_within(&memory, a, b, &steps) || geo_within(&memory, b, a, &steps);
    *found += meets;
    if (meets && !is_candidate(a, b, 0)) {
        fail_msg("not found: %.*s\nby %.*s", (int)a_text.n, a_text.p, (int)b_text.n, b_text.p);
    }
    double metres = geo_shape_distance(a, b, &steps);
    if (isfinite(metres) && !is_candidate(a, b, geo_angle_of(metres))) {
        fail_msg("not found within %.17g m: %.*s\nby %.*s", metres, (int)a_text.n, a_text.p, (int)b_text.n, b_text.p);
    }
}

static void what_is_found_exactly_is_a_candidate(void **state) {
    (void)state;
    size_t found = 0, pairs = ROUNDS(6000);
    for (size_t i = 0; i < pairs; i++) {
        double size = pow(10, uniform(-7, 0)), other = size * pow(10, uniform(-1, 1));
        geo_vector middle = somewhere();
        slice a_text, b_text;
        geo_shape a = random_shape(middle, fmin(size, 1), &a_text);
        geo_shape b = random_shape(away(middle, fmin(size * uniform(0, 2), 1.2), uniform(0, 6.3)), fmin(other, 1), &b_text);
        check_pair(&a, &b, a_text, b_text, &found);
        arena_reset(&memory);
    }
    printf("%zu of %zu pairs meet\n", found, pairs);
    assert_in_range(found, pairs / 10, pairs);
}

static geo_shape shape(const char *text) {
    geo_shape s;
    assert_true(read_shape(slice_str(text), &s));
    return s;
}

static void borders_of_the_map_are_none(void **state) {
    (void)state;
    geo_shape fiji = shape("{\"type\":\"Polygon\",\"coordinates\":[[[177,-19],[-179,-19],[-179,-16],[177,-16],[177,-19]]]}");
    geo_shape east = shape("{\"type\":\"Point\",\"coordinates\":[180,-17]}"),
              west = shape("{\"type\":\"Point\",\"coordinates\":[-180,-17]}");
    geo_shape cap = shape("{\"type\":\"Polygon\",\"coordinates\":[[[0,85],[90,85],[180,85],[-90,85],[0,85]]]}");
    geo_shape pole = shape("{\"type\":\"Point\",\"coordinates\":[77,90]}"),
              near = shape("{\"type\":\"Point\",\"coordinates\":[179.9999,0]}");
    geo_shape far = shape("{\"type\":\"Point\",\"coordinates\":[-179.9999,0]}");
    assert_true(is_candidate(&east, &fiji, 0) && is_candidate(&west, &fiji, 0));
    assert_true(is_candidate(&fiji, &east, 0) && is_candidate(&fiji, &west, 0));
    assert_true(is_candidate(&pole, &cap, 0) && is_candidate(&cap, &pole, 0));
    assert_true(is_candidate(&near, &far, geo_angle_of(30)));
    assert_false(is_candidate(&near, &far, geo_angle_of(10)));
}

/* All the earth but a town. */
static void what_is_turned_around_is_everywhere_else(void **state) {
    (void)state;
    geo_shape all = shape("{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[0,1],[1,1],[1,0],[0,0]]]}");
    geo_shape out = shape("{\"type\":\"Point\",\"coordinates\":[-120,-40]}");
    assert_true(is_candidate(&out, &all, 0));
    assert_true(is_candidate(&all, &out, 0));
}

/* A polygon that crosses itself has no well-defined inside, so it is a candidate everywhere. */
static void what_crosses_itself_is_everywhere(void **state) {
    (void)state;
    geo_shape sliver = shape("{\"type\":\"Polygon\",\"coordinates\":[[[-179.7,-16.97],[-179.7,-16.95],[-179.7,-16.98],[-179.7,-16.97]]]}");
    geo_shape eight = shape("{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,1],[1,0],[0,1],[0,0]]]}");
    geo_shape pole = shape("{\"type\":\"Point\",\"coordinates\":[4,89.6]}");
    assert_true(is_candidate(&pole, &sliver, 0) && is_candidate(&sliver, &pole, 0));
    assert_true(is_candidate(&pole, &eight, 0) && is_candidate(&eight, &pole, 0));
}

/* Few of the points spread over the earth are candidates for a small area. */
static void covers_are_tight(void **state) {
    (void)state;
    geo_shape town = shape("{\"type\":\"Polygon\",\"coordinates\":[[[2.2,48.8],[2.5,48.8],[2.5,48.95],[2.2,48.95],[2.2,48.8]]]}");
    size_t near = 0, inside = 0, n = ROUNDS(20000);
    for (size_t i = 0; i < n; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"type\":\"Point\",\"coordinates\":[%.9f,%.9f]}", uniform(1, 4), uniform(48, 50));
        geo_shape p = shape(text);
        near += is_candidate(&p, &town, 0);
        inside += geo_intersects(&p, &town, NULL);
    }
    printf("%zu of %zu are candidates, %zu inside\n", near, n, inside);
    assert_true(near >= inside && near < 3 * inside);
}

static void steps_that_run_out_leave_everything(void **state) {
    (void)state;
    geo_cell cells[GEO_CELLS_STORED];
    uint64_t steps = 1;
    geo_shape line = shape("{\"type\":\"LineString\",\"coordinates\":[[0,0],[1,1],[2,0]]}");
    assert_int_equal(geo_cells_of(&line, &steps, cells), 6);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(geo_cell_level(cells[i]), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cells_lie_in_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(spellings_sort_as_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_found_exactly_is_a_candidate, set_up, tear_down),
        cmocka_unit_test_setup_teardown(borders_of_the_map_are_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_turned_around_is_everywhere_else, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_crosses_itself_is_everywhere, set_up, tear_down),
        cmocka_unit_test_setup_teardown(covers_are_tight, set_up, tear_down),
        cmocka_unit_test_setup_teardown(steps_that_run_out_leave_everything, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
