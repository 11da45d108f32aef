/* geo.c — points, edges, lengths and areas. */
#include "geo/geo_int.h"

static const double EQUATOR = 6378137, FLATTENING = 1 / 298.257223563;

static double pole_radius(void) {
    return EQUATOR * (1 - FLATTENING);
}

static double radians(double degrees) {
    return degrees * (M_PI / 180);
}

/* Maps to the unit sphere by the reduced latitude; poles are exact. */
geo_point geo_point_at(double longitude, double latitude) {
    double s = (1 - FLATTENING) * sin(radians(latitude)), c = fabs(latitude) == 90 ? 0 : cos(radians(latitude));
    double n = sqrt(s * s + c * c);
    double along = radians(longitude);
    return (geo_point){longitude, latitude, {c / n * cos(along), c / n * sin(along), s / n}};
}

/* The map to the unit sphere scales lengths by at most 1 / pole_radius. The factor allows for distances that are 0.1 % too short. */
double geo_angle_of(double metres) {
    return metres > 0 ? metres / pole_radius() * 1.002 : 0;
}

bool geo_make_edges(arena *a, geo_ring *ring, bool closed) {
    ring->edges_n = closed ? ring->n : ring->n - 1;
    ring->edges = arena_alloc(a, (ring->edges_n + 1) * sizeof *ring->edges);
    for (size_t i = 0; i < ring->edges_n; i++) {
        geo_edge *e = &ring->edges[i];
        e->from = &ring->points[i];
        e->to = &ring->points[(i + 1) % ring->n];
        geo_vector sum = geo_add(e->from->v, e->to->v), chord = geo_subtract(e->to->v, e->from->v);
        geo_vector normal = geo_cross(chord, sum); /* -2 × the cross product of both ends, but accurate for short edges */
        e->middle = geo_scale(sum, 0.5);
        e->reach = geo_length(chord) / 2;
        e->angle = 2 * atan2(geo_length(chord), geo_length(sum));
        e->normal = geo_unit(geo_scale(normal, -1));
        if (geo_length(sum) < 1e-9 || e->reach == 0) {
            return false;
        }
    }
    return true;
}

double geo__nearest(const geo_edge *e, geo_vector p) {
    double angle = atan2(geo_dot(p, geo_cross(e->normal, e->from->v)), geo_dot(p, e->from->v));
    if (angle >= 0 && angle <= e->angle) {
        return angle;
    }
    return geo_dot(p, e->from->v) >= geo_dot(p, e->to->v) ? 0 : e->angle;
}

/* ---- point to point ---- */

/* Gauss-Legendre quadrature of 12 points, for the length of great elliptic arcs and for areas. */
static const double rule_at[] = {0.1252334085114689, 0.3678314989981802, 0.5873179542866175,
                                 0.7699026741943047, 0.9041172563704749, 0.9815606342467192};
static const double rule_weight[] = {0.2491470458134028, 0.2334925365383548, 0.2031674267230659,
                                     0.1600783285433462, 0.1069393259953184, 0.0471753363865118};
enum { RULE = sizeof rule_at / sizeof *rule_at };

static double speed(geo_vector from, geo_vector across, double angle) {
    geo_vector d = geo_add(geo_scale(from, -sin(angle)), geo_scale(across, cos(angle)));
    double b = pole_radius();
    return sqrt(EQUATOR * EQUATOR * (d.x * d.x + d.y * d.y) + b * b * d.z * d.z);
}

/* The normal of the plane through two points; for antipodal points, of a plane through a pole. */
static geo_vector plane_of(geo_vector from, geo_vector to) {
    const geo_vector north = {0, 0, 1}, greenwich = {1, 0, 0};
    geo_vector normal = geo_cross(from, to);
    if (geo_length(normal) > 1e-15) {
        return geo_unit(normal);
    }
    return geo_unit(geo_cross(from, fabs(from.z) < 0.9 ? north : greenwich));
}

static double arc_length(geo_vector from, geo_vector to) {
    geo_vector normal = plane_of(from, to);
    geo_vector across = geo_cross(normal, from);
    double angle = atan2(geo_dot(across, to), geo_dot(from, to)), total = 0;
    enum { PIECES = 4 };
    for (int piece = 0; piece < PIECES; piece++) {
        double half = angle / PIECES / 2, centre = (2 * piece + 1) * half;
        for (size_t i = 0; i < RULE; i++) {
            total +=
                half * rule_weight[i] * (speed(from, across, centre - half * rule_at[i]) + speed(from, across, centre + half * rule_at[i]));
        }
    }
    return total;
}

