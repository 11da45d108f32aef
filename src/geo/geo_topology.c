/* geo_topology.c — touching, crossing and containing. */
#include <stdlib.h>

#include "geo/geo_int.h"

/* ---- arcs ---- */

static bool is_on(const geo_edge *e, geo_vector p) {
    if (fabs(geo_dot(e->normal, p)) > GEO_TOLERANCE) {
        return false;
    }
    double angle = atan2(geo_dot(p, geo_cross(e->normal, e->from->v)), geo_dot(p, e->from->v));
    return angle >= -GEO_TOLERANCE && angle <= e->angle + GEO_TOLERANCE;
}

/* Quick check: no point of an arc is farther from the middle of its chord than its ends are. */
static bool are_apart(const geo_edge *a, const geo_edge *b) {
    return geo_length(geo_subtract(a->middle, b->middle)) > a->reach + b->reach + 2 * GEO_TOLERANCE;
}

/* Whether two arcs, given by their ends, cross at a point that is not an end. */
static bool cross(geo_vector a, geo_vector b, geo_vector c, geo_vector d) {
    geo_vector ab = geo_cross(a, b), cd = geo_cross(c, d);
    double acb = -geo_dot(ab, c), bda = geo_dot(ab, d), cbd = -geo_dot(cd, b), dac = geo_dot(cd, a);
    return acb * bda > 0 && acb * cbd > 0 && acb * dac > 0;
}

static bool meet(const geo_edge *a, const geo_edge *b) {
    return !are_apart(a, b) && (cross(a->from->v, a->to->v, b->from->v, b->to->v) || is_on(a, b->from->v) || is_on(a, b->to->v) ||
                                is_on(b, a->from->v) || is_on(b, a->to->v));
}

/* ---- rings and polygons ---- */

typedef enum place { PLACE_OUTSIDE, PLACE_BORDER, PLACE_INSIDE } place;

/* Counts how often the arc from p to a point m of edge `skip` crosses the other edges; -1: it passes too near a corner to decide. */
static int crossings(const geo_ring *ring, size_t skip, geo_vector p, geo_vector m) {
    geo_vector normal = geo_unit(geo_cross(p, m));
    int n = 0;
    for (size_t i = 0; i < ring->edges_n; i++) {
        const geo_edge *e = &ring->edges[i];
        if (fabs(geo_dot(normal, e->from->v)) < 1e-15) {
            return -1;
        }
        n += i != skip && cross(p, m, e->from->v, e->to->v);
    }
    return n;
}

/* Whether p, which is not on the ring, is on its left. Counts the crossings of an arc from p to the middle of an edge: if that arc arrives
 * from the left after an even number of crossings, p is on the left. If the edge lies in line with p, or the arc passes a corner, another
 * edge is tried. */
static bool is_left(const geo_ring *ring, geo_vector p) {
    enum { TRIES = 24 };
    for (size_t t = 0; t < TRIES; t++) {
        size_t i = ring->edges_n > TRIES ? t * ring->edges_n / TRIES : t % ring->edges_n;
        const geo_edge *e = &ring->edges[i];
        geo_vector m = geo_along(e, e->angle * (0.5 + 0.01 * (double)(t / ring->edges_n)));
        double side = geo_dot(e->normal, p);
        int n = fabs(side) < 1e-15 || geo_length(geo_add(p, m)) < 1e-9 ? -1 : crossings(ring, i, p, m);
        if (n >= 0) {
            return (side > 0) == (n % 2 == 0);
        }
    }
    return false;
}

static bool on_border(const geo_polygon *polygon, geo_vector p) {
    for (size_t i = 0; i < polygon->n; i++) {
        for (size_t j = 0; j < polygon->rings[i].edges_n; j++) {
            if (is_on(&polygon->rings[i].edges[j], p)) {
                return true;
            }
        }
    }
    return false;
}

static place locate_in(const geo_polygon *polygon, geo_vector p) {
    if (on_border(polygon, p)) {
        return PLACE_BORDER;
    }
    for (size_t i = 0; i < polygon->n; i++) {
        if (!is_left(&polygon->rings[i], p)) {
            return PLACE_OUTSIDE;
        }
    }
    return PLACE_INSIDE;
}

