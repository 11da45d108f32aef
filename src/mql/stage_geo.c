/* stage_geo.c — $geoNear: documents by their distance from a place.
 *
 * The distance between points is that on a sphere of MongoDB's radius, in metres, if `near` is GeoJSON or `spherical` is set (then in
 * radians for coordinate pairs); otherwise it is the distance on a plane. The documents are gathered and sorted. */
#include <math.h>
#include <stdlib.h>

#include "mql/show.h"
#include "mql/stages.h"

static const double earth_radius_m = 6378100.0; /* MongoDB's */

typedef struct place {
    double x, y; /* longitude, latitude */
} place;

typedef struct near {
    place from;
    bool geojson, spherical;
    slice key, distance_field, include_locs, query; /* `key` is a dotted path; empty: the first place in the document */
    const mql_match *match;                         /* `query`, parsed; NULL: none */
    double least, most, multiplier;
} near;

/* {key: {$geoWithin: {$centerSphere: [[x, y], radians]}}}, a little wider than the distance. */
static slice within_distance(arena *a, const near *n, double radians) {
    buf out = buf_init_counted(BUF_NO_LIMIT, a->budget);
    mql_builder b = mql_build(&out);
    slice filter = SLICE_EMPTY;
    mql_open(&b, n->key, BSON_TYPE_DOCUMENT);
    mql_open(&b, SLICE_LIT("$geoWithin"), BSON_TYPE_DOCUMENT);
    mql_open(&b, SLICE_LIT("$centerSphere"), BSON_TYPE_ARRAY);
    mql_open_next(&b, BSON_TYPE_ARRAY);
    mql_add_next(&b, mql_double(a, n->from.x));
    mql_add_next(&b, mql_double(a, n->from.y));
    mql_close(&b);
    mql_add_next(&b, mql_double(a, radians * 1.000001 + 1e-9));
    mql_close(&b);
    mql_close(&b);
    mql_close(&b);
    bool kept = mql_keep(a, &b, &filter);
    buf_free(&out);
    return kept ? filter : SLICE_EMPTY;
}

err mql__geo_filter(arena *a, const mql__stage *s, slice *filter_out) {
    const near *n = s->detail;
    double radians = n->geojson ? n->most / earth_radius_m : n->most;
    bool bounded = n->key.n && (n->geojson || n->spherical) && radians < 1 && fabs(n->from.x) <= 180 && fabs(n->from.y) <= 90;
    return mql__both_filters(a, n->query, bounded ? within_distance(a, n, radians) : SLICE_EMPTY, filter_out);
}

/* ---- places ---- */

static bool read_pair(mql_value v, place *place_out) {
    doc_walk w;
    doc_element x, y;
    if (!doc_is_container(v.type) || !doc_walk_init(&w, v.bytes) || !doc_walk_next(&w, &x) || !doc_walk_next(&w, &y) ||
        !mql_is_number(mql_of(&x)) || !mql_is_number(mql_of(&y))) {
        return false;
    }
    *place_out = (place){mql_as_double(mql_of(&x)), mql_as_double(mql_of(&y))};
    return isfinite(place_out->x) && isfinite(place_out->y);
}

/* {type: "Point", coordinates: [x, y]}, or a pair. */
static bool read_place(mql_value v, bool *geojson_out, place *place_out) {
    mql_value type = mql_member(v, SLICE_LIT("type"));
    *geojson_out = v.type == BSON_TYPE_DOCUMENT && mql_is_text(type);
    if (*geojson_out) {
        return slice_eq(mql_as_text(type), SLICE_LIT("Point")) && read_pair(mql_member(v, SLICE_LIT("coordinates")), place_out);
    }
    return read_pair(v, place_out);
}

static double radians(double degrees) {
    return degrees * (M_PI / 180);
}

/* The angle between two places, by the haversine formula. */
static double angle(place a, place b) {
    double latitudes = sin(radians(b.y - a.y) / 2), longitudes = sin(radians(b.x - a.x) / 2);
    double h = latitudes * latitudes + cos(radians(a.y)) * cos(radians(b.y)) * longitudes * longitudes;
    return 2 * asin(sqrt(h < 1 ? h : 1));
}

static double distance(const near *n, place to) {
    if (n->geojson) {
        return angle(n->from, to) * earth_radius_m;
    }
    return n->spherical ? angle(n->from, to) : hypot(to.x - n->from.x, to.y - n->from.y);
}

/* ---- parsing ---- */

static err parse_number(op *o, const doc_element *e, double *number_out) {
    *number_out = mql_is_number(mql_of(e)) ? mql_as_double(mql_of(e)) : -1;
    return *number_out >= 0 ? OK
                            : mql_fail(o, 2, "$geoNear's %.*s must be a nonnegative number, found %s", slice_shown(e->key), e->key.p,
                                       mql__show(o->arena, mql_of(e)));
}

static err parse_text(op *o, const doc_element *e, slice *text_out) {
    if (e->type != BSON_TYPE_UTF8) {
        return mql_fail(o, 14, "$geoNear parameter '%.*s' must be of type string but found type: %s", slice_shown(e->key), e->key.p,
                        mql_type_name(e->type));
    }
    *text_out = doc_element_text(e);
    return mql__check_path(o, *text_out, 16410);
}

