/* key.h — values and paths as the index spells them, so that byte order is the query language's order.
 *
 * A *path* is a hash of its steps: names, and "any element" for arrays. A *value* is a type byte and then:
 *
 *   undefined, null, false, true    nothing more
 *   number                          eight bytes; all numbers compare as doubles
 *   string                          its bytes (00 as 00 FF), then 00 01; of a long one the first INDEX_STRING_BYTES, 00 02, a hash
 *   array, object                   nothing more: that there is one
 *
 * Every spelling ends itself, so several in a row still sort; spelled *downward* (each byte inverted) they sort the other way. Where a
 * value is not told whole (long strings, arrays, objects) the item must be asked. */
#pragma once

#include "base/buf.h"
#include "doc/walk.h"

typedef enum index_type {
    INDEX_UNDEFINED = 1,
    INDEX_NULL,
    INDEX_FALSE,
    INDEX_TRUE,
    INDEX_NUMBER,
    INDEX_STRING,
    INDEX_ARRAY,
    INDEX_OBJECT,
    INDEX_TYPE_END
} index_type;

enum {
    INDEX_STRING_BYTES = 64,
    INDEX_VALUE_BYTES_MAX = 2 * INDEX_STRING_BYTES + 8, /* of one spelled value */
    INDEX_PATH_BYTES = 8
};

/* ---- paths ---- */

typedef uint64_t index_path;

#define INDEX_PATH_ROOT ((index_path)0x746573656c61u)
#define INDEX_PATH_SHAPES ((index_path)0) /* values are shapes: which paths an item has */
#define INDEX_PATH_LARGE ((index_path)1)  /* items with too many terms to be indexed */

index_path index_path_member(index_path of, slice name);
index_path index_path_element(index_path of);             /* of an array */
index_path index_path_mixed(index_path a, uint64_t with); /* composite and special ones */

/* ---- values ---- */

void index_spell_type(buf *out, index_type type); /* undefined, null, false, true, array, object */
void index_spell_number(buf *out, double number);
void index_spell_string(buf *out, slice text);
void index_spell_prefix(buf *out, slice text); /* what all strings that begin so begin with; of a long one a part of it */
void index_spell_element(buf *out, const doc_element *e);
void index_spell_downward(buf *out, size_t from); /* inverts what was added since */

/* A spelled value taken apart. */
typedef struct index_value {
    index_type type;
    double number; /* INDEX_NUMBER */
    slice text;    /* INDEX_STRING: as spelled, without its end; index_unescape makes it what it was */
    bool whole;    /* all of the value is here */
    size_t n;      /* bytes it takes */
} index_value;

bool index_value_read(slice spelled, index_value *value_out); /* false: not one */
void index_unescape(buf *out, slice text);

/* Whole numbers from here on are not told apart by a double. */
#define INDEX_NUMBER_EXACT 9007199254740992.0
