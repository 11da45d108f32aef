#include "geo/geojson.h"

#include <math.h>

#include "doc/path.h"

typedef struct reader {
    arena *arena;
    slice reason;
    size_t points_n;
} reader;

static bool fail(reader *r, slice reason) {
    r->reason = reason;
    return false;
}

/* ---- positions ---- */

static bool is_array(const doc_element *e) {
    return e->type == BSON_TYPE_ARRAY;
}

static size_t length_of(const doc_element *array) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    for (bool more = doc_walk_init(&w, array->value); more && doc_walk_next(&w, &e);) {
        n++;
    }
    return n;
}

static bool number_of(const doc_element *e, double *number_out) {
    *number_out = e->type == BSON_TYPE_INT32    ? doc_load_i32(e->value.p)
                  : e->type == BSON_TYPE_INT64  ? (double)doc_load_i64(e->value.p)
                  : e->type == BSON_TYPE_DOUBLE ? doc_load_double(e->value.p)
                                                : 0;
    return doc_is_number(e->type);
}

/* Reads longitude and latitude; one or two further elements are ignored. */
static bool two_numbers(const doc_element *v, double *longitude, double *latitude) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    bool numbers = is_array(v) && doc_walk_init(&w, v->value);
    while (numbers && n < 5 && doc_walk_next(&w, &e)) {
        numbers = n > 1 || number_of(&e, n == 0 ? longitude : latitude);
        n++;
    }
    return numbers && n >= 2 && n <= 4;
}

static bool read_position(reader *r, const doc_element *v, geo_point *point_out) {
    double longitude, latitude;
    if (!two_numbers(v, &longitude, &latitude)) {
        return fail(r, SLICE_LIT("A position must be an array of two to four numbers, longitude and latitude first."));
    }
    if (!(fabs(latitude) <= 90)) {
        return fail(r, SLICE_LIT("Latitude values must be between -90 and 90 degrees."));
    }
    if (!(fabs(longitude) <= 180)) {
        return fail(r, SLICE_LIT("Longitude values must be between -180 and 180 degrees."));
    }
    if (++r->points_n > GEOJSON_POINTS_MAX) {
        return fail(r, SLICE_LIT("The shape has more points than are supported."));
    }
    *point_out = geo_point_at(longitude, latitude);
    return true;
}

static bool same(const geo_point *a, const geo_point *b) {
    return a->longitude == b->longitude && a->latitude == b->latitude;
}

/* Reads positions, without consecutive duplicates. */
static bool read_positions(reader *r, const doc_element *v, geo_ring *ring_out) {
    size_t n = is_array(v) ? length_of(v) : 0;
    if (n > GEOJSON_POINTS_MAX + 1) {
        return fail(r, SLICE_LIT("The shape has more points than are supported."));
    }
    geo_point *points = arena_alloc(r->arena, (n + 1) * sizeof *points);
    doc_walk w;
    doc_element e;
    *ring_out = (geo_ring){.points = points};
    for (bool more = n && doc_walk_init(&w, v->value); more && doc_walk_next(&w, &e);) {
        if (!read_position(r, &e, &points[ring_out->n])) {
            return false;
        }
        ring_out->n += ring_out->n == 0 || !same(&points[ring_out->n], &points[ring_out->n - 1]);
    }
    return true;
}

/* ---- shapes ---- */

static bool read_point(reader *r, const doc_element *coordinates, geo_shape *shape) {
    geo_point *point = arena_alloc(r->arena, sizeof *point);
    shape->kind = GEO_POINT;
    shape->line = (geo_ring){.points = point, .n = 1};
    return read_position(r, coordinates, point);
}

static bool read_line(reader *r, const doc_element *coordinates, geo_shape *shape) {
    shape->kind = GEO_LINE;
    if (!read_positions(r, coordinates, &shape->line)) {
        return false;
    }
    if (shape->line.n < 2) {
        return fail(
            r, SLICE_LIT("The LineString input is not valid because it does not have enough distinct points. A LineString must have at "
                         "least two distinct points."));
    }
    return geo_make_edges(r->arena, &shape->line, false) ||
           fail(r, SLICE_LIT("The LineString input is not valid because it contains an edge between antipodal points."));
}

static bool fail_ring(reader *r, size_t number, const char *what, const char *rule) {
    return fail(r, arena_printf(r->arena, "The Polygon input is not valid because the %s number %zu %s", what, number, rule));
}

static bool read_ring(reader *r, const doc_element *v, size_t number, geo_ring *ring) {
    if (!read_positions(r, v, ring)) {
        return false;
    }
    if (ring->n < 2 || !same(&ring->points[0], &ring->points[ring->n - 1])) {
        return ring->n < 2 ? fail_ring(r, number, "ring",
                                       "does not have enough distinct points. Each ring of a polygon must contain at least three "
                                       "distinct points.")
                           : fail_ring(r, number, "start and end points of the ring",
                                       "are not the same. Each ring of a polygon must have the same start and end points.");
    }
    ring->n--; /* the last point repeats the first */
    if (ring->n < 3) {
        return fail_ring(r, number, "ring",
                         "does not have enough distinct points. Each ring of a polygon must contain at least three distinct points.");
    }
    return geo_make_edges(r->arena, ring, true) || fail_ring(r, number, "ring", "contains an edge between antipodal points.");
}

static const double HALF_OF_EARTH = 255e12; /* square metres */

