/* edit.h — edits and conditions: writes that depend on the current item, expressed as data.
 *
 * An *edit* gets the current item, or none, and its own argument; it answers put, delete or leave. A *condition* gets the same input, and
 * holds or fails. Any write may have conditions; ITEM_EDIT (item.h) is the write whose outcome an edit decides. Both are data: a kind and a
 * BSON argument. A kind is a small number that means the same on every node and in every release. The layer that implements a kind
 * registers its functions once, before the first write.
 *
 * Edits and conditions run on the committer's thread, which all writers of a store share. So each has a budget of steps and can be stopped.
 * A write that needs more than LIMIT_EDIT_STEPS, or involves more than LIMIT_EDIT_BYTES, is *prepared* outside (item_commit_prepare in
 * item.h): a worker runs it on the item as it reads it. The committer applies the prepared result if the item is still the same (number and
 * lsn), and otherwise has it prepared again. After LIMIT_EDIT_ATTEMPTS the committer runs the edit itself, with the larger budget
 * LIMIT_EDIT_STEPS_MAX: contention delays such a write, but never makes it fail.
 *
 * The functions of a kind are called on any thread, and possibly several times for one write. Their result must depend on their input
 * only. */
#pragma once

#include "item/layout.h"

struct item_key;
struct item_op;

/* ---- kinds: add a line, never reuse a number ---- */

typedef enum item_edit_id {
    ITEM_EDIT_NONE = 0,
    ITEM_EDIT_PATCH = 1,        /* doc/patch.h; the argument is {"operations":[…]} or the bare array */
    ITEM_EDIT_MERGE = 2,        /* api/table/merge.c; the argument is an entity and how to merge it */
    ITEM_EDIT_MONGO_UPDATE = 3, /* api/mongo/update_kind.h; the argument is a filter and an update */
    ITEM_EDIT_MONGO_DELETE = 4, /* the same, without an update */
    ITEM_EDIT_CASSANDRA = 5,    /* api/cassandra/edit_kind.h; a change of a row */
    ITEM_EDIT_GREMLIN = 6,      /* api/gremlin/edit_kind.h; changes of properties */
    ITEM_EDIT_TESTS = 56,       /* unit tests use the ids from here on */
    ITEM_EDIT_IDS = 64
} item_edit_id;

typedef enum item_condition_id {
    ITEM_CONDITION_NONE = 0,
    ITEM_CONDITION_EXISTS = 1, /* no argument */
    ITEM_CONDITION_ABSENT = 2, /* no argument */
    ITEM_CONDITION_FILTER = 3, /* query/condition.h; the argument is {"filter":"FROM c WHERE …"} */
    ITEM_CONDITION_STAMP = 4,  /* api/table/merge.c; the argument is {"etag": text} */
    ITEM_CONDITION_TESTS = 56, /* unit tests use the ids from here on */
    ITEM_CONDITION_IDS = 64
} item_condition_id;

/* ---- the data ---- */

/* Kind and argument define an edit. `ready` is the argument as this process parsed it; it is never sent or stored. */
typedef struct item_edit {
    uint16_t kind; /* item_edit_id */
    slice argument;
    const void *ready;
} item_edit;

typedef struct item_condition {
    uint16_t kind; /* item_condition_id */
    slice argument;
    const void *ready;
} item_condition;

/* ---- input and result of a kind ---- */

typedef struct item_edit_input {
    const container *container;
    const struct item_key *key; /* key of the addressed item, whether or not it exists */
    bool there;                 /* false: head and body are empty */
    item_head head;
    slice body;
    slice argument;
    const void *ready;
} item_edit_input;

/* One step is about 10 ns. */
typedef struct item_edit_budget {
    uint64_t steps; /* steps left */
    bool exceeded;
} item_edit_budget;

/* Pay before doing the work. False: the budget is spent, and the kind must return item_edit_too_long at once. */
static inline bool item_edit_pay(item_edit_budget *b, uint64_t steps) {
    b->exceeded = b->exceeded || steps > b->steps;
    b->steps = b->exceeded ? 0 : b->steps - steps;
    return !b->exceeded;
}

/* The steps to read or copy this many bytes of BSON once. */
static inline uint64_t item_edit_steps(size_t bytes) {
    return 1 + bytes / 64;
}

MUST_CHECK err item_edit_too_long(op *o); /* E_EDIT_TOO_LONG with its error text */

typedef enum item_edit_answer {
    ITEM_EDIT_LEAVE, /* writes nothing: no new lsn, no change in the change feed */
    ITEM_EDIT_PUT,   /* inserts if the item is absent, otherwise replaces */
    ITEM_EDIT_DELETE /* leaves if the item is absent */
} item_edit_answer;

typedef struct item_edit_result {
    item_edit_answer answer;
    slice body;          /* for put: BSON in the op's arena, with the key of the addressed item */
    slice reply;         /* small BSON for the client in the op's arena, such as a counter's new value; may be empty */
    slice note;          /* for put: BSON in the op's arena that the log of versions keeps with the new version, for readers of the log
                            (follow_change.note); empty: none. Not needed if the container keeps no versions */
    uint32_t properties; /* number of properties changed, if the charge depends on it (CHARGE_PATCHED_PROPERTY) */
} item_edit_result;

/* ---- registering ---- */

/* Parses and checks an argument, on the thread that submits the write. *ready_out lives in the op's arena. Fails with E_BAD_REQUEST or
 * similar and an error text. */
typedef err (*item_edit_prepare_fn)(op *o, const container *c, slice argument, const void **ready_out);

typedef struct item_edit_kind {
    uint16_t id;
    const char *name;             /* a noun for error texts: "A patch cannot …" */
    bool needs_item;              /* if the item is absent it fails with E_NOT_FOUND, before conditions are checked */
    bool frees;                   /* it never puts, so it is accepted even when the disk is nearly full */
    item_edit_prepare_fn prepare; /* NULL: the argument is used as it is */
    /* Estimates the steps for this item. NULL: the steps of reading item and argument once. */
    uint64_t (*estimate)(const item_edit_input *in);
    err (*apply)(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out);
} item_edit_kind;

typedef struct item_condition_kind {
    uint16_t id;
    const char *name;
    item_edit_prepare_fn prepare;
    uint64_t (*estimate)(const item_edit_input *in);
    /* OK, E_PRECONDITION, or an error if the check itself fails. */
    err (*check)(op *o, const item_edit_input *in, item_edit_budget *b);
} item_condition_kind;

/* At start, before the first write. Registering the same kind again does nothing. The caller owns the kinds and never frees them. */
void item_edit_register(const item_edit_kind *kind);
void item_condition_register(const item_condition_kind *kind);
const item_edit_kind *item_edit_kind_of(uint16_t id); /* NULL: not registered */
const item_condition_kind *item_condition_kind_of(uint16_t id);

/* ---- before a write is submitted ---- */

/* Prepares edit and conditions of a write, so that a bad argument is reported at once. item_commit_submit does this for writes that are not
 * ready. */
MUST_CHECK err item_edit_make_ready(op *o, const container *c, struct item_op *op);

/* Runs conditions and edit of a write on an item that the caller provides, such as a transaction that sees its own writes. Without an edit
 * the result is empty. E_EDIT_TOO_LONG: the budget is spent. On OK the key of the new body has been checked, and *ttl_out is its ttl. */
MUST_CHECK err item_edit_run(op *o, struct item_op *op, item_edit_input *in, item_edit_budget *b, item_edit_result *result_out,
                             int32_t *ttl_out);
