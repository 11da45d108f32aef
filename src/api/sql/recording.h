/* recording.h — within api/sql: the answered request as a line of `tesela serve --record` (base/recording.h). Names, keys and queries with
 * their parameters; no header fields, no bodies of items. */
#pragma once

#include "api/sql/sql_int.h"

void sql_record(const sql_request *q);
