/* collation.h — how strings compare in a language: MongoDB's collation document ({locale: "de", strength: 1, …}), by ICU.
 *
 * A collation is constant, and may be used by several threads. */
#pragma once

#include "mql/run.h"

/* From the command's collation document. {locale: "simple"} gives NULL, which compares by bytes. E_BAD_REQUEST with MongoDB's code. The
 * caller closes it when nothing uses it any more. */
MUST_CHECK err mql_collation_open(op *o, slice document, mql_collation **collation_out);
void mql_collation_close(mql_collation *c); /* NULL is allowed */

int mql_collation_compare(const mql_collation *c, slice a, slice b);

/* Appends bytes that are equal for equal strings and sort as the strings compare. */
void mql_collation_key(const mql_collation *c, slice text, buf *out);

/* The same, kept for the life of the process and given to everyone who asks for the same document; for collations of collections and
 * indexes, which have no end of their own. There are up to MQL_COLLATIONS_MAX of them; 67 beyond that. */
enum { MQL_COLLATIONS_MAX = 256 };
MUST_CHECK err mql_collation_shared(op *o, slice document, const mql_collation **collation_out);
