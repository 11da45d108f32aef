/* geo.h — shapes on the WGS 84 ellipsoid.
 *
 * Edges are great elliptic arcs: where a plane through the earth's centre cuts the surface (that the service has the same is seen from the
 * areas it documents). The linear map that makes the ellipsoid a unit sphere makes them great circles, so what touches, crosses or holds
 * what is asked on the sphere, in three dimensions: poles and the 180th meridian are places like others. Lengths and areas are the
 * ellipsoid's own.
 *
 * The inside of a ring is at its left, as in GeoJSON: a ring that runs clockwise around a town holds all the earth but the town. */
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
    geo_vector normal; /* of its plane: what lies at the left has a positive product with it */
    geo_vector middle; /* of its chord, not on the sphere */
    double angle;      /* its length on the sphere */
    double reach;      /* half its chord: no point of it is farther from `middle` */
} geo_edge;

/* A row of points: a line, or a ring whose last edge leads back to its first point, which is not there twice. */
typedef struct geo_ring {
    const geo_point *points;
    size_t n;
    geo_edge *edges;
    size_t edges_n;
} geo_ring;

typedef struct geo_polygon {
    geo_ring *rings; /* the inside is at the left of all of them */
    size_t n;
} geo_polygon;

/* A point (one ring of one point), a line (one ring), or polygons. */
typedef struct geo_shape {
    geo_kind kind;
    geo_ring line;
    geo_polygon *polygons;
    size_t polygons_n;
    size_t points_n; /* in all */
} geo_shape;

geo_point geo_point_at(double longitude, double latitude);

/* Fills in the edges of a ring or line; false if one of them would join opposite points of the earth or has no length. */
bool geo_make_edges(arena *a, geo_ring *ring, bool closed);

/* Metres along the shortest way (Vincenty's formulae; where they fail, for nearly opposite points, within 0.1 %). */
double geo_distance(const geo_point *a, const geo_point *b);

/* Between the nearest points of two shapes; 0 if they touch. */
double geo_shape_distance(const geo_shape *a, const geo_shape *b, uint64_t *steps);

bool geo_intersects(const geo_shape *a, const geo_shape *b, uint64_t *steps);
bool geo_within(arena *arena, const geo_shape *a, const geo_shape *b, uint64_t *steps); /* a is in b, and not just on its border */

/* How a shape stands to all that is within an angle of a place on the unit sphere: apart from it, perhaps not, or around all of it. Never
 * apart if they touch; when steps run out, perhaps not. */
typedef enum geo_reach { GEO_APART, GEO_NEAR, GEO_AROUND } geo_reach;
geo_reach geo_reaches(const geo_shape *s, geo_vector place, double angle, uint64_t *steps);

/* No two points that are this many metres apart are farther from each other on the unit sphere. */
double geo_angle_of(double metres);

double geo_area(const geo_shape *shape);    /* square metres; 0 for points and lines */
double geo_ring_area(const geo_ring *ring); /* of what is at its left */

/* Whether edges of a ring cross or touch where they should not. */
bool geo_ring_is_simple(const geo_ring *ring, bool closed, uint64_t *steps);
bool geo_rings_cross(const geo_ring *a, const geo_ring *b, uint64_t *steps); /* share more than single points */
