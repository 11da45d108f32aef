/* row.h — row keys: they identify an item within its logical partition.
 *
 * A row key is a byte string; byte order is row order. A container's definition says how it is made from an item:
 *
 *   the text of `id`     in containers of the SQL API: the bytes of a string, by SQL's rules for ids (row_check_id)
 *   one or more paths    each value encoded by doc/order.h, ascending or descending, concatenated: an ObjectId at /_id, a CQL table's
 *                        clustering columns, a RowKey. Encodings are self-delimiting, so the encoding of the first few values is a byte
 *                        prefix of exactly the row keys that begin with those values.
 *
 * The definition of a container never changes. Pure functions, any thread. */
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

/* Parses a definition: [{"path": "/a", "order": "descending"}, …]; the default order is "ascending". The result lives in the operation's
 * arena. E_BAD_REQUEST with an error text. */
MUST_CHECK err row_definition_read(op *o, slice bson_array, row_definition *definition_out);
bool row_definition_same(const row_definition *a, const row_definition *b);

/* The row key of an item. It points into `body` or lives in `a`. E_BAD_REQUEST with an error text: a value is missing, or the key is longer
 * than LIMIT_ROW_BYTES. For `id` this checks the type only, since it is also called for stored items. */
MUST_CHECK err row_of(op *o, arena *a, const row_definition *definition, slice body, slice *row_out);

/* Appends the encoding of a value for the definition's path `i`, to build a row key or a prefix of one. Not for the text of `id`. */
void row_add(buf *out, const row_definition *definition, size_t i, const doc_element *value);

/* SQL's rules for ids: 1 to LIMIT_ID_BYTES bytes, no '/' and no '\'. E_BAD_REQUEST with the service's error text. */
MUST_CHECK err row_check_id(op *o, slice id);

/* Checks a row key from a client: E_BAD_REQUEST if it is too long. */
MUST_CHECK err row_check_length(op *o, const row_definition *definition, slice row);
