/* Shapes on the ellipsoid: distances compared with GeographicLib's, areas with integrals computed elsewhere, containing and touching. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "base/random.h"
#include "doc/json.h"
#include "geo/geojson.h"
#include "query/function.h"

static arena memory;
static uint64_t steps;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    steps = 1000000000;
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static query_value value(const char *text) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    if (json_to_bson(slice_str(text), NULL, &bson, &root, NULL) != OK) {
        fail_msg("no JSON: %s", text);
    }
    slice document = arena_copy(&memory, buf_view(&bson));
    buf_free(&bson);
    return value_document(TYPE_OBJECT, document);
}

/* The kind of a shape, from the number of brackets that its coordinates begin with. */
static const char *kind_of(const char *coordinates) {
    static const char *const kinds[] = {"", "Point", "LineString", "Polygon", "MultiPolygon"};
    return kinds[strspn(coordinates, "[")];
}

static query_value shape_value(const char *coordinates) {
    char text[4096];
    snprintf(text, sizeof text, "{\"type\":\"%s\",\"coordinates\":%s}", kind_of(coordinates), coordinates);
    return value(text);
}

static geo_shape shape(const char *coordinates) {
    query_value v = shape_value(coordinates);
    geo_shape s;
    slice reason;
    if (!geojson_read(&memory, v.bytes, &s, &reason)) {
        fail_msg("%s: %.*s", coordinates, (int)reason.n, reason.p);
    }
    return s;
}

static query_value call(const char *name, const query_value *args, size_t n) {
    query_context c = {.arena = &memory, .steps = &steps};
    return query_function_find(slice_str(name))->call(&c, args, n);
}

static void assert_near(double got, double expected, double relative, const char *what) {
    if (!(fabs(got - expected) <= relative * fabs(expected) + 1e-6)) {
        fail_msg("%s: %.9g, expected %.9g", what, got, expected);
    }
}

/* ---- lengths ---- */

typedef struct pair {
    double from[2], to[2], metres;
} pair;

static void points_are_as_far_apart_as_on_the_ellipsoid(void **state) {
    static const pair pairs[] = {
        {{-122.12826822304672, 47.63980239335718}, {-122.11758113953535, 47.66901087006131}, 3345.269740375},
        {{2.3522, 48.8566}, {-0.1276, 51.5072}, 343896.891266770},
        {{-73.9857, 40.7484}, {139.6917, 35.6895}, 10870055.012533443},
        {{151.2093, -33.8688}, {-58.3816, -34.6037}, 11823920.354337573},
        {{179.5, 10}, {-179.5, -10}, 2214481.072107122},
        {{0, 90}, {0, -90}, 20003931.458625447},
        {{0, 0}, {0, 90}, 10001965.729312724},
        {{12, 89.999}, {-168, 89.999}, 223.387959119},
        {{0, 0}, {1e-05, 0}, 1.113194908},
        {{10, 0}, {11, 0}, 111319.490793274},
        {{-70, -33.4}, {-70, -33.4}, 0},
        {{180, 5}, {-180, 5}, 0},
        {{30, 60}, {30.000001, 60.000001}, 0.124604726},
        {{0, 0}, {179, 0.2}, 19921261.268137153},
        {{5, 45}, {-175, -44}, 19892809.450362638},
    };
    static const pair opposite[] = {
        {{0, 0}, {180, 0}, 20003931.459},        {{0, 0}, {179.7, 0}, 19995624.890},   {{10, 30}, {-170, -30}, 20003931.459},
        {{0, 0.1}, {179.9, -0.1}, 20003008.422}, {{0, 0}, {179.5, 0.5}, 19936288.579},
    };
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        geo_point a = geo_point_at(pairs[i].from[0], pairs[i].from[1]), b = geo_point_at(pairs[i].to[0], pairs[i].to[1]);
        assert_near(geo_distance(&a, &b), pairs[i].metres, 1e-9, "distance");
        assert_near(geo_distance(&b, &a), pairs[i].metres, 1e-9, "distance back");
    }
    for (size_t i = 0; i < sizeof opposite / sizeof *opposite; i++) {
        geo_point a = geo_point_at(opposite[i].from[0], opposite[i].from[1]), b = geo_point_at(opposite[i].to[0], opposite[i].to[1]);
        assert_near(geo_distance(&a, &b), opposite[i].metres, 2e-3, "distance to the other side");
    }
}

