/* insert: the documents are committed in chunks. */
#include "api/mongo/collections.h"
#include "api/mongo/plan.h"
#include "api/mongo/retry.h"
#include "api/mongo/transaction.h"
#include "api/mongo/update_kind.h"
#include "api/mongo/work.h"
#include "api/mongo/writes.h"

enum { CHUNK_DOCUMENTS = 256, CHUNK_BYTES = 4 * 1024 * 1024, DOCUMENTS_MAX = 100000 };

typedef struct insertion {
    mongo_list list;
    bool ordered, ended;
    size_t index; /* index of the next document */
    item_op *ops;
    size_t *indexes; /* indexes of the chunk's documents in the command */
    size_t n;
    uint64_t inserted;
    mongo_write_errors errors;
    item_op *refused; /* ordered: the invalid document that ends the insert, after the chunk before it was committed */
    err refused_code;
    const mongo_validator *validator;
    mongo_handler done;
} insertion;

static insertion *insertion_of(mongo_request *q) {
    return q->state;
}

static err answer(mongo_request *q) {
    insertion *x = insertion_of(q);
    mql_builder *b = mongo_answer(q);
    mongo_add_int(b, "n", (int32_t)x->inserted);
    mongo_write_errors_answer(&x->errors, b);
    mongo_end(q);
    return OK;
}

/* ---- one document ---- */

static err prepare(mongo_request *q, slice document, item_op *o) {
    insertion *x = insertion_of(q);
    item_key unused;
    *o = (item_op){.kind = ITEM_CREATE};
    op_init(&o->op, q->frame->arena, q->op.now_s);
    o->receipt = mongo_receipt_of(q, x->index, ITEM_IMAGE_NONE);
    TRY(mongo_prepare_document(q, &o->op, document, &o->body));
    TRY(mongo_key_of(&o->op, q->container, o->body, &unused));
    TRY(mongo_validate(&o->op, q->frame->arena, x->validator, o->body, &q->steps));
    return item_check_body(&o->op, q->container, NULL, o);
}

/* ---- chunks ---- */

static void next_chunk(mongo_request *q);

static void note_refused(mongo_request *q) {
    insertion *x = insertion_of(q);
    if (x->refused && !x->errors.n) {
        mongo_write_errors_add(q, &x->errors, x->index - 1, &x->refused->op, x->refused_code, SLICE_EMPTY);
    }
}

static void chunk_decided(call *c) {
    mongo_request *q = (mongo_request *)c;
    insertion *x = insertion_of(q);
    for (size_t i = 0; i < x->n && !(x->ordered && x->errors.n); i++) {
        const item_op *o = &x->ops[i];
        err code = c->code != OK && c->code != E_THROTTLED ? c->code : o->code;
        if (code == OK) {
            x->inserted++;
        } else {
            mongo_write_errors_add(q, &x->errors, x->indexes[i], o->code == OK ? &q->op : &o->op, code, o->body);
        }
    }
    q->op.detail_n = 0;
    call_commit_give(&q->call.commit);
    note_refused(q);
    next_chunk(q);
}

/* Fills the chunk with valid documents. In an ordered insert, an invalid document ends it. */
static err fill_chunk(mongo_request *q) {
    insertion *x = insertion_of(q);
    size_t bytes = 0;
    slice document;
    while (!x->ended && x->n < CHUNK_DOCUMENTS && bytes < CHUNK_BYTES) {
        TRY(op_check(&q->op));
        q->steps = LIMIT_EDIT_STEPS_MAX; /* of the validator */
        if (!mongo_list_next(&x->list, &document)) {
            x->ended = true;
            break;
        }
        item_op *o = &x->ops[x->n];
        err code = prepare(q, document, o);
        if (code == OK) {
            x->indexes[x->n++] = x->index;
            bytes += document.n;
        } else if (x->ordered) {
            x->refused = o;
            x->refused_code = code;
            x->ended = true;
        } else {
            mongo_write_errors_add(q, &x->errors, x->index, &o->op, code, document);
        }
        x->index++;
    }
    if (!x->n) {
        note_refused(q);
    }
    return OK;
}

static void commit_chunk(mongo_request *q, err code) {
    insertion *x = insertion_of(q);
    if (code == OK && x->n) {
        mongo_commit(q, x->ops, x->n, x->ordered, chunk_decided);
        return;
    }
    if (code != OK) { /* the rest was not tried */
        mongo_write_errors_add(q, &x->errors, x->index, &q->op, code, SLICE_EMPTY);
    }
    code = x->done(q);
    if (code != OK) {
        buf_free(&x->errors.out);
        mongo_fail(q, code);
    }
}

static void next_chunk(mongo_request *q) {
    insertion *x = insertion_of(q);
    x->n = 0;
    if (x->ended || (x->ordered && x->errors.n)) {
        commit_chunk(q, OK);
    } else {
        mongo_work(q, q->large || x->validator, fill_chunk, commit_chunk);
    }
}

/* ---- the command ---- */

static err start(mongo_request *q) {
    insertion *x = insertion_of(q);
    bool bypass = false;
    TRY(mongo_arg_bool(q, "bypassDocumentValidation", &bypass));
    if (!bypass) {
        TRY(mongo_validator_read(&q->op, q->container, &x->validator));
    }
    x->errors = mongo_write_errors_new();
    next_chunk(q);
    return OK;
}

err mongo_insert(mongo_request *q) {
    insertion *x = q->state = arena_new(q->frame->arena, insertion);
    size_t n;
    x->done = answer;
    x->ordered = true;
    TRY(mongo_arg_bool(q, "ordered", &x->ordered));
    TRY(mongo_list_begin(q, "documents", &x->list, &n));
    if (n == 0 || n > DOCUMENTS_MAX) {
        return op_fail_as(&q->op, E_BAD_REQUEST, 16, "Write batch sizes must be between 1 and %d. Got %zu operations.", DOCUMENTS_MAX, n);
    }
    TRY(mongo_need_writable(q));
    size_t room = n < CHUNK_DOCUMENTS ? n : CHUNK_DOCUMENTS;
    x->ops = arena_array(q->frame->arena, item_op, room);
    x->indexes = arena_array(q->frame->arena, size_t, room);
    if (q->container) {
        return start(q);
    }
    if (!(q->conn->reach.verbs & ACCESS_CREATE)) {
        return access_refuse(&q->op);
    }
    mongo_creation *c = arena_new(q->frame->arena, mongo_creation);
    *c = (mongo_creation){.collection = q->collection, .may_exist = true, .then = start};
    mongo_create_collection(q, c);
    return OK;
}

/* ---- for other commands ---- */

err mongo_insert_run(mongo_request *q, slice documents, size_t first, bool ordered, mongo_handler done) {
    insertion *x = q->state = arena_new(q->frame->arena, insertion);
    *x = (insertion){.list = {.rest = documents, .is_sequence = true}, .ordered = ordered, .index = first, .done = done};
    x->ops = arena_array(q->frame->arena, item_op, CHUNK_DOCUMENTS);
    x->indexes = arena_array(q->frame->arena, size_t, CHUNK_DOCUMENTS);
    return start(q);
}

mongo_write_errors *mongo_insert_errors(mongo_request *q) {
    return &insertion_of(q)->errors;
}
