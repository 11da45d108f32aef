/* match_geo.c — $geoWithin, $geoIntersects, $near, $nearSphere.
 *
 * $box, $polygon and $center are shapes in a plane, and test points only; $geometry and $centerSphere are on the globe. $near is a
 * predicate here: it tests whether a place is between the minimum and the maximum distance. The caller orders by
 * mql_near_distance. */
#include <math.h>

#include "mql/geometry.h"
#include "mql/match_int.h"

typedef enum area_kind { AREA_GEOMETRY, AREA_BOX, AREA_POLYGON, AREA_CENTER, AREA_CENTER_SPHERE } area_kind;

typedef struct pair {
    double x, y;
} pair;

typedef struct area {
    area_kind kind;
    mql_geometry geometry; /* AREA_GEOMETRY */
    pair *points;          /* AREA_BOX: two corners; AREA_POLYGON: all corners; centres: one */
    size_t n;
    double radius; /* AREA_CENTER: in the plane's unit; AREA_CENTER_SPHERE: radians */
} area;

enum { PARSE_STEPS = 100 * 1000 * 1000, COVER_STEPS = 1000 * 1000 };

/* ---- areas ---- */

static err read_pair(mql__filter_parser *p, mql_value v, pair *pair_out) {
    return mql_pair_read(v, &pair_out->x, &pair_out->y) ? OK : mql_fail(mql__op(p), 2, "Point must be an array or object of two numbers");
}

static err parse_geometry(mql__filter_parser *p, mql_value v, area *a) {
    uint64_t steps = PARSE_STEPS;
    slice reason;
    if (v.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(mql__op(p), 2, "$geometry must be an object");
    }
    return mql_geometry_read(mql__arena(p), v, &a->geometry, &reason, &steps)
               ? OK
               : mql_fail(mql__op(p), 2, "unknown or invalid GeoJSON: %.*s", (int)reason.n, reason.p);
}

static err parse_points(mql__filter_parser *p, mql_value v, area *a, size_t least, size_t most) {
    doc_walk w;
    doc_element e;
    size_t n = mql_length(v);
    if (!doc_is_container(v.type) || n < least || n > most) {
        return mql_fail(mql__op(p), 2, "%s", a->kind == AREA_BOX ? "$box needs two points" : "Polygon must have at least 3 points");
    }
    a->points = mql__new_array(p, pair, n);
    if (!a->points) {
        return mql__room(p);
    }
    for (doc_walk_init(&w, v.bytes); doc_walk_next(&w, &e); a->n++) {
        TRY(read_pair(p, mql_of(&e), &a->points[a->n]));
    }
    return OK;
}

static err parse_box(mql__filter_parser *p, mql_value v, area *a) {
    return parse_points(p, v, a, 2, 2);
}

static err parse_polygon(mql__filter_parser *p, mql_value v, area *a) {
    return parse_points(p, v, a, 3, 1000000);
}

/* [[x, y], radius] */
static err parse_center(mql__filter_parser *p, mql_value v, area *a) {
    mql_value radius = mql_element_at(v, 1);
    a->points = arena_new(mql__arena(p), pair);
    a->n = 1;
    TRY(read_pair(p, mql_element_at(v, 0), a->points));
    if (!mql_is_number(radius) || !(mql_as_double(radius) >= 0)) {
        return mql_fail(mql__op(p), 2, "radius must be a non-negative number");
    }
    a->radius = mql_as_double(radius);
    if (a->kind == AREA_CENTER_SPHERE && (fabs(a->points->x) > 180 || fabs(a->points->y) > 90)) {
        return mql_fail(mql__op(p), 2, "Longitude/latitude is out of bounds, lng: %g lat: %g", a->points->x, a->points->y);
    }
    return OK;
}

static const struct {
    slice name;
    area_kind kind;
    err (*parse)(mql__filter_parser *p, mql_value v, area *a);
    bool service;
} areas[] = {
    {{"$geometry", 9}, AREA_GEOMETRY, parse_geometry, true},
    {{"$box", 4}, AREA_BOX, parse_box, false},
    {{"$polygon", 8}, AREA_POLYGON, parse_polygon, false},
    {{"$center", 7}, AREA_CENTER, parse_center, false},
    {{"$centerSphere", 13}, AREA_CENTER_SPHERE, parse_center, false},
};

slice mql__shape_name_at(size_t position, bool *service_out) {
    bool there = position < sizeof areas / sizeof *areas;
    *service_out = there && areas[position].service;
    return there ? areas[position].name : SLICE_EMPTY;
}

