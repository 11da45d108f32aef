/* cells.h — the earth cut into cells, so that shapes near each other have entries near each other.
 *
 * The unit sphere (geo/geo.h) is seen from the centre of a cube: each of its six faces is a cell of level 0, and each cell is cut into four
 * of the next level, down to 30. A cell is a number: three bits for the face, two for each level, then a one and zeros. So the cells inside
 * a cell are a run of numbers around its own. No place is special: not the poles, not the 180th meridian.
 *
 * A shape's *cover* is a few cells that hold all of it. Two shapes that touch have cells of which one is in the other; that they have is no
 * proof that they touch. */
#pragma once

#include "base/buf.h"
#include "geo/geo.h"

typedef uint64_t index_cell;

enum {
    INDEX_CELL_LEVELS = 30,
    INDEX_CELL_BYTES = 8,
    INDEX_CELLS_STORED = 8, /* at most, of an item's shape; their levels are even, so that few cells around a cell need to be asked for */
    INDEX_CELLS_ASKED = 16, /* of a query's */
    INDEX_CELL_SPANS_MAX = INDEX_CELLS_ASKED * (1 + INDEX_CELL_LEVELS / 2 + 1)
};

index_cell index_cell_at(geo_vector place, unsigned level);
unsigned index_cell_level(index_cell cell);
index_cell index_cell_parent(index_cell cell, unsigned level); /* the one around it */
index_cell index_cell_first(index_cell cell);                  /* and last: of those inside it, itself among them */
index_cell index_cell_last(index_cell cell);
void index_cell_spell(buf *out, index_cell cell);

/* The cover of an item's shape: up to INDEX_CELLS_STORED cells. When steps run out, and of a polygon whose border crosses itself, it is
 * the faces of the cube. */
size_t index_cells_of(const geo_shape *shape, uint64_t *steps, index_cell *cells_out);

/* What the entries of shapes are among that come within an angle of this one: runs of numbers, first and last. */
typedef struct index_cell_span {
    index_cell first, last;
} index_cell_span;
size_t index_cells_near(const geo_shape *shape, double angle, uint64_t *steps, index_cell_span spans_out[INDEX_CELL_SPANS_MAX]);
