/* update_description.h — what an update changed, for change streams: the updateDescription of an update event. */
#pragma once

#include "mql/run.h"

/* {updatedFields: {"a.b": 1, …}, removedFields: ["c"], truncatedArrays: [{field: "d", newSize: 2}]}, which turns `before` into `after`.
 * Paths are dotted. Nested documents and arrays are compared member by member; one that changed so much that its new value is shorter than
 * the changes is given as a whole. In the run's arena. */
MUST_CHECK err mql_difference_of(mql_run *r, slice before, slice after, slice *description_out);
