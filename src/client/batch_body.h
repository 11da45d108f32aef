/* batch_body.h — operations of a batch or bulk request as JSON. */
#pragma once

#include "base/buf.h"

typedef struct batch_operation {
    const char *kind;
    const char *id, *body, *if_match; /* NULL: not given */
    slice key;                        /* the partition key's JSON array, for bulk; empty: not given */
} batch_operation;

/* Appends the operation, with a comma before it unless it is the first. False: its body is not one JSON value, or a text is not UTF-8. */
bool client__operation_add(buf *out, const batch_operation *o);
