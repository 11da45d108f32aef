#include "mql/geometry.h"

#include <math.h>

#include "geo/geojson.h"

enum { GEOMETRIES_MAX = 4096, NESTING_MAX = 8 };

typedef struct reader {
    arena *arena;
    slice reason;
    uint64_t *steps;
    geo_shape *shapes;
    size_t n, cap;
} reader;

static bool fail(reader *r, slice reason) {
    r->reason = reason;
    return false;
}

/* ---- pairs ---- */

bool mql_pair_read(mql_value v, double *x_out, double *y_out) {
    doc_walk w;
    doc_element x, y;
    if (!doc_is_container(v.type) || !doc_walk_init(&w, v.bytes) || !doc_walk_next(&w, &x) || !doc_walk_next(&w, &y) ||
        !mql_is_number(mql_of(&x)) || !mql_is_number(mql_of(&y))) {
        return false;
    }
    *x_out = mql_as_double(mql_of(&x));
    *y_out = mql_as_double(mql_of(&y));
    return isfinite(*x_out) && isfinite(*y_out);
}

/* ---- GeoJSON ---- */

static geo_shape *add_shape(reader *r) {
    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 4;
        geo_shape *more = arena_alloc(r->arena, cap * sizeof *more);
        if (r->n) {
            memcpy(more, r->shapes, r->n * sizeof *more);
        }
        r->shapes = more;
        r->cap = cap;
    }
    return &r->shapes[r->n++];
}

/* Reads {type: …, coordinates: …} of one of the types that geo/ knows. */
static bool read_simple(reader *r, slice object) {
    geo_shape shape;
    if (r->n == GEOMETRIES_MAX) {
        return fail(r, SLICE_LIT("too many geometries"));
    }
    if (!geojson_read(r->arena, object, &shape, &r->reason)) {
        return false;
    }
    geojson_take_smaller(r->arena, &shape);
    if (!geojson_check(r->arena, &shape, &r->reason, r->steps)) {
        return false;
    }
    *add_shape(r) = shape;
    return true;
}

/* Each element of a MultiPoint or MultiLineString is read as a shape of its own. */
static bool read_each(reader *r, mql_value coordinates, slice type) {
    doc_walk w;
    doc_element e;
    buf out = buf_init(BUF_NO_LIMIT);
    bool good = coordinates.type == BSON_TYPE_ARRAY || fail(r, SLICE_LIT("coordinates must be an array"));
    for (bool more = good && doc_walk_init(&w, coordinates.bytes); more && good && doc_walk_next(&w, &e);) {
        buf_clear(&out);
        mql_builder b = mql_build(&out);
        mql_add(&b, SLICE_LIT("type"), mql_text(r->arena, type));
        mql_add(&b, SLICE_LIT("coordinates"), mql_of(&e));
        slice object = mql_built(&b);
        good = buf_ok(&out) && read_simple(r, object);
    }
    buf_free(&out);
    return good;
}

static bool read_object(reader *r, mql_value object, unsigned depth);

