/* batch.h — within api/mongo: the documents of a reply that has a cursor. */
#pragma once

#include "api/mongo/cursors.h"
#include "api/mongo/filter_kind.h"
#include "api/mongo/mongo_int.h"
#include "mql/project.h"

enum { MONGO_BATCH_FIRST = 101, MONGO_BATCH_BYTES = 16 * 1024 * 1024 };

typedef struct mongo_batch {
    mongo_cursor *cursor;
    bool is_first; /* firstBatch, otherwise nextBatch */
    bool single;   /* the cursor is closed after this batch */
    size_t rows_max;
    buf rows; /* elements of the reply's array */
    size_t rows_n;

    slice token;                /* position of a change stream after this batch; empty: none */
    const mql_project *project; /* NULL: whole documents */
    const mql_match *text;      /* the filter, if it has a $text whose score the projection may show; NULL: it has none */
    bool computes;              /* the projection may have expressions, which take time */
    mongo_scope scope;
    arena row;      /* of one document */
    uint64_t steps; /* of the projection of one document */
    err failed;
    void (*clean)(mongo_request *q); /* what the request had to free before; NULL: nothing */
} mongo_batch;

/* Prepares q->state for a batch of the cursor, and parses the projection. */
MUST_CHECK err mongo_batch_begin(mongo_request *q, mongo_cursor *c, int64_t batch_size, mongo_batch **batch_out);

/* batchSize of a cursor argument; -1: not given. */
int64_t mongo_batch_size(slice cursor);

/* A document as the client sees it; valid until the row's arena is reset. Any thread. */
MUST_CHECK err mongo_batch_show(mongo_request *q, mongo_batch *b, slice document, slice *shown_out);

/* Adds a document, as the projection shows it. False: the batch is full, or an error, which is in `failed`. Any thread. */
bool mongo_batch_add(mongo_request *q, mongo_batch *b, slice document);
void mongo_batch_clear(mongo_batch *b);

/* Adds the documents that the cursor holds. */
void mongo_batch_add_held(mongo_request *q, mongo_batch *b);

/* Keeps or closes the cursor, and answers. */
void mongo_batch_answer(mongo_request *q, err code);

/* Answers a command that lists things, with all of these documents. Those that do not fit into one batch go into a cursor. Takes ownership
 * of the buffer, which holds one document after the other. */
void mongo_answer_list(mongo_request *q, slice ns, buf *documents);
void mongo_answer_empty(mongo_request *q, slice ns);