static err parse_area(mql__filter_parser *p, const mql__operand *of, area *a) {
    doc_walk w;
    doc_element e;
    slice shown = mql__shown(p, of->e);
    if (of->e->type != BSON_TYPE_DOCUMENT || !doc_walk_init(&w, of->e->value) || !doc_walk_next(&w, &e)) {
        return mql_fail(mql__op(p), 2, "%.*s not supported with provided geometry: %.*s", slice_shown(of->e->key), of->e->key.p,
                        (int)shown.n, shown.p);
    }
    for (size_t i = 0; i < sizeof areas / sizeof *areas; i++) {
        if (slice_eq(areas[i].name, e.key)) {
            a->kind = areas[i].kind;
            return p->scope->service && !areas[i].service
                       ? mql_fail(mql__op(p), 115, "operator %.*s is not supported", slice_shown(e.key), e.key.p)
                       : areas[i].parse(p, mql_of(&e), a);
        }
    }
    return mql_fail(mql__op(p), 2, "unknown geo specifier: %.*s", (int)shown.n, shown.p);
}

/* ---- $geoWithin, $geoIntersects ---- */

err mql__parse_geo_within(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    area *a = arena_new(mql__arena(p), area);
    TRY(parse_area(p, of, a));
    bool has_inside = a->kind != AREA_GEOMETRY;
    for (size_t i = 0; i < a->geometry.n && !has_inside; i++) {
        has_inside = a->geometry.shapes[i].kind == GEO_POLYGON;
    }
    if (!has_inside) {
        slice shown = mql__shown(p, of->e);
        return mql_fail(mql__op(p), 2, "$geoWithin not supported with provided geometry: %.*s", (int)shown.n, shown.p);
    }
    *node_out = mql__node(p, MQL_GEO_WITHIN, of->path, mql_of(of->e));
    (*node_out)->detail = a;
    return OK;
}

err mql__parse_geo_intersects(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    area *a = arena_new(mql__arena(p), area);
    TRY(parse_area(p, of, a));
    if (a->kind != AREA_GEOMETRY) {
        slice shown = mql__shown(p, of->e);
        return mql_fail(mql__op(p), 2, "$geoIntersects not supported with provided geometry: %.*s", (int)shown.n, shown.p);
    }
    *node_out = mql__node(p, MQL_GEO_INTERSECTS, of->path, mql_of(of->e));
    (*node_out)->detail = a;
    return OK;
}

static bool in_box(const area *a, double x, double y) {
    const pair *c = a->points;
    return x >= fmin(c[0].x, c[1].x) && x <= fmax(c[0].x, c[1].x) && y >= fmin(c[0].y, c[1].y) && y <= fmax(c[0].y, c[1].y);
}

static bool on_segment(pair a, pair b, double x, double y) {
    double across = (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x);
    return across == 0 && x >= fmin(a.x, b.x) && x <= fmax(a.x, b.x) && y >= fmin(a.y, b.y) && y <= fmax(a.y, b.y);
}

/* Counts the edges that a ray to the right crosses; the border is inside. */
static bool in_polygon(const area *a, double x, double y) {
    bool inside = false;
    for (size_t i = 0, j = a->n - 1; i < a->n; j = i++) {
        pair from = a->points[j], to = a->points[i];
        if (on_segment(from, to, x, y)) {
            return true;
        }
        if ((from.y > y) != (to.y > y) && x < (to.x - from.x) * (y - from.y) / (to.y - from.y) + from.x) {
            inside = !inside;
        }
    }
    return inside;
}

static bool in_area(mql_run *r, const area *a, const mql_geometry *g) {
    switch (a->kind) {
    case AREA_GEOMETRY:
        return mql_geometry_within(r->arena, g, &a->geometry, &r->steps);
    case AREA_BOX:
        return g->is_point && in_box(a, g->x, g->y);
    case AREA_POLYGON:
        return g->is_point && in_polygon(a, g->x, g->y);
    case AREA_CENTER:
        return g->is_point && hypot(g->x - a->points->x, g->y - a->points->y) <= a->radius;
    default:
        return mql_geometry_within_cap(g, a->points->x, a->points->y, a->radius);
    }
}

static err read_stored(mql_run *r, mql_value v, mql_geometry *g, bool *read_out) {
    slice reason;
    TRY(mql_pay(r, 20 + v.bytes.n));
    *read_out = doc_is_container(v.type) && mql_geometry_read(r->arena, v, g, &reason, &r->steps);
    return r->steps ? OK : E_QUERY_TOO_LONG;
}