/* The figure in the service's documentation; the service computes slightly differently. */
static void the_documented_distance_is_met(void **state) {
    (void)state;
    query_value args[] = {shape_value("[-122.12826822304672,47.63980239335718]"), shape_value("[-122.11758113953535,47.66901087006131]")};
    assert_near(call("ST_DISTANCE", args, 2).number / 1000, 3.345269817267368, 3e-8, "headquarters");
}

static void points_have_distances_to_edges(void **state) {
    static const struct {
        double point[2], from[2], to[2], metres;
    } cases[] = {
        {{0.5, 1}, {0, 0}, {1, 0}, 110574.388558},
        {{0, 10}, {-10, 0}, {10, 0}, 1105854.833234},
        {{-3.7, 40.4}, {2.35, 48.86}, {-9.14, 38.72}, 259052.481203},
        {{20, 70}, {-10, 60}, {60, 65}, 355483.714858},
        {{175, -40}, {160, -45}, {-160, -35}, 345138.601639},
        {{100, 10}, {0, 0}, {50, 20}, 5469879.396620},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[128], point[64];
        snprintf(line, sizeof line, "[[%g,%g],[%g,%g]]", cases[i].from[0], cases[i].from[1], cases[i].to[0], cases[i].to[1]);
        snprintf(point, sizeof point, "[%g,%g]", cases[i].point[0], cases[i].point[1]);
        geo_shape a = shape(point), b = shape(line);
        assert_near(geo_shape_distance(&a, &b, &steps), cases[i].metres, 1e-7, point);
        assert_near(geo_shape_distance(&b, &a, &steps), cases[i].metres, 1e-7, point);
    }
}

