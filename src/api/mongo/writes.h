/* writes.h — within api/mongo: runs the statements of update, delete and findAndModify, and collects errors of writes.
 *
 * A statement whose filter names one document is one edit, which the committer decides; neighbours of this kind are committed together.
 * Any other statement first finds its documents, page by page in creation order, and then edits each by its key. The edit checks the filter
 * again, since the document may have changed meanwhile; a statement for one document then looks for another one. An upsert that has found
 * nothing inserts. */
#pragma once

#include "api/mongo/scan.h"

/* ---- errors of single writes ---- */

typedef struct mongo_write_errors {
    buf out; /* elements of the array writeErrors */
    size_t n;
    err first; /* the code of the first one */
} mongo_write_errors;

/* The details of errors are left out when there are very many, so that the reply stays small. */
mongo_write_errors mongo_write_errors_new(void);
void mongo_write_errors_add(mongo_request *q, mongo_write_errors *e, size_t index, const op *o, err code, slice document);
void mongo_write_errors_answer(mongo_write_errors *e, mql_builder *b); /* adds writeErrors if there are any; frees them */

/* The first error as the command's own. Frees them. */
MUST_CHECK err mongo_first_error(mongo_request *q, mongo_write_errors *e);

/* Inserts documents into q->container, for another command. `documents` holds one after the other; the first one is the command's statement
 * number `first`. `done` finds the errors by mongo_insert_errors, and frees them. */
MUST_CHECK err mongo_insert_run(mongo_request *q, slice documents, size_t first, bool ordered, mongo_handler done);
mongo_write_errors *mongo_insert_errors(mongo_request *q);

/* ---- statements ---- */

typedef struct mongo_statement {
    slice filter;
    mql_value update; /* missing: a delete */
    slice array_filters, variables, sort;
    slice collation; /* as given; then, from mongo_writes_start on, what applies: empty for the simple one */
    mql_value hint;
    bool upsert, multi;

    /* result */
    uint64_t matched, modified;
    bool upserted;
    mql_value upserted_id;
} mongo_statement;

typedef struct mongo_writes {
    mongo_statement *list;
    size_t n;
    size_t base; /* the number of the first statement in its command */
    bool ordered;
    bool keeps;       /* findAndModify: keep the document before and after the change */
    item_image image; /* which of the two the receipt stores for a repetition */
    mongo_handler done;

    /* result */
    mongo_write_errors errors;
    slice before, after; /* in the request's arena; empty: none */
    size_t tried;        /* statements that were tried */

    /* state */
    size_t at;      /* the next statement */
    size_t batch_n; /* statements of the commit in progress, from `at` on */
    err refused;    /* the statement at `at` cannot be made ready; ops[0].op says why */
    item_edit edit; /* of a statement that finds its documents: parsed once for all of them */
    arena page;     /* keys and operations of a page of them */
    item_op *ops;
    item_key *keys; /* keys of the documents that a page has found */
    size_t keys_n;
    unsigned attempts;
    mongo_find find;
    mongo_scan scan;
    struct mongo_best *best; /* with a sort: the best document so far */
} mongo_writes;

void mongo_writes_start(mongo_request *q, mongo_writes *w); /* q->state is w until `done` */

/* Checks that a document may be stored, and moves its _id to the front, or adds a new one. */
MUST_CHECK err mongo_prepare_document(mongo_request *q, op *o, slice document, slice *prepared_out);
enum { MONGO_DOCUMENT_MAX = 16 * 1024 * 1024, MONGO_SERVICE_DOCUMENT_MAX = 2 * 1024 * 1024 };
