/* geo_int.h — vectors, and functions shared by geo.c and geo_topology.c. For this folder. */
#pragma once

#include <math.h>

#include "geo/geo.h"

#define GEO_TOLERANCE 1e-12 /* in earth radii: some micrometres. Points nearer than this touch. */

static inline geo_vector geo_add(geo_vector a, geo_vector b) {
    return (geo_vector){a.x + b.x, a.y + b.y, a.z + b.z};
}

static inline geo_vector geo_subtract(geo_vector a, geo_vector b) {
    return (geo_vector){a.x - b.x, a.y - b.y, a.z - b.z};
}

static inline geo_vector geo_scale(geo_vector a, double by) {
    return (geo_vector){a.x * by, a.y * by, a.z * by};
}

static inline double geo_dot(geo_vector a, geo_vector b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static inline geo_vector geo_cross(geo_vector a, geo_vector b) {
    return (geo_vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static inline double geo_length(geo_vector a) {
    return sqrt(geo_dot(a, a));
}

static inline geo_vector geo_unit(geo_vector a) {
    double n = geo_length(a);
    return n > 0 ? geo_scale(a, 1 / n) : a;
}

/* The point of an edge at `angle` from its beginning. */
static inline geo_vector geo_along(const geo_edge *e, double angle) {
    return geo_add(geo_scale(e->from->v, cos(angle)), geo_scale(geo_cross(e->normal, e->from->v), sin(angle)));
}

/* The angle, from the edge's beginning, of the point of the edge that is nearest to p. */
double geo__nearest(const geo_edge *e, geo_vector p);

static inline bool geo__spend(uint64_t *steps, uint64_t n) {
    if (steps) {
        *steps = *steps > n ? *steps - n : 0;
    }
    return !steps || *steps;
}

/* Ring number `at` of a shape, counted from 0 over all polygons; NULL after the last. */
const geo_ring *geo__ring(const geo_shape *s, size_t at);
