/* plain.h — rows that go straight from the stored item to the result.
 *
 * Most rows are plain: an INSERT without a time to live has left them, and the row and all its cells are alive and of the same age (row.h
 * has the stored form). If a SELECT wants columns of the table and nothing else is asked of a row, its cells need not be made: each value
 * is copied, or its bytes turned round. Where the values lie, and how each is copied, is planned once for a result.
 *
 * One thread at a time; the plan is in the arena of the operation. */
#pragma once

#include "api/cassandra/selection.h"

typedef struct cass_plain cass_plain;

/* NULL: the selection has more than columns, or rows of the table are never plain. */
cass_plain *cass_plain_make(op *o, const cass_selection *s);

/* Finds the values of a row. False: it is not plain, and has to be read as cells. */
bool cass_plain_find(cass_plain *p, slice body);

/* Appends the row that was found last. E_BAD_REQUEST: a value is not of its column's type. */
MUST_CHECK err cass_plain_put(op *o, const cass_plain *p, buf *out);