/* For nearly antipodal points: the shortest of the arc and the ways over the two poles. */
static double distance_around(const geo_point *a, const geo_point *b) {
    const geo_vector north = {0, 0, 1}, south = {0, 0, -1};
    double over_north = arc_length(a->v, north) + arc_length(north, b->v);
    double over_south = arc_length(a->v, south) + arc_length(south, b->v);
    double least = over_north < over_south ? over_north : over_south;
    geo_vector sum = geo_add(a->v, b->v);
    double straight = geo_length(sum) < 1e-9 ? least : arc_length(a->v, b->v);
    return straight < least ? straight : least;
}

/* Vincenty's inverse formulae, with his names; u is the reduced latitude. */
typedef struct vincenty {
    double sin_u1, cos_u1, sin_u2, cos_u2, difference;
    double sin_sigma, cos_sigma, sigma, cos2_alpha, cos_2sigma_m;
} vincenty;

static bool converge(vincenty *v) {
    const double f = FLATTENING;
    double lambda = v->difference;
    for (int i = 0; i < 100; i++) {
        double sin_l = sin(lambda), cos_l = cos(lambda);
        v->sin_sigma = hypot(v->cos_u2 * sin_l, v->cos_u1 * v->sin_u2 - v->sin_u1 * v->cos_u2 * cos_l);
        v->cos_sigma = v->sin_u1 * v->sin_u2 + v->cos_u1 * v->cos_u2 * cos_l;
        v->sigma = atan2(v->sin_sigma, v->cos_sigma);
        if (v->sin_sigma == 0) {
            return v->cos_sigma > 0;
        }
        double sin_alpha = v->cos_u1 * v->cos_u2 * sin_l / v->sin_sigma;
        v->cos2_alpha = 1 - sin_alpha * sin_alpha;
        v->cos_2sigma_m = v->cos2_alpha > 0 ? v->cos_sigma - 2 * v->sin_u1 * v->sin_u2 / v->cos2_alpha : 0; /* 0: along the equator */
        double c = f / 16 * v->cos2_alpha * (4 + f * (4 - 3 * v->cos2_alpha)), before = lambda, m = v->cos_2sigma_m;
        lambda = v->difference + (1 - c) * f * sin_alpha * (v->sigma + c * v->sin_sigma * (m + c * v->cos_sigma * (2 * m * m - 1)));
        if (fabs(lambda) > M_PI) {
            return false;
        }
        if (fabs(lambda - before) < 1e-13) {
            return true;
        }
    }
    return false;
}

double geo_distance(const geo_point *a, const geo_point *b) {
    double degrees = fabs(remainder(b->longitude - a->longitude, 360));
    vincenty v = {.sin_u1 = a->v.z,
                  .cos_u1 = hypot(a->v.x, a->v.y),
                  .sin_u2 = b->v.z,
                  .cos_u2 = hypot(b->v.x, b->v.y),
                  .difference = radians(degrees)};
    if (a->latitude == b->latitude && degrees == 0) {
        return 0;
    }
    if (!converge(&v)) {
        return distance_around(a, b);
    }
    double axis = pole_radius(), u2 = v.cos2_alpha * (EQUATOR * EQUATOR - axis * axis) / (axis * axis), m = v.cos_2sigma_m;
    double big_a = 1 + u2 / 16384 * (4096 + u2 * (-768 + u2 * (320 - 175 * u2)));
    double big_b = u2 / 1024 * (256 + u2 * (-128 + u2 * (74 - 47 * u2)));
    double last = big_b / 6 * m * (4 * v.sin_sigma * v.sin_sigma - 3) * (4 * m * m - 3);
    double delta = big_b * v.sin_sigma * (m + big_b / 4 * (v.cos_sigma * (2 * m * m - 1) - last));
    return axis * big_a * (v.sigma - delta);
}

/* ---- shape to shape ---- */

const geo_ring *geo__ring(const geo_shape *s, size_t at) {
    if (s->kind != GEO_POLYGON) {
        return at == 0 ? &s->line : NULL;
    }
    for (size_t i = 0; i < s->polygons_n; i++) {
        if (at < s->polygons[i].n) {
            return &s->polygons[i].rings[at];
        }
        at -= s->polygons[i].n;
    }
    return NULL;
}

