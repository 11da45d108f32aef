/* functions_spatial.c — GeoJSON values; geo.h defines shapes, geojson.h which are valid. An invalid shape gives undefined, except in
 * ST_ISVALID and ST_ISVALIDDETAILED. */
#include "geo/geojson.h"
#include "query/function_int.h"

typedef struct shape {
    slice bytes; /* the object that it was read from */
    bool valid;
    geo_shape geo;
} shape;

static slice object_of(const query_value *v) {
    return v->type == TYPE_OBJECT && !v->extended ? v->bytes : SLICE_EMPTY;
}

static shape *read_shape(query_context *c, arena *a, const query_value *v) {
    shape *s = arena_new(a, shape);
    slice reason;
    s->valid = function_spend(c, 10 + v->bytes.n / 4) && geojson_read(a, object_of(v), &s->geo, &reason);
    return s;
}

/* The second shape is mostly constant, so the first row's is cached. */
static const geo_shape *query_shape(query_context *c, const query_value *v) {
    const shape *last = c->prepared ? *c->prepared : NULL;
    if (!last || !slice_eq(last->bytes, v->bytes)) {
        bool keep = c->prepared && c->keep && !last;
        shape *made = read_shape(c, keep ? c->keep : c->arena, v);
        if (keep) {
            made->bytes = arena_copy(c->keep, v->bytes);
            *c->prepared = made;
        }
        last = made;
    }
    return last->valid ? &last->geo : NULL;
}

/* Reads both shapes of a call; false: not both are valid. */
static bool take_shapes(query_context *c, const query_value *args, const geo_shape **a_out, const geo_shape **b_out) {
    if (args[0].type != TYPE_OBJECT || args[1].type != TYPE_OBJECT) {
        return false;
    }
    const shape *a = read_shape(c, c->arena, &args[0]);
    *a_out = &a->geo;
    *b_out = a->valid ? query_shape(c, &args[1]) : NULL;
    return *b_out != NULL;
}

static query_value st_distance(query_context *c, const query_value *args, size_t n) {
    const geo_shape *a, *b;
    (void)n;
    if (!take_shapes(c, args, &a, &b)) {
        return value_undefined();
    }
    double distance = geo_shape_distance(a, b, c->steps);
    return isfinite(distance) && function_spend(c, 50) ? value_number(distance) : value_undefined();
}

static query_value st_within(query_context *c, const query_value *args, size_t n) {
    const geo_shape *a, *b;
    (void)n;
    if (!take_shapes(c, args, &a, &b)) {
        return value_undefined();
    }
    bool is = geo_within(c->arena, a, b, c->steps);
    return function_spend(c, 10) ? value_bool(is) : value_undefined();
}

static query_value st_intersects(query_context *c, const query_value *args, size_t n) {
    const geo_shape *a, *b;
    (void)n;
    if (!take_shapes(c, args, &a, &b)) {
        return value_undefined();
    }
    bool is = geo_intersects(a, b, c->steps);
    return function_spend(c, 10) ? value_bool(is) : value_undefined();
}

static query_value st_area(query_context *c, const query_value *args, size_t n) {
    geo_shape s;
    slice reason;
    (void)n;
    bool valid = args[0].type == TYPE_OBJECT && geojson_read(c->arena, object_of(&args[0]), &s, &reason);
    return valid && function_spend(c, s.points_n * 64) ? value_number(geo_area(&s)) : value_undefined();
}

static bool is_valid(query_context *c, const query_value *v, slice *reason_out) {
    geo_shape s;
    return function_spend(c, v->bytes.n / 4) && geojson_read(c->arena, object_of(v), &s, reason_out) &&
           geojson_check(c->arena, &s, reason_out, c->steps);
}

static query_value st_is_valid(query_context *c, const query_value *args, size_t n) {
    slice reason;
    (void)n;
    if (args[0].type != TYPE_OBJECT) {
        return value_undefined();
    }
    bool valid = is_valid(c, &args[0], &reason);
    return function_spend(c, 1) ? value_bool(valid) : value_undefined();
}

static query_value st_is_valid_detailed(query_context *c, const query_value *args, size_t n) {
    slice reason = SLICE_EMPTY;
    (void)n;
    if (args[0].type != TYPE_OBJECT) {
        return value_undefined();
    }
    bool valid = is_valid(c, &args[0], &reason);
    if (!function_spend(c, 1)) {
        return value_undefined();
    }
    slice names[] = {SLICE_LIT("valid"), SLICE_LIT("reason")};
    query_value values[] = {value_bool(valid), valid ? value_undefined() : value_string(reason)};
    return value_object(c->arena, names, values, 2);
}

const query_function query_functions_spatial[] = {
    {"ST_AREA", 1, 1, false, true, st_area},
    {"ST_DISTANCE", 2, 2, false, true, st_distance},
    {"ST_INTERSECTS", 2, 2, false, true, st_intersects},
    {"ST_ISVALID", 1, 1, false, true, st_is_valid},
    {"ST_ISVALIDDETAILED", 1, 1, false, true, st_is_valid_detailed},
    {"ST_WITHIN", 2, 2, false, true, st_within},
    {0},
};
