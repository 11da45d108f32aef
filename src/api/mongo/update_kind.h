/* update_kind.h — MongoDB's updates and deletes as edits of the core (item/edit.h): the committer checks the filter and applies the update
 * to the current document.
 *
 * The argument is {"q": filter, "u": update, "f": array filters, "let": variables, "now": date, "upsert": bool, "max": bytes, "s": bool}; a
 * delete has only q, let, now and s, which tells whether only the service's operators are allowed. The reply is {"n": 1} if the document
 * matches but is as it was, and {"id": its _id} if it was inserted. */
#pragma once

#include "item/edit.h"
#include "mql/match.h"
#include "mql/update.h"

void mongo_update_register(void);

typedef struct mongo_edit_ask {
    slice filter;
    mql_value update; /* missing: a delete */
    slice array_filters, variables, collation;
    int64_t now_ms;
    bool upsert;
    bool service; /* only what the service has */
    int32_t bytes_max;
} mongo_edit_ask;

item_edit mongo_edit_of(arena *a, const mongo_edit_ask *ask);

/* What the collection asks of its documents: its validator, 121 (DocumentValidationFailure), and that compound indexes can hold them, 171
 * (CannotIndexParallelArrays). Any thread. */
typedef struct mongo_validator mongo_validator;
MUST_CHECK err mongo_validator_read(op *o, const container *c, const mongo_validator **validator_out);     /* NULL: none */
MUST_CHECK err mongo_validate(op *o, arena *a, const mongo_validator *v, slice document, uint64_t *steps); /* counts the steps down */
