#include "geo/cells.h"

#include <math.h>
#include <stdlib.h>

#include "base/compare.h"

enum { FACES = 6, LEVEL_STORED_MAX = 20, LEVEL_ASKED_MAX = 24, CELLS_MAX = GEO_CELLS_QUERIED };

/* ---- numbers ---- */

static uint64_t lowest(geo_cell cell) {
    return cell & (~cell + 1);
}

static uint64_t lowest_at(unsigned level) {
    return (uint64_t)1 << 2 * (GEO_CELL_LEVELS - level);
}

unsigned geo_cell_level(geo_cell cell) {
    return GEO_CELL_LEVELS - (unsigned)__builtin_ctzll(cell) / 2;
}

geo_cell geo_cell_parent(geo_cell cell, unsigned level) {
    uint64_t bit = lowest_at(level);
    return (cell & (~bit + 1)) | bit;
}

geo_cell geo_cell_first(geo_cell cell) {
    return cell - (lowest(cell) - 1);
}

geo_cell geo_cell_last(geo_cell cell) {
    return cell + (lowest(cell) - 1);
}

void geo_cell_spell(buf *out, geo_cell cell) {
    buf_add_be64(out, cell);
}

static geo_cell child(geo_cell cell, unsigned i) {
    uint64_t bit = lowest(cell) >> 2;
    return cell - lowest(cell) + bit * (2 * i + 1);
}

/* Moves bit i of a 30-bit number to bit 2i; gather is the inverse. */
static uint64_t spread(uint64_t n) {
    n = (n | n << 16) & 0x0000FFFF0000FFFFu;
    n = (n | n << 8) & 0x00FF00FF00FF00FFu;
    n = (n | n << 4) & 0x0F0F0F0F0F0F0F0Fu;
    n = (n | n << 2) & 0x3333333333333333u;
    return (n | n << 1) & 0x5555555555555555u;
}

static uint64_t gather(uint64_t n) {
    n &= 0x5555555555555555u;
    n = (n | n >> 1) & 0x3333333333333333u;
    n = (n | n >> 2) & 0x0F0F0F0F0F0F0F0Fu;
    n = (n | n >> 4) & 0x00FF00FF00FF00FFu;
    n = (n | n >> 8) & 0x0000FFFF0000FFFFu;
    return (n | n >> 16) & 0x00000000FFFFFFFFu;
}

/* ---- places ---- */

/* Faces 0 to 2 are at the positive ends of the x, y and z axes, 3 to 5 at the negative ends. On a face, u and v run from -1 to 1. */
static geo_vector on_face(unsigned face, double u, double v) {
    double out = face < 3 ? 1 : -1;
    geo_vector p = face % 3 == 0 ? (geo_vector){out, u, v} : face % 3 == 1 ? (geo_vector){v, out, u} : (geo_vector){u, v, out};
    double n = sqrt(p.x * p.x + p.y * p.y + p.z * p.z);
    return (geo_vector){p.x / n, p.y / n, p.z / n};
}

static unsigned face_of(geo_vector p, double *u, double *v) {
    double x = fabs(p.x), y = fabs(p.y), z = fabs(p.z);
    unsigned axis = x >= y && x >= z ? 0 : y >= z ? 1 : 2;
    double along = axis == 0 ? p.x : axis == 1 ? p.y : p.z;
    *u = (axis == 0 ? p.y : axis == 1 ? p.z : p.x) / fabs(along);
    *v = (axis == 0 ? p.z : axis == 1 ? p.x : p.y) / fabs(along);
    return along >= 0 ? axis : axis + 3;
}

static uint64_t step_of(double u) {
    const double steps = (double)(1u << GEO_CELL_LEVELS);
    double at = floor((u + 1) / 2 * steps);
    return at < 0 ? 0 : at >= steps ? (uint64_t)steps - 1 : (uint64_t)at;
}

geo_cell geo_cell_at(geo_vector place, unsigned level) {
    double u, v;
    unsigned face = face_of(place, &u, &v);
    uint64_t position = spread(step_of(u)) | spread(step_of(v)) << 1;
    return geo_cell_parent((uint64_t)face << 61 | position << 1 | 1, level);
}

/* The cell's centre, and the angle from there to its farthest corner. */
static geo_vector middle_of(geo_cell cell, double *angle_out) {
    unsigned level = geo_cell_level(cell), face = (unsigned)(cell >> 61);
    uint64_t position = (cell & (((uint64_t)1 << 61) - 1)) >> 1;
    double width = ldexp(2, -(int)level), whole = (double)(1u << GEO_CELL_LEVELS) / 2;
    uint64_t inside = ((uint64_t)1 << (GEO_CELL_LEVELS - level)) - 1;
    double u = (double)(gather(position) & ~inside) / whole - 1, v = (double)(gather(position >> 1) & ~inside) / whole - 1;
    geo_vector middle = on_face(face, u + width / 2, v + width / 2);
    double farthest = 0;
    for (unsigned i = 0; i < 4; i++) {
        geo_vector corner = on_face(face, u + (i & 1 ? width : 0), v + (i & 2 ? width : 0));
        double chord = sqrt((corner.x - middle.x) * (corner.x - middle.x) + (corner.y - middle.y) * (corner.y - middle.y) +
                            (corner.z - middle.z) * (corner.z - middle.z));
        farthest = chord > farthest ? chord : farthest;
    }
    *angle_out = 2 * asin(farthest / 2);
    return middle;
}

