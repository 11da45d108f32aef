/* aggregate_write.h — within api/mongo: $out and $merge. */
#pragma once

#include "api/mongo/batch.h"
#include "mql/pipeline.h"

/* Whether the client may write there, and the target is supported. */
MUST_CHECK err mongo_target_check(mongo_request *q, op *o, const mql_target *t);

/* Writes the documents, which live as long as the request, and answers with an empty cursor. */
MUST_CHECK err mongo_target_write(mongo_request *q, const mql_target *t, slice documents);
