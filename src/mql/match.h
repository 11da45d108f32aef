/* match.h — filters ({a: {$gt: 1}, $or: […]}): parsed once, tested against many documents, with MongoDB's rules for arrays and null.
 *
 * The operators are rows of one table, which also says what Azure's service offers. A parsed filter is constant and may be used by several
 * threads. Planning by index (which conditions the core's index can serve) is the front end's (api/mongo/plan.h); for it the tree can be
 * read through match_tree.h. */
#pragma once

#include "mql/expression.h"
#include "text/search.h"

typedef struct mql_match mql_match;

/* The collection's text index, which $text searches: mql_scope.text. After a match, the run's metadata has the score, {textScore: 1.1}. */
typedef struct mql_text_field {
    slice path; /* "$**": every string of the document */
    double weight;
} mql_text_field;

typedef struct mql_text_index {
    const mql_text_field *fields;
    size_t n;
    search_language language; /* of documents that name no other */
    slice override;           /* the field of a document that names its language */
} mql_text_index;

/* Reads {weights: {title: 10, body: 1}, default_language: "spanish", language_override: "idioma"}; slices point into `spec`. E_BAD_REQUEST
 * with code 67. */
MUST_CHECK err mql_text_index_read(op *o, slice spec, mql_text_index *index_out);

/* The tree lives in the arena of the scope's operation. E_BAD_REQUEST with MongoDB's code and message. */
MUST_CHECK err mql_match_parse(mql_scope *s, slice filter, const mql_match **match_out);

/* A condition on one value, for mql_matches_value: {$gt: 1, $lt: 5}, a regular expression, or a value that it must equal. */
MUST_CHECK err mql_match_parse_value(mql_scope *s, mql_value condition, const mql_match **match_out);

/* Where in the document it matched: the index of the matching element in the outermost array on the way, for the positional operators
 * (`a.$` of updates and projections); -1: no array. If several conditions match in arrays, the last one counts. */
typedef struct mql_matched {
    int64_t position;
} mql_matched;

/* Tests the document in `r->root`. `matched_out` may be NULL. */
MUST_CHECK err mql_matches(mql_run *r, const mql_match *m, bool *matches_out, mql_matched *matched_out);

/* Tests a value that is not a whole document, such as the elements of an array that $pull removes. `matched_out` may be NULL. */
MUST_CHECK err mql_matches_value(mql_run *r, const mql_match *m, mql_value v, bool *matches_out, mql_matched *matched_out);
