/* row.h — row keys: what tells the items of one logical partition apart.
 *
 * A row key is bytes, and the order of the bytes is the order of the rows. A container's definition says how it is made from an item:
 *
 *   the text of `id`     what containers of the SQL API have: the bytes of a string, by SQL's rules for ids (row_check_id)
 *   one or more paths    each value spelled by doc/order.h, ascending or descending, one after the other: an ObjectId at /_id, a CQL
 *                        table's clustering columns, a RowKey. A spelling ends itself, so the spelling of the first few values is a byte
 *                        prefix of exactly the row keys that begin with those values.
 *
 * A definition never changes in a container's life. Pure functions, any thread. */
#pragma once

#include "base/limits.h"
#include "base/op.h"
#include "doc/order.h"
#include "doc/path.h"

typedef struct row_path {
    doc_path path;
    bool descending;
} row_path;

typedef struct row_definition {
    const row_path *paths;
    size_t n; /* 0: the text of `id` */
} row_definition;

/* Reads a definition: [{"path": "/a", "order": "descending"}, …], "ascending" if it says none. Bytes live in the operation's arena.
 * E_BAD_REQUEST with a sentence. */
MUST_CHECK err row_definition_read(op *o, slice bson_array, row_definition *definition_out);
bool row_definition_same(const row_definition *a, const row_definition *b);

/* The row key of an item. It points into `body` or lives in `a`. E_BAD_REQUEST with a sentence: a value is missing, or the key is longer
 * than LIMIT_ROW_BYTES. Of `id` only the type is looked at here, since stored items are asked too. */
MUST_CHECK err row_of(op *o, arena *a, const row_definition *definition, slice body, slice *row_out);

/* Appends the value of the definition's path `i`, for a row key or a prefix of one. Not for the text of `id`. */
void row_add(buf *out, const row_definition *definition, size_t i, const doc_element *value);

/* SQL's rules for ids: 1 to LIMIT_ID_BYTES bytes, no '/' and no '\'. E_BAD_REQUEST with the service's sentence. */
MUST_CHECK err row_check_id(op *o, slice id);

/* A row key from outside: E_BAD_REQUEST if it is longer than any can be. */
MUST_CHECK err row_check_length(op *o, const row_definition *definition, slice row);
