/* cells.h — divides the earth into cells, so that shapes near each other have index entries near each other.
 *
 * The unit sphere (geo/geo.h) is projected onto a cube around it. Each of the cube's six faces is a cell of level 0, and each cell is
 * divided into four cells of the next level, down to level 30. A cell is a number: three bits for the face, two for each level, then a one
 * and zeros. So the cells inside a cell are a contiguous range of numbers around its own. The poles and the 180th meridian are not special
 * cases.
 *
 * A shape's *cover* is a few cells that together contain it. If two shapes touch, then some cell of one cover contains, or is inside, a
 * cell of the other. The converse does not hold. */
#pragma once

#include "base/buf.h"
#include "geo/geo.h"

typedef uint64_t geo_cell;

enum {
    GEO_CELL_LEVELS = 30,
    GEO_CELL_BYTES = 8,
    GEO_CELLS_STORED = 8,   /* maximum for an item's shape; their levels are even, so that a query looks up half of a cell's ancestors */
    GEO_CELLS_QUERIED = 16, /* maximum for a query's shape */
    GEO_CELL_SPANS_MAX = GEO_CELLS_QUERIED * (1 + GEO_CELL_LEVELS / 2 + 1)
};

geo_cell geo_cell_at(geo_vector place, unsigned level);
unsigned geo_cell_level(geo_cell cell);
geo_cell geo_cell_parent(geo_cell cell, unsigned level); /* the cell of that level that contains it */
geo_cell geo_cell_first(geo_cell cell);                  /* lowest and highest number of the cells inside it */
geo_cell geo_cell_last(geo_cell cell);
void geo_cell_spell(buf *out, geo_cell cell);

/* Computes the cover of an item's shape: up to GEO_CELLS_STORED cells. If the steps run out, or a polygon's border crosses itself, the
 * cover is all faces of the cube. */
size_t geo_cells_of(const geo_shape *shape, uint64_t *steps, geo_cell *cells_out);

/* Ranges of cell numbers, both ends included. Every stored shape within `angle` of `shape` has an entry in one of them. */
typedef struct geo_cell_span {
    geo_cell first, last;
} geo_cell_span;
size_t geo_cells_near(const geo_shape *shape, double angle, uint64_t *steps, geo_cell_span spans_out[GEO_CELL_SPANS_MAX]);