static bool read_collection(reader *r, mql_value geometries, unsigned depth) {
    doc_walk w;
    doc_element e;
    if (geometries.type != BSON_TYPE_ARRAY || depth == NESTING_MAX) {
        return fail(r, SLICE_LIT("GeometryCollection geometries must be an array"));
    }
    for (doc_walk_init(&w, geometries.bytes); doc_walk_next(&w, &e);) {
        if (!read_object(r, mql_of(&e), depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool read_object(reader *r, mql_value object, unsigned depth) {
    mql_value type = mql_member(object, SLICE_LIT("type"));
    slice name = type.type == BSON_TYPE_UTF8 ? mql_as_text(type) : SLICE_EMPTY;
    mql_value coordinates = mql_member(object, SLICE_LIT("coordinates"));
    if (slice_eq(name, SLICE_LIT("MultiPoint"))) {
        return read_each(r, coordinates, SLICE_LIT("Point"));
    }
    if (slice_eq(name, SLICE_LIT("MultiLineString"))) {
        return read_each(r, coordinates, SLICE_LIT("LineString"));
    }
    if (slice_eq(name, SLICE_LIT("GeometryCollection"))) {
        return read_collection(r, mql_member(object, SLICE_LIT("geometries")), depth);
    }
    return object.type == BSON_TYPE_DOCUMENT ? read_simple(r, object.bytes) : fail(r, SLICE_LIT("not a GeoJSON object"));
}

static bool is_geojson(mql_value v) {
    return v.type == BSON_TYPE_DOCUMENT && mql_member(v, SLICE_LIT("type")).type == BSON_TYPE_UTF8;
}

/* A pair outside of the earth's coordinates has no shape on the sphere. */
static void read_pair_shape(reader *r, double x, double y) {
    if (fabs(x) <= 180 && fabs(y) <= 90) {
        geo_point *point = arena_alloc(r->arena, sizeof *point);
        *point = geo_point_at(x, y);
        *add_shape(r) = (geo_shape){.kind = GEO_POINT, .line = {.points = point, .n = 1}, .points_n = 1};
    }
}

bool mql_geometry_read(arena *a, mql_value v, mql_geometry *geometry_out, slice *reason_out, uint64_t *steps) {
    reader r = {.arena = a, .steps = steps, .reason = SLICE_LIT("not a geometry")};
    mql_geometry *g = geometry_out;
    *g = (mql_geometry){0};
    bool good = true;
    if (is_geojson(v)) {
        good = read_object(&r, v, 0);
        g->is_point = good && r.n == 1 && r.shapes->kind == GEO_POINT;
        if (g->is_point) {
            g->x = r.shapes->line.points->longitude;
            g->y = r.shapes->line.points->latitude;
        }
    } else if (mql_pair_read(v, &g->x, &g->y)) {
        g->is_point = g->is_pair = true;
        read_pair_shape(&r, g->x, g->y);
    } else {
        good = false;
    }
    g->shapes = r.shapes;
    g->n = r.n;
    *reason_out = r.reason;
    return good;
}

/* ---- relations ---- */

bool mql_geometry_intersects(const mql_geometry *a, const mql_geometry *b, uint64_t *steps) {
    for (size_t i = 0; i < a->n; i++) {
        for (size_t j = 0; j < b->n; j++) {
            if (geo_intersects(&a->shapes[i], &b->shapes[j], steps)) {
                return true;
            }
        }
    }
    return false;
}

static bool within_some(arena *arena, const geo_shape *a, const mql_geometry *b, uint64_t *steps) {
    for (size_t i = 0; i < b->n; i++) {
        if (geo_within(arena, a, &b->shapes[i], steps)) {
            return true;
        }
    }
    return false;
}

bool mql_geometry_within(arena *arena, const mql_geometry *a, const mql_geometry *b, uint64_t *steps) {
    bool within = a->n > 0;
    for (size_t i = 0; i < a->n && within; i++) {
        within = within_some(arena, &a->shapes[i], b, steps);
    }
    return within;
}

/* ---- distances ---- */

static double radians_of(double degrees) {
    return degrees * (M_PI / 180);
}

double mql_geo_angle(double x1, double y1, double x2, double y2) {
    double a = sin(radians_of(y2 - y1) / 2), b = sin(radians_of(x2 - x1) / 2);
    double h = a * a + cos(radians_of(y1)) * cos(radians_of(y2)) * b * b;
    return 2 * asin(sqrt(h > 1 ? 1 : h));
}

static bool ring_within_cap(const geo_ring *ring, double x, double y, double radians) {
    for (size_t i = 0; i < ring->n; i++) {
        if (mql_geo_angle(ring->points[i].longitude, ring->points[i].latitude, x, y) > radians) {
            return false;
        }
    }
    return true;
}

/* A cap smaller than half the earth is convex, so that a shape is in it if its corners are. */
static bool shape_within_cap(const geo_shape *s, double x, double y, double radians) {
    bool within = ring_within_cap(&s->line, x, y, radians);
    for (size_t i = 0; i < s->polygons_n && within; i++) {
        within = ring_within_cap(&s->polygons[i].rings[0], x, y, radians);
    }
    return within;
}

bool mql_geometry_within_cap(const mql_geometry *g, double x, double y, double radians) {
    bool within = g->n > 0;
    for (size_t i = 0; i < g->n && within; i++) {
        within = shape_within_cap(&g->shapes[i], x, y, radians);
    }
    return within;
}

double mql_geometry_distance(const mql_geometry *g, double x, double y, uint64_t *steps) {
    double nearest = INFINITY;
    if (g->is_point) {
        return g->n ? mql_geo_angle(g->x, g->y, x, y) * MQL_EARTH_METRES : INFINITY;
    }
    geo_point point = geo_point_at(x, y);
    geo_shape at = {.kind = GEO_POINT, .line = {.points = &point, .n = 1}, .points_n = 1};
    for (size_t i = 0; i < g->n; i++) {
        double metres = geo_shape_distance(&at, &g->shapes[i], steps);
        nearest = metres < nearest ? metres : nearest;
    }
    return nearest;
}
