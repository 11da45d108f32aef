/* geojson.h — reads GeoJSON objects (Point, LineString, Polygon, MultiPolygon) by RFC 7946 and the service's limits. */
#pragma once

#include "doc/walk.h"
#include "geo/geo.h"

enum { GEOJSON_POINTS_MAX = 4096 };

/* `object` is an untrusted BSON document. False: not valid, and `reason_out` says why (static, or in the arena). Holes are reversed if
 * needed, so that their outside is on the left. geojson_read does not check whether rings cross themselves or each other; geojson_check
 * does. */
bool geojson_read(arena *a, slice object, geo_shape *shape_out, slice *reason_out);
bool geojson_check(arena *a, const geo_shape *shape, slice *reason_out, uint64_t *steps);

/* Reverses outer rings that contain more than half of the earth, for readers who let rings run either way. */
void geojson_take_smaller(arena *a, geo_shape *shape);
