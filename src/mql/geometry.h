/* geometry.h — geometries as MongoDB reads them: GeoJSON of all types, and pairs of numbers, [x, y] or {x: …, y: …}.
 *
 * On the sphere: distances are great circles on a globe of radius 6378100 m, as MongoDB has it; topology is geo/geo.h's. A polygon's ring
 * may have either orientation: its inside is the smaller part of the earth. */
#pragma once

#include "geo/geo.h"
#include "mql/run.h"

#define MQL_EARTH_METRES 6378100.0

typedef struct mql_geometry {
    bool is_point;
    bool is_pair;      /* a pair of numbers, not GeoJSON */
    double x, y;       /* of a point; a pair may have any numbers */
    geo_shape *shapes; /* on the sphere; none if a pair's numbers are not a longitude and a latitude */
    size_t n;
} mql_geometry;

/* In the arena. False: `v` is no geometry, and `*reason_out` says why. `steps` pay for the checks of polygons. */
bool mql_geometry_read(arena *a, mql_value v, mql_geometry *geometry_out, slice *reason_out, uint64_t *steps);
bool mql_pair_read(mql_value v, double *x_out, double *y_out);

bool mql_geometry_intersects(const mql_geometry *a, const mql_geometry *b, uint64_t *steps);
bool mql_geometry_within(arena *arena, const mql_geometry *a, const mql_geometry *b, uint64_t *steps);

/* The angle in radians between two points given by longitude and latitude, on the globe. */
double mql_geo_angle(double x1, double y1, double x2, double y2);

/* Whether all of a geometry is within an angle of a point. */
bool mql_geometry_within_cap(const mql_geometry *g, double x, double y, double radians);

/* Metres from a point to the nearest point of a geometry. */
double mql_geometry_distance(const mql_geometry *g, double x, double y, uint64_t *steps);