err mql__test_geo(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    arena_mark mark = arena_marked(t->run->arena);
    const area *a = n->detail;
    mql_geometry g;
    bool read = false;
    err e = read_stored(t->run, v, &g, &read);
    if (e == OK && read) {
        e = mql_pay(t->run, a->n);
        *matches_out = e != OK                     ? false
                       : n->kind == MQL_GEO_WITHIN ? in_area(t->run, a, &g)
                                                   : mql_geometry_intersects(&g, &a->geometry, &t->run->steps);
    }
    arena_release(t->run->arena, mark);
    return e == OK && !t->run->steps ? E_QUERY_TOO_LONG : e;
}

/* ---- $near, $nearSphere ---- */

typedef enum near_unit { NEAR_FLAT, NEAR_RADIANS, NEAR_METRES } near_unit;

typedef struct near {
    pair from;
    near_unit unit;
    double least, most;
} near;

static err parse_distance(mql__filter_parser *p, slice siblings, slice name, double *distance) {
    mql_value v = mql_member(mql_document(siblings), name);
    if (mql_is_missing(v)) {
        return OK;
    }
    if (!mql_is_number(v)) {
        return mql_fail(mql__op(p), 2, "%.*s must be a number", (int)name.n, name.p);
    }
    *distance = mql_as_double(v);
    return *distance >= 0 ? OK : mql_fail(mql__op(p), 2, "%.*s must be non-negative", (int)name.n, name.p);
}

/* {$near: {$geometry: …, $maxDistance: …}}, or {$near: [x, y], $maxDistance: …} with the distances beside it. */
static err parse_near(mql__filter_parser *p, const mql__operand *of, near_unit unit_of_pairs, mql_node **node_out) {
    near *n = arena_new(mql__arena(p), near);
    mql_value operand = mql_of(of->e), geometry = mql_member(operand, SLICE_LIT("$geometry"));
    area a = {0};
    bool is_geojson = !mql_is_missing(geometry);
    slice distances = is_geojson ? operand.bytes : of->siblings;
    *n = (near){.unit = is_geojson ? NEAR_METRES : unit_of_pairs, .least = 0, .most = INFINITY};
    if (!doc_is_container(operand.type)) {
        return mql_fail(mql__op(p), 2, "near must be first in: { %.*s: ... }", slice_shown(of->e->key), of->e->key.p);
    }
    if (is_geojson) {
        TRY(parse_geometry(p, geometry, &a));
        if (!a.geometry.is_point) {
            return mql_fail(mql__op(p), 2, "$near requires a point, given a geometry of another type");
        }
        n->from = (pair){a.geometry.x, a.geometry.y};
    } else if (!mql_pair_read(operand, &n->from.x, &n->from.y)) {
        return mql_fail(mql__op(p), 2, "invalid point provided to geo near query: %.*s", (int)mql__shown(p, of->e).n,
                        mql__shown(p, of->e).p);
    }
    TRY(parse_distance(p, distances, SLICE_LIT("$minDistance"), &n->least));
    TRY(parse_distance(p, distances, SLICE_LIT("$maxDistance"), &n->most));
    *node_out = mql__node(p, MQL_NEAR, of->path, operand);
    (*node_out)->detail = n;
    return OK;
}

err mql__parse_near(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_near(p, of, NEAR_FLAT, node_out);
}

err mql__parse_near_sphere(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    return parse_near(p, of, NEAR_RADIANS, node_out);
}

/* $maxDistance and $minDistance belong to $near, which reads them. */
err mql__parse_near_distance(mql__filter_parser *p, const mql__operand *of, mql_node **node_out) {
    mql_value all = mql_document(of->siblings);
    *node_out = NULL;
    if (mql_is_missing(mql_member(all, SLICE_LIT("$near"))) && mql_is_missing(mql_member(all, SLICE_LIT("$nearSphere")))) {
        return mql_fail(mql__op(p), 2, "%.*s needs a $near or $nearSphere", slice_shown(of->e->key), of->e->key.p);
    }
    return OK;
}

double mql_near_metres(const mql_node *near_node) {
    near_unit unit = ((const near *)near_node->detail)->unit;
    return unit == NEAR_METRES ? 1 : unit == NEAR_RADIANS ? MQL_EARTH_METRES : 0;
}