/* Locates p in any shape. The ends of a line are its border; a point is its own inside. */
static place locate(const geo_shape *s, geo_vector p) {
    place best = PLACE_OUTSIDE;
    for (size_t i = 0; i < s->polygons_n && best != PLACE_INSIDE; i++) {
        place each = locate_in(&s->polygons[i], p);
        best = each > best ? each : best;
    }
    const geo_ring *line = &s->line;
    if (s->kind == GEO_POINT) {
        return geo_length(geo_subtract(line->points[0].v, p)) <= GEO_TOLERANCE ? PLACE_INSIDE : PLACE_OUTSIDE;
    }
    for (size_t i = 0; s->kind == GEO_LINE && i < line->edges_n && best == PLACE_OUTSIDE; i++) {
        best = is_on(&line->edges[i], p) ? PLACE_INSIDE : PLACE_OUTSIDE;
    }
    if (s->kind == GEO_LINE && best == PLACE_INSIDE) {
        bool closed = geo_length(geo_subtract(line->points[0].v, line->points[line->n - 1].v)) <= GEO_TOLERANCE;
        bool end = geo_length(geo_subtract(line->points[0].v, p)) <= GEO_TOLERANCE ||
                   geo_length(geo_subtract(line->points[line->n - 1].v, p)) <= GEO_TOLERANCE;
        best = end && !closed ? PLACE_BORDER : PLACE_INSIDE;
    }
    return best;
}

/* ---- intersection ---- */

static bool edges_meet(const geo_shape *a, const geo_shape *b, uint64_t *steps) {
    const geo_ring *ra, *rb;
    for (size_t i = 0; (ra = geo__ring(a, i)); i++) {
        for (size_t j = 0; (rb = geo__ring(b, j)); j++) {
            for (size_t k = 0; k < ra->edges_n; k++) {
                if (!geo__spend(steps, 1 + rb->edges_n / 2)) {
                    return false;
                }
                for (size_t l = 0; l < rb->edges_n; l++) {
                    if (meet(&ra->edges[k], &rb->edges[l])) {
                        return true;
                    }
                }
            }
        }
    }
    return false;
}

/* One point of each ring is enough, since no edges meet. */
static bool a_point_is_in(const geo_shape *a, const geo_shape *b, uint64_t *steps) {
    const geo_ring *ring;
    for (size_t i = 0; (ring = geo__ring(a, i)); i++) {
        if (!geo__spend(steps, b->points_n * 2)) {
            return false;
        }
        if (locate(b, ring->points[0].v) != PLACE_OUTSIDE) {
            return true;
        }
    }
    return false;
}

bool geo_intersects(const geo_shape *a, const geo_shape *b, uint64_t *steps) {
    return edges_meet(a, b, steps) || a_point_is_in(a, b, steps) || a_point_is_in(b, a, steps);
}

/* ---- distance to a cap ---- */

/* Whether an edge comes within a chord's length of a place. */
static bool edge_reaches(const geo_edge *e, geo_vector place, double chord) {
    if (geo_length(geo_subtract(e->middle, place)) > e->reach + chord) {
        return false;
    }
    return geo_length(geo_subtract(geo_along(e, geo__nearest(e, place)), place)) <= chord;
}

geo_reach geo_reaches(const geo_shape *s, geo_vector place, double angle, uint64_t *steps) {
    const double margin = 1e-10; /* less than a millimetre */
    const geo_ring *ring;
    double chord = angle >= M_PI ? 2 : 2 * sin(angle / 2);
    chord += margin;
    if (s->kind == GEO_POINT) {
        return geo_length(geo_subtract(s->line.points[0].v, place)) <= chord ? GEO_NEAR : GEO_APART;
    }
    for (size_t i = 0; (ring = geo__ring(s, i)); i++) {
        if (!geo__spend(steps, ring->edges_n)) {
            return GEO_NEAR;
        }
        for (size_t j = 0; j < ring->edges_n; j++) {
            if (edge_reaches(&ring->edges[j], place, chord)) {
                return GEO_NEAR;
            }
        }
    }
    return s->kind == GEO_POLYGON && locate(s, place) != PLACE_OUTSIDE ? GEO_AROUND : GEO_APART;
}

/* ---- within ---- */