static void shapes_have_distances(void **state) {
    static const struct {
        const char *a, *b;
        double metres;
    } cases[] = {
        {"[[[0,0],[10,0],[10,10],[0,10],[0,0]]]", "[5,5]", 0},
        {"[[[0,0],[10,0],[10,10],[0,10],[0,0]]]", "[10,5]", 0},
        {"[[[0,0],[10,0],[10,10],[0,10],[0,0]]]", "[5,-1]", 110574.388558},
        {"[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[4,6],[6,6],[6,4],[4,4]]]", "[5,5]", 110499.03},
        {"[[0,0],[10,0]]", "[[5,-1],[5,1]]", 0},
        {"[[0,0],[10,0]]", "[[5,1],[5,2]]", 110574.388558},
        {"[[[0,0],[1,0],[1,1],[0,1],[0,0]]]", "[[[0,2],[1,2],[1,3],[0,3],[0,2]]]", 110573.5},
        {"[[[[0,0],[1,0],[1,1],[0,1],[0,0]]],[[[50,50],[51,50],[51,51],[50,51],[50,50]]]]", "[50,49]", 111238.68},
        {"[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]", "[180,0]", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        geo_shape a = shape(cases[i].a), b = shape(cases[i].b);
        assert_near(geo_shape_distance(&a, &b, &steps), cases[i].metres, 2e-4, cases[i].a);
        assert_near(geo_shape_distance(&b, &a, &steps), cases[i].metres, 2e-4, cases[i].b);
    }
}

/* ---- areas ---- */

static void areas_are_the_ellipsoids(void **state) {
    static const struct {
        const char *shape;
        double area, relative;
    } cases[] = {
        {"[[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7],[31.8,-5]]]", 735970283.0522614, 1e-9}, /* the documented area */
        {"[[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7],[31.8,-5]]]", 735970283.112868998, 1e-12},
        {"[[[-10,40],[30,35],[25,60],[-5,55],[-10,40]]]", 5667736342584.96679, 1e-12},
        {"[[[100,-20],[110,-25],[105,-10],[100,-20]]]", 721481743755.836125, 1e-12},
        {"[[[0,0],[90,0],[0,90],[0,0]]]", 510065621724088.509 / 8, 1e-12},
        {"[[[0,0],[0,90],[-90,0],[0,0]]]", 510065621724088.509 / 8, 1e-12},
        {"[[[0,0],[0,-90],[90,0],[0,0]]]", 510065621724088.509 / 8, 1e-12},
        {"[[[0,0],[90,0],[180,0],[-90,0],[0,0]]]", 510065621724088.509 / 2, 1e-12},
        {"[[[0,0],[-90,0],[180,0],[90,0],[0,0]]]", 510065621724088.509 / 2, 1e-12},
        {"[[[31.8,-5],[31.8,-4.7],[32,-4.7],[32,-5],[31.8,-5]]]", 510065621724088.509 - 735970283.112868998, 1e-12}, /* everything else */
        {"[[[179.9,-5],[-179.9,-5],[-179.9,-4.7],[179.9,-4.7],[179.9,-5]]]", 735970283.112868998, 1e-9},
        {"[1,2]", 0, 0},
        {"[[1,2],[3,4]]", 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        query_value v = shape_value(cases[i].shape);
        assert_near(call("ST_AREA", &v, 1).number, cases[i].area, cases[i].relative, cases[i].shape);
    }
    geo_shape over = shape("[[[0,60],[180,60],[-90,60],[0,60]]]"), /* an edge passes the pole; the others have corners there */
        left = shape("[[[180,60],[-90,60],[0,90],[180,60]]]"), right = shape("[[[-90,60],[0,60],[77,90],[-90,60]]]");
    assert_near(geo_area(&over), geo_area(&left) + geo_area(&right), 1e-12, "two parts");
    geo_shape one = shape("[[[0,0],[90,-80],[180,0],[-90,-80],[0,0]]]"), rest = shape("[[[0,0],[-90,-80],[180,0],[90,-80],[0,0]]]");
    assert_near(geo_area(&one) + geo_area(&rest), 510065621724088.509, 1e-12, "both sides");
    geo_shape cap = shape("[[[0,89],[90,89],[180,89],[-90,89],[0,89]]]"), other = shape("[[[0,-89],[-90,-89],[180,-89],[90,-89],[0,-89]]]");
    assert_near(geo_area(&cap), geo_area(&other), 1e-10, "caps at both poles");
    assert_near(geo_area(&cap), 24950000000, 0.01, "a square of 157 km");
}

static void holes_are_left_out_however_they_turn(void **state) {
    (void)state;
    geo_shape whole = shape("[[[0,0],[10,0],[10,10],[0,10],[0,0]]]"), hole = shape("[[[4,4],[6,4],[6,6],[4,6],[4,4]]]");
    geo_shape one = shape("[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[4,6],[6,6],[6,4],[4,4]]]");
    geo_shape other = shape("[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[6,4],[6,6],[4,6],[4,4]]]");
    assert_near(geo_area(&one), geo_area(&whole) - geo_area(&hole), 1e-12, "with a hole");
    assert_near(geo_area(&other), geo_area(&one), 1e-12, "a hole that turns the other way");
}

/* ---- within and intersects ---- */

typedef struct relation {
    const char *a, *b;
    bool within, intersects;
} relation;

#define SQUARE "[[[0,0],[10,0],[10,10],[0,10],[0,0]]]"
#define RING "[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[4,4],[4,6],[6,6],[6,4],[4,4]]]"
#define NOT_SQUARE "[[[0,0],[0,10],[10,10],[10,0],[0,0]]]"
#define DATE_LINE "[[[170,-10],[-170,-10],[-170,10],[170,10],[170,-10]]]"
#define ARCTIC "[[[0,80],[90,80],[180,80],[-90,80],[0,80]]]"

static const relation relations[] = {
    {"[5,5]", SQUARE, true, true},
    {"[11,5]", SQUARE, false, false},
    {"[0,5]", SQUARE, false, true}, /* on the border */
    {"[0,0]", SQUARE, false, true},
    {"[5,0]", SQUARE, false, true},
    {"[-170,-5]", SQUARE, false, false}, /* on the opposite side of the earth */
    {"[5,5]", RING, false, false},
    {"[4,5]", RING, false, true},
    {"[2,5]", RING, true, true},
    {"[5,5]", NOT_SQUARE, false, false},
    {"[11,5]", NOT_SQUARE, true, true},
    {"[-170,-5]", NOT_SQUARE, true, true},
    {"[0,5]", NOT_SQUARE, false, true},
    {"[180,0]", DATE_LINE, true, true},
    {"[-180,0]", DATE_LINE, true, true},
    {"[-175,5]", DATE_LINE, true, true},
    {"[175,-5]", DATE_LINE, true, true},
    {"[0,0]", DATE_LINE, false, false},
    {"[169,0]", DATE_LINE, false, false},
    {"[45,85]", ARCTIC, true, true},
    {"[123,90]", ARCTIC, true, true},
    {"[45,82]", ARCTIC, false, false}, /* the arc from 0 to 90 degrees passes nearer to the pole */
    {"[1,79]", ARCTIC, false, false},
    {"[1,2]", "[1,2]", true, true},
    {"[1,2]", "[1,3]", false, false},
    {"[180,2]", "[-180,2]", true, true},
    {"[5,0]", "[[0,0],[10,0]]", true, true},
    {"[0,0]", "[[0,0],[10,0]]", false, true}, /* an end */
    {"[5,1]", "[[0,0],[10,0]]", false, false},
    {"[[1,1],[9,9]]", SQUARE, true, true},
    {"[[1,1],[19,9]]", SQUARE, false, true},
    {"[[0,0],[10,10]]", SQUARE, true, true}, /* from corner to corner */
    {"[[0,0],[10,0]]", SQUARE, false, true}, /* along the border */
    {"[[-1,5],[0,5]]", SQUARE, false, true},
    {"[[-2,5],[-1,5]]", SQUARE, false, false},
    {"[[1,5],[9,5]]", RING, false, true}, /* through the hole */
    {"[[1,1],[1,9],[3,9]]", RING, true, true},
    {"[[0,5],[5,20],[10,5]]", SQUARE, false, true},
    {"[[2,0],[8,0]]", "[[0,0],[10,0]]", true, true},
    {"[[2,0],[12,0]]", "[[0,0],[10,0]]", false, true},
    {"[[2,1],[8,1]]", "[[0,0],[10,0]]", false, false},
    {"[[5,-5],[5,5]]", "[[0,0],[10,0]]", false, true},
    {"[[0,0],[10,0]]", "[5,0]", false, true},
    {SQUARE, SQUARE, true, true},
    {SQUARE, "[[[-1,-1],[11,-1],[11,11],[-1,11],[-1,-1]]]", true, true},
    {"[[[-1,-1],[11,-1],[11,11],[-1,11],[-1,-1]]]", SQUARE, false, true},
    {"[[[1,1],[2,1],[2,2],[1,2],[1,1]]]", RING, true, true},
    {"[[[4.5,4.5],[5.5,4.5],[5.5,5.5],[4.5,5.5],[4.5,4.5]]]", RING, false, false}, /* in the hole */
    {"[[[3,3],[7,3],[7,7],[3,7],[3,3]]]", RING, false, true},                      /* around it */
    {RING, SQUARE, true, true},
    {SQUARE, RING, false, true},
    {"[[[10,0],[20,0],[20,10],[10,10],[10,0]]]", SQUARE, false, true}, /* side by side */
    {"[[[11,0],[20,0],[20,10],[11,10],[11,0]]]", SQUARE, false, false},
    {"[[[5,5],[15,5],[15,15],[5,15],[5,5]]]", SQUARE, false, true},
    {"[[[11,0],[20,0],[20,10],[11,10],[11,0]]]", NOT_SQUARE, true, true},
    {"[[[1,1],[2,1],[2,2],[1,2],[1,1]]]", NOT_SQUARE, false, false},
    {SQUARE, NOT_SQUARE, false, true}, /* they share a border */
    {NOT_SQUARE, SQUARE, false, true},
    {SQUARE, "[[1,1],[2,2]]", false, true},
    {"[[[178,-1],[-178,-1],[-178,1],[178,1],[178,-1]]]", DATE_LINE, true, true},
    {"[[[[1,1],[2,1],[2,2],[1,2],[1,1]]],[[[7,7],[8,7],[8,8],[7,8],[7,7]]]]", SQUARE, true, true},
    {"[[[[1,1],[2,1],[2,2],[1,2],[1,1]]],[[[17,7],[18,7],[18,8],[17,8],[17,7]]]]", SQUARE, false, true},
    {"[1.5,1.5]", "[[[[1,1],[2,1],[2,2],[1,2],[1,1]]],[[[7,7],[8,7],[8,8],[7,8],[7,7]]]]", true, true},
    {"[5,5]", "[[[[1,1],[2,1],[2,2],[1,2],[1,1]]],[[[7,7],[8,7],[8,8],[7,8],[7,7]]]]", false, false},
    {"[[[7.2,7.2],[7.8,7.2],[7.8,7.8],[7.2,7.2]]]", "[[[[1,1],[2,1],[2,2],[1,2],[1,1]]],[[[7,7],[8,7],[8,8],[7,8],[7,7]]]]", true, true},
};

static void shapes_hold_and_touch_each_other(void **state) {
    (void)state;
    size_t failures = 0;
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
        const relation *r = &relations[i];
        query_value args[] = {shape_value(r->a), shape_value(r->b)}, back[] = {args[1], args[0]};
        query_value within = call("ST_WITHIN", args, 2), intersects = call("ST_INTERSECTS", args, 2), same = call("ST_INTERSECTS", back, 2);
        if (value_is_true(&within) != r->within || value_is_true(&intersects) != r->intersects || value_is_true(&same) != r->intersects) {
            print_error("%s and %s: within %d, intersects %d, back %d\n", r->a, r->b, within.truth, intersects.truth, same.truth);
            failures++;
        }
        double distance = call("ST_DISTANCE", args, 2).number;
        if ((distance == 0) != r->intersects) {
            print_error("%s and %s: distance %g\n", r->a, r->b, distance);
            failures++;
        }
        arena_reset(&memory);
    }
    assert_int_equal(failures, 0);
}

/* The point at some degrees and a bearing from another, on the sphere, which is close enough. */
static void away(double longitude, double latitude, double bearing, double degrees, double *longitude_out, double *latitude_out) {
    double phi = latitude * M_PI / 180, d = degrees * M_PI / 180, b = bearing * M_PI / 180;
    double sine = fmin(1, fmax(-1, sin(phi) * cos(d) + cos(phi) * sin(d) * cos(b)));
    double turn = atan2(sin(b) * sin(d) * cos(phi), cos(d) - sin(phi) * sine);
    *latitude_out = asin(sine) * 180 / M_PI;
    *longitude_out = remainder(longitude + turn * 180 / M_PI, 360);
}

/* Regular polygons anywhere, also at the poles and the date line: points nearer to the centre than the sides are inside, points farther
 * than the corners are outside. If the polygon is reversed, it is the opposite. */
static void round_polygons_hold_what_is_near_their_middle(void **state) {
    (void)state;
    random_source r;
    random_seed(&r, 5);
    for (int i = 0; i < 3000; i++) {
        double longitude = (double)random_below(&r, 360000) / 1000 - 180, latitude = (double)random_below(&r, 180001) / 1000 - 90;
        double radius = pow(10, (double)random_below(&r, 5000) / 1000 - 3.2); /* up to 60 degrees */
        size_t n = 3 + random_below(&r, 12);
        bool turned = random_below(&r, 2);
        char text[2048], point[80];
        int at = snprintf(text, sizeof text, "[[");
        for (size_t k = 0; k <= n; k++) {
            double x, y, bearing = 360.0 * (double)(turned ? k % n : (n - k) % n) / (double)n;
            away(longitude, latitude, bearing, radius, &x, &y);
            at += snprintf(text + at, sizeof text - (size_t)at, "%s[%.15g,%.15g]", k ? "," : "", x, y);
        }
        snprintf(text + at, sizeof text - (size_t)at, "]]");
        geo_shape polygon = shape(text);
        bool in = random_below(&r, 2);
        double inner = atan(tan(radius * M_PI / 180) * cos(M_PI / (double)n)) * 180 / M_PI, x, y;
        double far = in ? inner * 0.97 * (double)random_below(&r, 1000) / 1000 : radius * 1.03 + (double)random_below(&r, 1000) / 1000 * 60;
        away(longitude, latitude, (double)random_below(&r, 360), far, &x, &y);
        snprintf(point, sizeof point, "[%.15g,%.15g]", x, y);
        geo_shape p = shape(point);
        if (geo_within(&memory, &p, &polygon, NULL) != (in != turned)) {
            fail_msg("%s, %g degrees from the middle of one of %g, turned %d: %s", point, far, radius, turned, text);
        }
        assert_int_equal(geo_intersects(&p, &polygon, NULL), in != turned);
        arena_reset(&memory);
    }
}

/* ---- validity ---- */

static void reasons_are_given(void **state) {
    static const struct {
        const char *json, *reason; /* NULL: valid */
    } cases[] = {
        {"{\"type\":\"Point\",\"coordinates\":[31.9,-4.8]}", NULL},
        {"{\"type\":\"Point\",\"coordinates\":[31.9,-4.8,100]}", NULL},
        {"{\"type\":\"Point\",\"coordinates\":[180,90]}", NULL},
        {"{\"type\":\"Point\",\"coordinates\":[31.9,-90.001]}", "Latitude values must be between -90 and 90 degrees."},
        {"{\"type\":\"Point\",\"coordinates\":[180.5,0]}", "Longitude values must be between -180 and 180 degrees."},
        {"{\"type\":\"Point\",\"coordinates\":[1]}", "A position must be an array of two to four numbers, longitude and latitude first."},
        {"{\"type\":\"Point\",\"coordinates\":[\"1\",2]}",
         "A position must be an array of two to four numbers, longitude and latitude first."},
        {"{\"type\":\"Point\"}", "A position must be an array of two to four numbers, longitude and latitude first."},
        {"{\"type\":\"point\",\"coordinates\":[1,2]}",
         "The input is not a GeoJSON object of type Point, LineString, Polygon or MultiPolygon."},
        {"{}", "The input is not a GeoJSON object of type Point, LineString, Polygon or MultiPolygon."},
        {"{\"type\":\"LineString\",\"coordinates\":[[1,2],[3,4]]}", NULL},
        {"{\"type\":\"LineString\",\"coordinates\":[[1,2],[1,2]]}",
         "The LineString input is not valid because it does not have enough distinct points. A LineString must have at least two distinct "
         "points."},
        {"{\"type\":\"LineString\",\"coordinates\":[[0,0],[180,0]]}",
         "The LineString input is not valid because it contains an edge between antipodal points."},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7],[31.8,-5]]]}", NULL},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[31.8,-5],[31.8,-4.7],[32,-4.7],[32,-5]]]}",
         "The Polygon input is not valid because the start and end points of the ring number 1 are not the same. Each ring of a polygon "
         "must "
         "have the same start and end points."},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[1,0],[0,0]]]}",
         "The Polygon input is not valid because the ring number 1 does not have enough distinct points. Each ring of a polygon must "
         "contain "
         "at least three distinct points."},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[1,1],[1,1],[1,1],[1,1]]]}",
         "The Polygon input is not valid because the ring number 1 does not have enough distinct points. Each ring of a polygon must "
         "contain "
         "at least three distinct points."},
        {"{\"type\":\"Polygon\",\"coordinates\":[]}", "The Polygon input is not valid because it has no ring, or too many."},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[2,2],[2,0],[0,2],[0,0]]]}",
         "The Polygon input is not valid because the ring number 1 crosses or touches itself."},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[4,0],[2,0],[2,2],[0,0]]]}",
         "The Polygon input is not valid because the ring number 1 crosses or touches itself."},
        {"{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[4,0],[4,4],[0,4],[0,0]],[[1,1],[1,5],[2,5],[2,1],[1,1]]]}",
         "The Polygon input is not valid because the rings number 1 and 2 cross."},
        {"{\"type\":\"MultiPolygon\",\"coordinates\":[]}", NULL},
        {"{\"type\":\"MultiPolygon\",\"coordinates\":[[[[52,12],[53,12],[53,13],[52,13],[52,12]]],[[[50,0],[51,0],[51,5],[50,5],[50,0]]]]}",
         NULL},
        {"{\"type\":\"MultiPolygon\",\"coordinates\":[[[[0,0],[2,0],[2,2],[0,2],[0,0]]],[[[1,1],[3,1],[3,3],[1,3],[1,1]]]]}",
         "The MultiPolygon input is not valid because two of its polygons cross."},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        query_value v = value(cases[i].json), valid = call("ST_ISVALID", &v, 1), detailed = call("ST_ISVALIDDETAILED", &v, 1);
        query_value truth = value_member(&memory, &detailed, SLICE_LIT("valid")),
                    reason = value_member(&memory, &detailed, SLICE_LIT("reason"));
        slice expected = cases[i].reason ? slice_str(cases[i].reason) : SLICE_LIT("");
        if (value_is_true(&valid) != !cases[i].reason || truth.truth != valid.truth || !slice_eq(reason.bytes, expected)) {
            fail_msg("%s: %d, %.*s", cases[i].json, valid.truth, (int)reason.bytes.n, reason.bytes.p);
        }
    }
    query_value number = value_integer(42), args[] = {number, number};
    assert_int_equal(call("ST_ISVALID", &number, 1).type, TYPE_UNDEFINED);
    assert_int_equal(call("ST_ISVALIDDETAILED", &number, 1).type, TYPE_UNDEFINED);
    assert_int_equal(call("ST_DISTANCE", args, 2).type, TYPE_UNDEFINED);
    args[0] = shape_value("[1,2]");
    args[1] = shape_value("[1,92]");
    assert_int_equal(call("ST_DISTANCE", args, 2).type, TYPE_UNDEFINED);
    assert_int_equal(call("ST_WITHIN", args, 2).type, TYPE_UNDEFINED);
    assert_int_equal(call("ST_INTERSECTS", args, 2).type, TYPE_UNDEFINED);
    args[1] = value("{\"type\":\"MultiPolygon\",\"coordinates\":[]}");
    assert_int_equal(call("ST_DISTANCE", args, 2).type, TYPE_UNDEFINED);
    query_value never = call("ST_WITHIN", args, 2);
    assert_true(never.type == TYPE_BOOL && !never.truth);
}