static err parse_option(mql_scope *s, near *n, const doc_element *e, bool *near_seen) {
    op *o = s->op;
    mql_value v = mql_of(e);
    if (slice_eq(e->key, SLICE_LIT("near"))) {
        *near_seen = read_place(v, &n->geojson, &n->from);
        return *near_seen ? OK : mql_fail(o, 5860401, "$geoNear requires near argument to be an object or array of two numbers");
    }
    if (slice_eq(e->key, SLICE_LIT("distanceField"))) {
        return parse_text(o, e, &n->distance_field);
    }
    if (slice_eq(e->key, SLICE_LIT("includeLocs"))) {
        return parse_text(o, e, &n->include_locs);
    }
    if (slice_eq(e->key, SLICE_LIT("key"))) {
        return parse_text(o, e, &n->key);
    }
    if (slice_eq(e->key, SLICE_LIT("minDistance"))) {
        return parse_number(o, e, &n->least);
    }
    if (slice_eq(e->key, SLICE_LIT("maxDistance"))) {
        return parse_number(o, e, &n->most);
    }
    if (slice_eq(e->key, SLICE_LIT("distanceMultiplier"))) {
        return parse_number(o, e, &n->multiplier);
    }
    if (slice_eq(e->key, SLICE_LIT("spherical"))) {
        n->spherical = mql_truth(v);
        return OK;
    }
    if (slice_eq(e->key, SLICE_LIT("query")) && e->type == BSON_TYPE_DOCUMENT) {
        n->query = e->value;
        return mql_match_parse(s, e->value, &n->match);
    }
    return slice_eq(e->key, SLICE_LIT("uniqueDocs"))
               ? OK
               : mql_fail(o, 40415, "BSON field '$geoNear.%.*s' is an unknown field.", slice_shown(e->key), e->key.p);
}

static err parse_near(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    near *n = arena_new(o->arena, near);
    bool near_seen = false;
    doc_walk w;
    doc_element e;
    *n = (near){.most = INFINITY, .multiplier = 1};
    TRY(mql__is_document(o, argument, 10065, "invalid parameter: expected an object ($geoNear)"));
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        TRY(parse_option(p->scope, n, &e, &near_seen));
    }
    if (!near_seen) {
        return mql_fail(o, 5860400, "$geoNear requires a 'near' argument");
    }
    return mql__add_stage(p, kind, argument, n);
}

/* ---- at work ---- */

typedef struct found {
    double distance;
    slice document;
    uint64_t ordinal;
} found;

typedef struct near_run {
    bool started, sorted;
    arena memory;
    found *all;
    size_t n, room, given;
} near_run;

/* Finds the place of a document: at the key, or the first member that is a place. */
static mql_value place_of(const near *n, mql_value document, place *place_out) {
    bool geojson;
    doc_walk w;
    doc_element e;
    if (n->key.n) {
        mql_value v = mql__value_at(document, n->key);
        return read_place(v, &geojson, place_out) ? v : mql_missing();
    }
    for (doc_walk_init(&w, document.bytes); doc_walk_next(&w, &e);) {
        if (read_place(mql_of(&e), &geojson, place_out)) {
            return mql_of(&e);
        }
    }
    return mql_missing();
}

static err take(mql__runner *at, near_run *s, slice document) {
    const near *n = at->stage->detail;
    mql_run *r = mql__run_of(at);
    place to;
    bool matches = true;
    r->root = mql_document(document);
    TRY(n->match ? mql_matches(r, n->match, &matches, NULL) : OK);
    if (!matches) {
        return OK;
    }
    mql_value where = place_of(n, mql_document(document), &to);
    double far = mql_is_missing(where) ? -1 : distance(n, to);
    TRY(mql_pay(r, 16 + document.n / 64));
    if (!(far >= n->least && far <= n->most)) {
        return OK;
    }
    if (n->include_locs.n) {
        TRY(mql__document_with(r, document, n->include_locs, where, &document));
    }
    if (n->distance_field.n) {
        TRY(mql__document_with(r, document, n->distance_field, mql_double(r->arena, far * n->multiplier), &document));
    }
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        TRY(mql__arena_room(&s->memory, room * sizeof *s->all));
        found *more = arena_array(&s->memory, found, room);
        if (s->n) {
            memcpy(more, s->all, s->n * sizeof *more);
        }
        s->all = more;
        s->room = room;
    }
    TRY(mql__arena_room(&s->memory, document.n));
    s->all[s->n] = (found){far, arena_copy(&s->memory, document), s->n};
    s->n++;
    return mql__arena_error(&s->memory);
}

static int compare_found(const void *a, const void *b) {
    const found *x = a, *y = b;
    return x->distance != y->distance ? (x->distance > y->distance) - (x->distance < y->distance)
                                      : (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static err next_near(mql__runner *at, mql__status *status_out, slice *document_out) {
    near_run *s = at->state;
    arena *a = mql__run_of(at)->arena;
    if (!s->started) {
        s->started = true;
        s->memory = arena_init_counted(at->flow->budget);
    }
    while (!s->sorted) {
        arena_mark mark = arena_marked(a);
        TRY(mql__pull(at, status_out, document_out));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        s->sorted = *status_out == MQL__END;
        if (!s->sorted) {
            TRY(take(at, s, *document_out));
        } else if (s->n) {
            TRY(mql_pay(mql__run_of(at), 16 * s->n));
            qsort(s->all, s->n, sizeof *s->all, compare_found);
        }
        arena_release(a, mark);
    }
    *status_out = s->given < s->n ? MQL__DOCUMENT : MQL__END;
    if (*status_out == MQL__DOCUMENT) {
        *document_out = s->all[s->given++].document;
    }
    return OK;
}

static void end_near(mql__runner *at) {
    arena_free(&((near_run *)at->state)->memory);
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$geoNear"), MQL__STAGE_SERVICE | MQL__STAGE_FIRST | MQL__STAGE_NO_FACET, parse_near, .next = next_near,
     .state_bytes = sizeof(near_run), .end = end_near},
};
const mql__stage_kinds mql__geo_stages = {rows, 1};
