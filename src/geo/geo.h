/* geo.h — shapes on the WGS 84 ellipsoid.
 *
 * Edges are great elliptic arcs: the intersection of the surface with a plane through the earth's centre. The areas in the service's
 * documentation show that it does the same. The linear map from the ellipsoid to the unit sphere turns these arcs into great circles, so
 * topology (touching, crossing, containing) is computed on the sphere, in three dimensions. So poles and the 180th meridian are not special
 * cases. Lengths and areas are those of the ellipsoid.
 *
 * The inside of a ring is on its left, as in GeoJSON: a ring that runs clockwise around a town contains all of the earth but the town. */
#pragma once

#include "base/arena.h"

typedef struct geo_vector {
    double x, y, z;
} geo_vector;

typedef struct geo_point {
    double longitude, latitude; /* degrees */
    geo_vector v;               /* on the unit sphere */
} geo_point;

typedef enum geo_kind { GEO_POINT, GEO_LINE, GEO_POLYGON } geo_kind;

/* An arc shorter than half the earth. */
typedef struct geo_edge {
    const geo_point *from, *to;
    geo_vector normal; /* normal of the arc's plane; points on the left have a positive dot product with it */
    geo_vector middle; /* middle of the chord, not on the sphere */
    double angle;      /* length on the sphere */
    double reach;      /* half the chord: no point of the arc is farther from `middle` */
} geo_edge;

/* A sequence of points: a line, or a ring, whose last edge leads back to the first point. The first point is not repeated. */
typedef struct geo_ring {
    const geo_point *points;
    size_t n;
    geo_edge *edges;
    size_t edges_n;
} geo_ring;

typedef struct geo_polygon {
    geo_ring *rings; /* the inside is on the left of each ring */
    size_t n;
} geo_polygon;

/* A point (one ring of one point), a line (one ring), or polygons. */
typedef struct geo_shape {
    geo_kind kind;
    geo_ring line;
    geo_polygon *polygons;
    size_t polygons_n;
    size_t points_n; /* in all rings together */
} geo_shape;

geo_point geo_point_at(double longitude, double latitude);

/* Fills in the edges of a ring or line; false if an edge joins antipodal points or has length 0. */
bool geo_make_edges(arena *a, geo_ring *ring, bool closed);

/* Geodesic distance in metres (Vincenty's formulae; for nearly antipodal points, where they do not converge, within 0.1 %). */
double geo_distance(const geo_point *a, const geo_point *b);

/* Distance between the nearest points of two shapes; 0 if they touch. */
double geo_shape_distance(const geo_shape *a, const geo_shape *b, uint64_t *steps);

bool geo_intersects(const geo_shape *a, const geo_shape *b, uint64_t *steps);
bool geo_within(arena *arena, const geo_shape *a, const geo_shape *b, uint64_t *steps); /* a is in b, and not only on its border */

/* The relation of a shape to the cap of all points within `angle` of `place` on the unit sphere: apart from it, possibly touching it
 * (NEAR), or containing all of it (AROUND). Never APART if they touch; NEAR if the steps run out. */
typedef enum geo_reach { GEO_APART, GEO_NEAR, GEO_AROUND } geo_reach;
geo_reach geo_reaches(const geo_shape *s, geo_vector place, double angle, uint64_t *steps);

/* An upper bound of the angle on the unit sphere between two points that are this many metres apart. */
double geo_angle_of(double metres);

double geo_area(const geo_shape *shape);    /* square metres; 0 for points and lines */
double geo_ring_area(const geo_ring *ring); /* area on the left of the ring */

/* Whether no edges of a ring cross or touch, except neighbours at their common point. False too if the steps run out. */
bool geo_ring_is_simple(const geo_ring *ring, bool closed, uint64_t *steps);
bool geo_rings_cross(const geo_ring *a, const geo_ring *b, uint64_t *steps); /* they share more than single points */