static double distance_of(mql_run *r, const near *n, const mql_geometry *g) {
    if (n->unit == NEAR_FLAT) {
        return g->is_point ? hypot(g->x - n->from.x, g->y - n->from.y) : INFINITY;
    }
    double metres = mql_geometry_distance(g, n->from.x, n->from.y, &r->steps);
    return n->unit == NEAR_METRES ? metres : metres / MQL_EARTH_METRES;
}

static err measure(mql_run *r, const near *n, mql_value v, double *distance_out) {
    arena_mark mark = arena_marked(r->arena);
    mql_geometry g;
    bool read = false;
    err e = read_stored(r, v, &g, &read);
    *distance_out = e == OK && read ? distance_of(r, n, &g) : INFINITY;
    arena_release(r->arena, mark);
    return e == OK && !r->steps ? E_QUERY_TOO_LONG : e;
}

err mql__test_near(const mql__test *t, const mql_node *n, mql_value v, bool *matches_out) {
    const near *of = n->detail;
    double distance;
    TRY(measure(t->run, of, v, &distance));
    *matches_out = isfinite(distance) && distance >= of->least && distance <= of->most;
    return OK;
}

/* ---- distances for ordering ---- */

typedef struct nearest {
    mql__visit visit;
    const near *near;
    double distance;
} nearest;

static err nearer(mql__visit *v, mql_value value, int64_t position, bool *stop_out) {
    nearest *n = (nearest *)v;
    double distance;
    (void)position;
    (void)stop_out;
    TRY(measure(v->run, n->near, value, &distance));
    if (distance >= n->near->least && distance <= n->near->most) {
        n->distance = fmin(n->distance, distance);
    }
    return OK;
}

err mql_near_distance(mql_run *r, const mql_node *near_node, mql_value document, double *distance_out) {
    nearest n = {
        .visit = {.run = r, .parts = near_node->parts, .parts_n = near_node->parts_n, .found = nearer},
        .near = near_node->detail,
        .distance = INFINITY,
    };
    bool stopped;
    err e = mql__visit_path(&n.visit, document, &stopped);
    *distance_out = n.distance;
    return e;
}

/* ---- planning ---- */

typedef struct covering {
    geo_cell_span *spans;
    size_t n;
    bool whole; /* there are too many: the earth is not divided */
} covering;

static void cover(covering *c, const geo_shape *shape, double angle) {
    uint64_t steps = COVER_STEPS;
    if (c->n + GEO_CELL_SPANS_MAX > MQL_GEO_SPANS_MAX) {
        c->whole = true;
        return;
    }
    c->n += geo_cells_near(shape, angle, &steps, c->spans + c->n);
}

/* The unit sphere of geo/ is the ellipsoid's: an angle there differs by up to a third of a per cent from the globe's. */
static double wider(double radians) {
    return radians * 1.01 + 1e-9;
}

static void cover_cap(covering *c, pair at, double radians) {
    geo_point point = geo_point_at(at.x, at.y);
    geo_shape shape = {.kind = GEO_POINT, .line = {.points = &point, .n = 1}, .points_n = 1};
    if (radians >= M_PI / 2 || fabs(at.x) > 180 || fabs(at.y) > 90) {
        c->whole = true;
        return;
    }
    cover(c, &shape, wider(radians));
}

static void cover_area(covering *c, const area *a) {
    if (a->kind == AREA_CENTER_SPHERE) {
        cover_cap(c, *a->points, a->radius);
        return;
    }
    c->whole = a->kind != AREA_GEOMETRY;
    for (size_t i = 0; i < a->geometry.n && !c->whole; i++) {
        cover(c, &a->geometry.shapes[i], 0);
    }
}

static void cover_near(covering *c, const near *n, double most) {
    double far = fmin(n->most, most);
    if (n->unit == NEAR_FLAT) {
        c->whole = true;
        return;
    }
    cover_cap(c, n->from, n->unit == NEAR_METRES ? fmax(far / MQL_EARTH_METRES, geo_angle_of(far)) : far);
}

size_t mql_geo_cells(arena *a, const mql_node *n, double most, const geo_cell_span **spans_out) {
    covering c = {.spans = arena_array(a, geo_cell_span, MQL_GEO_SPANS_MAX)};
    if (n->kind == MQL_NEAR) {
        cover_near(&c, n->detail, most);
    } else {
        cover_area(&c, n->detail);
    }
    *spans_out = c.spans;
    return c.whole ? 0 : c.n;
}
