/* triggers.h — within api/sql: a write of one item with the triggers that the request names.
 *
 * Triggers run when they are named, and only then: one before the write and one after it at most, as on the service. The write and all that
 * its triggers do are one transaction over the item's logical partition (script/transact.h). */
#pragma once

#include "api/sql/sql_int.h"

/* Finds the triggers that the fields name, for a write of this kind; q->triggers is NULL if there are none. The container is known. They
 * are given back when the request ends. E_BAD_REQUEST: not there, of another type, for another operation, too many. E_FORBIDDEN: with a
 * token for the item alone. */
MUST_CHECK err sql_triggers_find(sql_request *q, item_kind kind);

/* For requests that run none (patch, batch): naming one is a mistake that must not go unseen. E_BAD_REQUEST. */
MUST_CHECK err sql_triggers_none(sql_request *q, const char *what);

/* Runs them with q->one, which is prepared but for what item_check_body checks, since a trigger may change the body; its key is known, but
 * for the id of what is created. Answers. */
void sql_triggers_run(sql_request *q);

void sql_triggers_give(sql_triggers *triggers); /* NULL is nothing */