static int by_angle(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_angle(double *angles, size_t *n, const geo_edge *e, geo_vector p) {
    angles[(*n)++] = fmin(e->angle, fmax(0, atan2(geo_dot(p, geo_cross(e->normal, e->from->v)), geo_dot(p, e->from->v))));
}

/* The angles at which the edges of a shape divide an edge into pieces, sorted, both ends included. Up to 3 for each edge of the shape. */
static size_t cut(double *angles, const geo_edge *e, const geo_shape *by) {
    const geo_ring *ring;
    size_t n = 0;
    angles[n++] = 0;
    angles[n++] = e->angle;
    for (size_t i = 0; (ring = geo__ring(by, i)); i++) {
        for (size_t j = 0; j < ring->edges_n; j++) {
            const geo_edge *other = &ring->edges[j];
            if (are_apart(e, other)) {
                continue;
            }
            if (is_on(e, other->from->v)) {
                add_angle(angles, &n, e, other->from->v);
            }
            if (is_on(e, other->to->v)) {
                add_angle(angles, &n, e, other->to->v);
            }
            if (cross(e->from->v, e->to->v, other->from->v, other->to->v)) {
                geo_vector x = geo_unit(geo_cross(e->normal, other->normal));
                add_angle(angles, &n, e, geo_dot(x, e->middle) >= 0 ? x : geo_scale(x, -1));
            }
        }
    }
    qsort(angles, n, sizeof *angles, by_angle);
    return n;
}

typedef struct pieces {
    bool any[PLACE_INSIDE + 1]; /* some piece lies at this place */
} pieces;

/* Divides the border of `of` by that of `in`, and records where its pieces lie in `in`. False: the steps ran out. */
static bool place_border(arena *arena, const geo_shape *of, const geo_shape *in, pieces *p, uint64_t *steps) {
    const geo_ring *ring;
    double *angles = arena_alloc(arena, (3 * in->points_n + 8) * sizeof *angles);
    *p = (pieces){0};
    for (size_t i = 0; (ring = geo__ring(of, i)); i++) {
        for (size_t j = 0; j < ring->edges_n; j++) {
            size_t n = cut(angles, &ring->edges[j], in);
            if (!geo__spend(steps, n * (2 + in->points_n))) {
                return false;
            }
            for (size_t k = 0; k + 1 < n; k++) {
                if (angles[k + 1] - angles[k] > 4 * GEO_TOLERANCE) {
                    p->any[locate(in, geo_along(&ring->edges[j], (angles[k] + angles[k + 1]) / 2))] = true;
                }
            }
        }
    }
    return true;
}

/* Finds a point inside a polygon: a little to the left of an edge. */
static bool inner_point(const geo_polygon *polygon, geo_vector *point_out) {
    for (double part = 1e-2; part > 1e-7; part /= 10) {
        for (size_t i = 0; i < polygon->rings[0].edges_n; i++) {
            const geo_edge *e = &polygon->rings[0].edges[i];
            *point_out = geo_unit(geo_add(geo_along(e, e->angle * 0.47), geo_scale(e->normal, part * e->reach)));
            if (locate_in(polygon, *point_out) == PLACE_INSIDE) {
                return true;
            }
        }
    }
    return false;
}

static bool polygons_within(arena *arena, const geo_shape *a, const geo_shape *b, uint64_t *steps) {
    pieces of_a, of_b;
    if (!place_border(arena, a, b, &of_a, steps) || of_a.any[PLACE_OUTSIDE] || !place_border(arena, b, a, &of_b, steps) ||
        of_b.any[PLACE_INSIDE]) {
        return false;
    }
    for (size_t i = 0; i < a->polygons_n; i++) {
        geo_vector p;
        if (!geo__spend(steps, a->points_n + b->points_n) || !inner_point(&a->polygons[i], &p) || locate(b, p) == PLACE_OUTSIDE) {
            return false;
        }
    }
    return a->polygons_n > 0;
}

bool geo_within(arena *arena, const geo_shape *a, const geo_shape *b, uint64_t *steps) {
    pieces of_a;
    if (a->kind == GEO_POINT) {
        return geo__spend(steps, b->points_n * 2) && locate(b, a->line.points[0].v) == PLACE_INSIDE;
    }
    if (a->kind == GEO_POLYGON) {
        return b->kind == GEO_POLYGON && polygons_within(arena, a, b, steps);
    }
    return b->kind != GEO_POINT && place_border(arena, a, b, &of_a, steps) && !of_a.any[PLACE_OUTSIDE] && of_a.any[PLACE_INSIDE];
}

/* ---- validity ---- */

/* For neighbouring edges, which share a corner: whether they overlap. */
static bool overlap(const geo_edge *a, const geo_edge *b) {
    return is_on(a, b->to->v) || is_on(b, a->from->v);
}

bool geo_ring_is_simple(const geo_ring *ring, bool closed, uint64_t *steps) {
    for (size_t i = 0; i < ring->edges_n; i++) {
        if (!geo__spend(steps, 1 + (ring->edges_n - i) / 2)) {
            return false;
        }
        for (size_t j = i + 1; j < ring->edges_n; j++) {
            bool next = j == i + 1, around = closed && i == 0 && j == ring->edges_n - 1;
            if (next || around) {
                const geo_edge *first = &ring->edges[next ? i : j], *second = &ring->edges[next ? j : i];
                if (overlap(first, second) && ring->edges_n > 2) {
                    return false;
                }
            } else if (meet(&ring->edges[i], &ring->edges[j])) {
                return false;
            }
        }
    }
    return true;
}

bool geo_rings_cross(const geo_ring *a, const geo_ring *b, uint64_t *steps) {
    for (size_t i = 0; i < a->edges_n; i++) {
        if (!geo__spend(steps, 1 + b->edges_n / 2)) {
            return true;
        }
        for (size_t j = 0; j < b->edges_n; j++) {
            const geo_edge *x = &a->edges[i], *y = &b->edges[j];
            if (!are_apart(x, y) && cross(x->from->v, x->to->v, y->from->v, y->to->v)) {
                return true;
            }
        }
    }
    return false;
}