/* ---- covers ---- */

typedef struct cover {
    const geo_shape *shape;
    double angle;
    uint64_t *steps;
    size_t most;
    unsigned level_max;
    geo_cell cells[CELLS_MAX + 4];
    bool done[CELLS_MAX + 4]; /* the cell is not divided further */
    size_t n;
} cover;

static void consider(cover *c, geo_cell cell) {
    double angle;
    geo_vector middle = middle_of(cell, &angle);
    geo_reach reach = geo_reaches(c->shape, middle, angle + c->angle, c->steps);
    if (reach != GEO_APART) {
        c->done[c->n] = reach == GEO_AROUND || geo_cell_level(cell) == c->level_max;
        c->cells[c->n++] = cell;
    }
}

/* The index of the largest cell that can still be divided; c->n if there is none. */
static size_t largest(const cover *c) {
    size_t best = c->n;
    for (size_t i = 0; i < c->n; i++) {
        if (!c->done[i] && (best == c->n || geo_cell_level(c->cells[i]) < geo_cell_level(c->cells[best]))) {
            best = i;
        }
    }
    return best;
}

/* Replaces a cell by those of its four children that the shape reaches, if there is room. */
static void cut(cover *c, size_t at) {
    size_t before = c->n;
    geo_cell cell = c->cells[at];
    for (unsigned i = 0; i < 4; i++) {
        consider(c, child(cell, i));
    }
    if (c->n - 1 > c->most) {
        c->n = before;
        c->done[at] = true;
        return;
    }
    c->n--; /* the last cell moves to the slot of the divided one */
    c->cells[at] = c->cells[c->n];
    c->done[at] = c->done[c->n];
}

/* A ring that crosses or touches itself has no well-defined inside, so its cover must be the whole earth. */
static bool is_sound(const geo_shape *shape, uint64_t *steps) {
    bool sound = true;
    for (size_t i = 0; i < shape->polygons_n; i++) {
        for (size_t j = 0; sound && j < shape->polygons[i].n; j++) {
            sound = geo_ring_is_simple(&shape->polygons[i].rings[j], true, steps);
        }
    }
    return sound;
}

static void make_cover(cover *c) {
    bool sound = is_sound(c->shape, c->steps);
    for (uint64_t face = 0; face < FACES; face++) {
        geo_cell cell = geo_cell_parent(face << 61 | 1, 0);
        if (sound) {
            consider(c, cell);
        } else {
            c->done[c->n] = true;
            c->cells[c->n++] = cell;
        }
    }
    for (size_t at; (at = largest(c)) < c->n && (!c->steps || *c->steps);) {
        cut(c, at);
    }
}

static size_t each_once(geo_cell *cells, size_t n) {
    size_t kept = 0;
    qsort(cells, n, sizeof *cells, order_u64);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || cells[kept - 1] != cells[i]) {
            cells[kept++] = cells[i];
        }
    }
    return kept;
}

size_t geo_cells_of(const geo_shape *shape, uint64_t *steps, geo_cell *cells_out) {
    if (shape->kind == GEO_POINT) {
        cells_out[0] = geo_cell_at(shape->line.points[0].v, GEO_CELL_LEVELS);
        return 1;
    }
    cover c = {.shape = shape, .steps = steps, .most = GEO_CELLS_STORED, .level_max = LEVEL_STORED_MAX};
    make_cover(&c);
    for (size_t i = 0; i < c.n; i++) {
        cells_out[i] = geo_cell_parent(c.cells[i], geo_cell_level(c.cells[i]) & ~1u);
    }
    return each_once(cells_out, c.n);
}

static int by_first(const void *a, const void *b) {
    const geo_cell_span *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first) : (x->last < y->last) - (x->last > y->last);
}

/* Sorts the spans and merges those that overlap or adjoin. */
static size_t tidy(geo_cell_span *spans, size_t n) {
    size_t kept = 0;
    qsort(spans, n, sizeof *spans, by_first);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || spans[i].first > spans[kept - 1].last + 1) {
            spans[kept++] = spans[i];
        } else if (spans[i].last > spans[kept - 1].last) {
            spans[kept - 1].last = spans[i].last;
        }
    }
    return kept;
}

size_t geo_cells_near(const geo_shape *shape, double angle, uint64_t *steps, geo_cell_span spans_out[GEO_CELL_SPANS_MAX]) {
    cover c = {.shape = shape, .angle = angle, .steps = steps, .most = GEO_CELLS_QUERIED, .level_max = LEVEL_ASKED_MAX};
    size_t n = 0;
    make_cover(&c);
    for (size_t i = 0; i < c.n; i++) {
        geo_cell cell = c.cells[i];
        unsigned level = geo_cell_level(cell);
        spans_out[n++] = (geo_cell_span){geo_cell_first(cell), geo_cell_last(cell)};
        for (unsigned above = 0; above < level; above += 2) {
            geo_cell around = geo_cell_parent(cell, above);
            spans_out[n++] = (geo_cell_span){around, around};
        }
    }
    return tidy(spans_out, n);
}