/* The straight distance through the earth, in equatorial radii. The nearest point by it is also the nearest on the surface, except for some
 * parts in a million at great distances. */
static double chord(geo_vector a, geo_vector b) {
    geo_vector d = geo_subtract(a, b);
    double p = pole_radius() / EQUATOR * d.z;
    return sqrt(d.x * d.x + d.y * d.y + p * p);
}

typedef struct nearest {
    double chord;
    const geo_point *from;
    const geo_edge *edge; /* NULL: the nearest is the point `to` */
    const geo_point *to;
} nearest;

/* The angle of the edge's point nearest to p, by golden-section search around the point that is nearest on the sphere. */
static double nearest_angle(const geo_edge *e, geo_vector p) {
    const double ratio = 0.6180339887498949;
    double at = geo__nearest(e, p), width = 0.01 * acos(fmin(1, fmax(-1, geo_dot(geo_along(e, at), p)))) + 1e-9;
    double low = fmax(0, at - width), high = fmin(e->angle, at + width);
    for (int i = 0; i < 40; i++) {
        double a = high - ratio * (high - low), b = low + ratio * (high - low);
        if (chord(geo_along(e, a), p) < chord(geo_along(e, b), p)) {
            high = b;
        } else {
            low = a;
        }
    }
    return (low + high) / 2;
}

static geo_point on_earth(geo_vector v) {
    double latitude = atan2(v.z, (1 - FLATTENING) * hypot(v.x, v.y)), longitude = atan2(v.y, v.x);
    return (geo_point){longitude * (180 / M_PI), latitude * (180 / M_PI), v};
}

static void nearest_to_edges(nearest *n, const geo_point *p, const geo_ring *ring) {
    for (size_t i = 0; i < ring->edges_n; i++) {
        const geo_edge *e = &ring->edges[i];
        const double slack = 1.01; /* margin: distances are on the sphere, not on the ellipsoid */
        if (geo_length(geo_subtract(p->v, e->middle)) - e->reach > slack * n->chord) {
            continue;
        }
        double each = chord(geo_along(e, geo__nearest(e, p->v)), p->v);
        if (each < n->chord) {
            *n = (nearest){each, p, e, NULL};
        }
    }
    if (ring->edges_n == 0 && chord(ring->points[0].v, p->v) < n->chord) {
        *n = (nearest){chord(ring->points[0].v, p->v), p, NULL, &ring->points[0]};
    }
}

/* Compares each point of one shape with the edges of the other: of two disjoint shapes, one of the nearest points is an end of an edge. */
static bool nearest_of(nearest *n, const geo_shape *a, const geo_shape *b, uint64_t *steps) {
    const geo_ring *ra, *rb;
    for (size_t i = 0; (ra = geo__ring(a, i)); i++) {
        for (size_t j = 0; (rb = geo__ring(b, j)); j++) {
            for (size_t k = 0; k < ra->n; k++) {
                if (!geo__spend(steps, 1 + rb->n)) {
                    return false;
                }
                nearest_to_edges(n, &ra->points[k], rb);
            }
        }
    }
    return true;
}

double geo_shape_distance(const geo_shape *a, const geo_shape *b, uint64_t *steps) {
    nearest n = {.chord = INFINITY};
    if (a->kind == GEO_POINT && b->kind == GEO_POINT) {
        return geo_distance(&a->line.points[0], &b->line.points[0]);
    }
    if (geo_intersects(a, b, steps)) {
        return 0;
    }
    if (!nearest_of(&n, a, b, steps) || !nearest_of(&n, b, a, steps) || !n.from) { /* a MultiPolygon may be empty */
        return NAN;
    }
    geo_point to = n.edge ? on_earth(geo_along(n.edge, nearest_angle(n.edge, n.from->v))) : *n.to;
    return geo_distance(n.from, &to);
}

/* ---- areas ---- */

/* The area between the equator and a reduced latitude, per radian of longitude: the "belt". */
static double belt(double sin_reduced) {
    double b = pole_radius(), e2 = FLATTENING * (2 - FLATTENING), e = sqrt(e2);
    double cos2 = 1 - sin_reduced * sin_reduced;
    double s = sin_reduced / sqrt(sin_reduced * sin_reduced + (1 - e2) * cos2); /* sine of the geographic latitude */
    return b * b / 2 * (s / (1 - e2 * s * s) + atanh(e * s) / e);
}

