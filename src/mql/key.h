/* key.h — keys: values as bytes that sort, byte by byte, in MongoDB's order; and the keys that a document has in an index.
 *
 * A value is spelled as one byte for its class (value.h) and then the bytes of the value. A spelling is self-delimiting, so several in a
 * row sort as a tuple; spelled downward, each byte inverted, it sorts the other way. Equal values have equal spellings, whatever the type
 * of their numbers.
 *
 * A document has one key in an index, or, if a path leads through an array, one for each element. Missing fields count as null. The first
 * of the keys is the document's place in an ascending sort by the index's pattern, the last one its place in the opposite sort.
 *
 * In an index of places ("2dsphere") or of texts ("text") a document has a key for each cell of its geometries (geo/cells.h) or for each
 * word of its texts, after the values of the fields in front. A document without them has no key. */
#pragma once

#include "geo/cells.h"
#include "mql/sort.h"

/* ---- values ---- */

void mql_key_add(buf *out, const mql_collation *collation, mql_value v, bool descending);

/* The first byte of every spelling of the class, if it is not descending. */
uint8_t mql_key_class(int class);

/* ---- keys of documents ---- */

typedef struct mql_index mql_index;

/* {key: {a: 1, b: -1}, sparse: true, partialFilterExpression: {…}, collation: {…}}: all but `key` may be left out. "hashed" counts as 1.
 * {key: {a: 1, at: "2dsphere"}}; {key: {a: 1, _fts: "text"}, weights: {…}, …} with the members of mql_text_index_read. Fields behind a
 * place or a text have no part in the keys. The result lives in the operation's arena, is constant, and may be used by several threads.
 * E_BAD_REQUEST with MongoDB's code. */
MUST_CHECK err mql_index_parse(op *o, slice spec, const mql_index **index_out);

/* A wildcard index ({"$**": 1}, {"a.$**": 1}) has a key for each value, which is its path (mql_key_add_path) and then the value. */
bool mql_index_is_wildcard(const mql_index *x, slice *stem_out);
void mql_key_add_path(buf *out, slice path);

/* What the last part of the keys is, if it is not a value. */
typedef enum mql_index_kind { MQL_INDEX_VALUES, MQL_INDEX_PLACES, MQL_INDEX_WORDS } mql_index_kind;
mql_index_kind mql_index_kind_of(const mql_index *x, slice *path_out); /* the path: of places */
void mql_key_add_cell(buf *out, geo_cell cell);
void mql_key_add_word(buf *out, slice term);

/* Of places and words: the fields in front. */
const mql_sort *mql_index_pattern(const mql_index *x);
const mql_collation *mql_index_collation(const mql_index *x);

/* Visits the keys of a document, in any order, perhaps one of them twice. `scratch` may be reset afterwards. Fails if the document cannot
 * be in the index: its fields are parallel arrays (171), a place is no geometry (16755), or it would take too long. An error of `visit`
 * ends it. */
typedef err (*mql_key_visit)(void *context, slice key);
MUST_CHECK err mql_index_keys(const mql_index *x, op *o, arena *scratch, slice document, mql_key_visit visit, void *context);

/* Whether a path of the pattern meets an array in the document, on its way or at its end. */
bool mql_index_meets_array(const mql_index *x, slice document);

/* The first key, or the last one; empty if the document has none. In `scratch`. */
MUST_CHECK err mql_index_key(const mql_index *x, op *o, arena *scratch, slice document, bool last, slice *key_out);
