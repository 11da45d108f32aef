/* aggregate.h — within api/mongo: a running aggregation, which a cursor keeps between two batches. */
#pragma once

#include "api/mongo/batch.h"
#include "mql/pipeline.h"

typedef struct mongo_aggregation mongo_aggregation;

void mongo_aggregation_free(mongo_aggregation *a);
void mongo_aggregation_continue(mongo_request *q); /* fills the batch in q->state, and answers */