/* The largest allowed number of points takes bounded time; more are rejected; if the steps run out, work ends. */
static void large_shapes_are_bounded(void **state) {
    (void)state;
    for (size_t n = 4095; n <= 4096; n++) {
        buf text = buf_init(BUF_NO_LIMIT);
        buf_add_lit(&text, "{\"type\":\"Polygon\",\"coordinates\":[[");
        for (size_t i = 0; i <= n; i++) {
            double angle = 2 * M_PI * (double)(i % n) / (double)n;
            buf_addf(&text, "%s[%.12g,%.12g]", i ? "," : "", 10 * cos(angle), 10 * sin(angle));
        }
        buf_add_lit(&text, "]]}");
        buf_add_byte(&text, 0);
        query_value args[] = {value(text.p), value(text.p)};
        query_value valid = call("ST_ISVALID", args, 1), within = call("ST_WITHIN", args, 2);
        assert_int_equal(value_is_true(&valid), n < 4096);
        if (n < 4096) {
            assert_true(value_is_true(&within));
            assert_near(call("ST_AREA", args, 1).number, M_PI * 1.111e6 * 1.111e6, 0.01, "a circle");
            steps = 1000;
            assert_int_equal(call("ST_WITHIN", args, 2).type, TYPE_UNDEFINED);
            steps = 1000000000;
        } else {
            assert_int_equal(within.type, TYPE_UNDEFINED);
        }
        buf_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(points_are_as_far_apart_as_on_the_ellipsoid, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_documented_distance_is_met, set_up, tear_down),
        cmocka_unit_test_setup_teardown(points_have_distances_to_edges, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shapes_have_distances, set_up, tear_down),
        cmocka_unit_test_setup_teardown(areas_are_the_ellipsoids, set_up, tear_down),
        cmocka_unit_test_setup_teardown(holes_are_left_out_however_they_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(shapes_hold_and_touch_each_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(round_polygons_hold_what_is_near_their_middle, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reasons_are_given, set_up, tear_down),
        cmocka_unit_test_setup_teardown(large_shapes_are_bounded, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("query_geo", tests, NULL, NULL);
}
