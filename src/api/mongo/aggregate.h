/* aggregate.h — within api/mongo: a running aggregation, which a cursor keeps between two batches. */
#pragma once

#include "api/mongo/batch.h"
#include "api/mongo/scan.h"
#include "mql/pipeline.h"

typedef struct mongo_aggregation mongo_aggregation;

/* A pipeline to be run over q->container (NULL: nothing). Hints and collations are the command's. */
typedef struct mongo_pipeline {
    slice stages; /* an array */
    slice let;    /* empty: none */
    int64_t batch_size;
    bool single, no_timeout;
    mongo_scan *scan; /* gets the documents by `take`, and then `done`; NULL: they are answered, with a cursor */
} mongo_pipeline;

void mongo_pipeline_run(mongo_request *q, const mongo_pipeline *p);

/* What the first stage after the source's needs of the documents. */
void mongo_want_of_source(const mql_source *source, bool in_transaction, mongo_find *f);

void mongo_aggregation_free(mongo_aggregation *a);
void mongo_aggregation_continue(mongo_request *q); /* fills the batch in q->state, and answers */