/* The integral over longitude of belt - `base` along a piece of an edge. */
static double above(const geo_edge *e, double from, double to, double base) {
    double half = (to - from) / 2, centre = (to + from) / 2, total = 0;
    for (size_t i = 0; i < 2 * RULE; i++) {
        geo_vector p = geo_along(e, centre + half * (i % 2 ? rule_at[i / 2] : -rule_at[i / 2]));
        double across = p.x * p.x + p.y * p.y;
        total += across > 0 ? half * rule_weight[i / 2] * (belt(p.z) - base) * e->normal.z / across : 0;
    }
    return total;
}

static bool is_pole(geo_vector p) {
    return p.x * p.x + p.y * p.y < 1e-24;
}

/* The number of pieces to divide an edge into, such that no piece ends at a pole that the edge passes. */
static int pieces_of(const geo_edge *e) {
    const double piece_most = 0.1;
    for (int n = (int)ceil(e->angle / piece_most);; n++) {
        bool at_pole = false;
        for (int i = 1; i < n; i++) {
            at_pole |= is_pole(geo_along(e, e->angle * i / n));
        }
        if (!at_pole) {
            return n;
        }
    }
}

/* The change of longitude between two nearby points; 0 if one is a pole. */
static double longitudes_between(geo_vector a, geo_vector b) {
    return is_pole(a) || is_pole(b) ? 0 : atan2(a.x * b.y - a.y * b.x, a.x * b.x + a.y * b.y);
}

static bool comes_near_pole(const geo_ring *ring) {
    for (size_t i = 0; i < ring->edges_n; i++) {
        const geo_edge *e = &ring->edges[i];
        for (int k = 0, n = pieces_of(e); k < n; k++) {
            if (fabs(geo_along(e, e->angle * k / n).z) > 0.98) {
                return true;
            }
        }
    }
    return false;
}

/* The integral of the belt along an edge over longitude; adds the change of longitude to `*turn`. To keep precision, a constant is
 * subtracted before integrating: near a pole, where longitude changes fast, the belt of the pole, since the difference is nearly 0 there;
 * elsewhere `base`, the belt at a point of the ring, since the ring may be small. */
static double edge_belt(const geo_edge *e, bool near_pole, double base, double *turn) {
    double total = 0;
    for (int i = 0, n = pieces_of(e); i < n; i++) {
        double from = e->angle * i / n, to = e->angle * (i + 1) / n;
        geo_vector a = geo_along(e, from), b = geo_along(e, to);
        double longitudes = longitudes_between(a, b);
        double pole = belt(a.z + b.z >= 0 ? 1 : -1);
        total += near_pole ? above(e, from, to, pole) + pole * longitudes : above(e, from, to, base);
        *turn += longitudes;
    }
    return total;
}

double geo_ring_area(const geo_ring *ring) {
    double half_earth = 2 * M_PI * belt(1), base = belt(ring->points[0].v.z), total = 0, turn = 0;
    bool near_pole = comes_near_pole(ring);
    for (size_t i = 0; i < ring->edges_n; i++) {
        const geo_edge *e = &ring->edges[i], *next = &ring->edges[(i + 1) % ring->edges_n];
        total -= edge_belt(e, near_pole, base, &turn);
        if (is_pole(e->to->v)) { /* a corner at a pole: the longitude jumps there */
            double longitudes = longitudes_between(e->from->v, next->to->v);
            total -= belt(e->to->v.z) * longitudes;
            turn += longitudes;
        }
    }
    double turns = round(turn / (2 * M_PI)); /* around the earth's axis */
    total += turns * (half_earth - (near_pole ? 0 : 2 * M_PI * base));
    total = fmod(total, 2 * half_earth);
    return total < 0 ? total + 2 * half_earth : total;
}

double geo_area(const geo_shape *shape) {
    double earth = 4 * M_PI * belt(1), total = 0;
    for (size_t i = 0; i < shape->polygons_n; i++) {
        const geo_polygon *p = &shape->polygons[i];
        for (size_t j = 0; j < p->n; j++) {
            total += geo_ring_area(&p->rings[j]) - (j ? earth : 0); /* a hole's left side is all of the earth but the hole */
        }
    }
    return total;
}
