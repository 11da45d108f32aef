/* triggers.h — within api/sql: a write of one item with the triggers that the request names.
 *
 * Triggers run only if the request names them: at most one before the write and one after it, as on the service. The write and everything
 * that its triggers do are one transaction over the item's logical partition (script/execute.h). */
#pragma once

#include "api/sql/sql_int.h"

/* Finds the triggers that the fields name, for a write of this kind; q->triggers stays NULL if there are none. The container must be set.
 * The triggers are released when the request ends. E_BAD_REQUEST: not found, of another type, for another operation, or too many.
 * E_FORBIDDEN: the request's token is for a single item. */
MUST_CHECK err sql_triggers_find(sql_request *q, item_kind kind);

/* For requests that cannot run triggers (patch, batch): rejects a request that names one, so that the mistake does not go unnoticed.
 * E_BAD_REQUEST. */
MUST_CHECK err sql_triggers_none(sql_request *q, const char *what);

/* Runs the triggers around the write q->one, and answers. q->one is prepared except for what item_check_body checks, since a trigger may
 * change the body. Its key is known, except for the id of an item to create. */
void sql_triggers_run(sql_request *q);

void sql_triggers_give(sql_triggers *triggers); /* NULL is allowed */