/* Reverses a ring, which exchanges its left and right. */
static void turn_around(arena *a, geo_ring *ring) {
    geo_point *points = arena_alloc(a, ring->n * sizeof *points);
    for (size_t i = 0; i < ring->n; i++) {
        points[i] = ring->points[ring->n - 1 - i];
    }
    ring->points = points;
    geo_make_edges(a, ring, true);
}

static bool read_polygon(reader *r, const doc_element *coordinates, geo_polygon *polygon) {
    doc_walk w;
    doc_element e;
    size_t n = is_array(coordinates) ? length_of(coordinates) : 0;
    if (n == 0 || n > GEOJSON_POINTS_MAX) {
        return fail(r, SLICE_LIT("The Polygon input is not valid because it has no ring, or too many."));
    }
    polygon->rings = arena_array(r->arena, geo_ring, n);
    polygon->n = 0;
    for (bool more = doc_walk_init(&w, coordinates->value); more && doc_walk_next(&w, &e);) {
        geo_ring *ring = &polygon->rings[polygon->n++];
        if (!read_ring(r, &e, polygon->n, ring)) {
            return false;
        }
        if (polygon->n > 1 && geo_ring_area(ring) < HALF_OF_EARTH) {
            turn_around(r->arena, ring);
        }
    }
    return true;
}

void geojson_take_smaller(arena *a, geo_shape *shape) {
    for (size_t i = 0; i < shape->polygons_n; i++) {
        if (geo_ring_area(&shape->polygons[i].rings[0]) > HALF_OF_EARTH) {
            turn_around(a, &shape->polygons[i].rings[0]);
        }
    }
}

static bool read_one_polygon(reader *r, const doc_element *coordinates, geo_shape *shape) {
    shape->kind = GEO_POLYGON;
    shape->polygons = arena_new(r->arena, geo_polygon);
    shape->polygons_n = 1;
    return read_polygon(r, coordinates, shape->polygons);
}

static bool read_many_polygons(reader *r, const doc_element *coordinates, geo_shape *shape) {
    doc_walk w;
    doc_element e;
    size_t n = is_array(coordinates) ? length_of(coordinates) : 0;
    if (!is_array(coordinates) || n > GEOJSON_POINTS_MAX) {
        return fail(r, SLICE_LIT("The MultiPolygon input is not valid because its coordinates are no array, or too many."));
    }
    shape->kind = GEO_POLYGON;
    shape->polygons = arena_array(r->arena, geo_polygon, n + 1);
    for (bool more = doc_walk_init(&w, coordinates->value); more && doc_walk_next(&w, &e);) {
        if (!read_polygon(r, &e, &shape->polygons[shape->polygons_n++])) {
            return false;
        }
    }
    return true;
}

static const struct {
    slice name;
    bool (*read)(reader *r, const doc_element *coordinates, geo_shape *shape);
} types[] = {
    {{"Point", 5}, read_point},
    {{"LineString", 10}, read_line},
    {{"Polygon", 7}, read_one_polygon},
    {{"MultiPolygon", 12}, read_many_polygons},
};

static bool read_shape(reader *r, slice object, geo_shape *shape) {
    doc_element type, coordinates;
    bool typed = doc_find_member(object, SLICE_LIT("type"), &type) && type.type == BSON_TYPE_UTF8;
    if (!doc_find_member(object, SLICE_LIT("coordinates"), &coordinates)) {
        coordinates = (doc_element){.type = BSON_TYPE_EOD};
    }
    for (size_t i = 0; i < sizeof types / sizeof *types && typed; i++) {
        if (slice_eq(doc_element_text(&type), types[i].name)) {
            return types[i].read(r, &coordinates, shape);
        }
    }
    return fail(r, SLICE_LIT("The input is not a GeoJSON object of type Point, LineString, Polygon or MultiPolygon."));
}

bool geojson_read(arena *a, slice object, geo_shape *shape_out, slice *reason_out) {
    reader r = {.arena = a};
    *shape_out = (geo_shape){0};
    bool valid = read_shape(&r, object, shape_out);
    shape_out->points_n = r.points_n;
    *reason_out = r.reason;
    return valid;
}

/* ---- checking ---- */

static bool check_polygon(arena *a, const geo_polygon *polygon, slice *reason_out, uint64_t *steps) {
    for (size_t i = 0; i < polygon->n; i++) {
        if (!geo_ring_is_simple(&polygon->rings[i], true, steps)) {
            *reason_out = arena_printf(a, "The Polygon input is not valid because the ring number %zu crosses or touches itself.", i + 1);
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (geo_rings_cross(&polygon->rings[j], &polygon->rings[i], steps)) {
                *reason_out = arena_printf(a, "The Polygon input is not valid because the rings number %zu and %zu cross.", j + 1, i + 1);
                return false;
            }
        }
    }
    return true;
}

static bool polygons_cross(const geo_polygon *a, const geo_polygon *b, uint64_t *steps) {
    for (size_t i = 0; i < a->n; i++) {
        for (size_t j = 0; j < b->n; j++) {
            if (geo_rings_cross(&a->rings[i], &b->rings[j], steps)) {
                return true;
            }
        }
    }
    return false;
}

bool geojson_check(arena *a, const geo_shape *shape, slice *reason_out, uint64_t *steps) {
    for (size_t i = 0; i < shape->polygons_n; i++) {
        if (!check_polygon(a, &shape->polygons[i], reason_out, steps)) {
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (polygons_cross(&shape->polygons[j], &shape->polygons[i], steps)) {
                *reason_out = SLICE_LIT("The MultiPolygon input is not valid because two of its polygons cross.");
                return false;
            }
        }
    }
    return true;
}
