/* edit.h — edits and conditions: writes that depend on what is there, as data.
 *
 * An *edit* gets an item as it is, or nothing, and its own argument; it answers put, delete or leave. A *condition* gets the same and holds
 * or does not. A write of any kind may have conditions; ITEM_EDIT (item.h) is the write that an edit decides. Both are data: a kind, which
 * is a small number that means the same on every node and in every release, and a BSON argument. The layer that knows a kind registers its
 * functions once, before the first write.
 *
 * Edits and conditions run where the write is decided, on the committer's thread, which all writers of a store share. So each has a budget
 * of steps and may be stopped. A write that needs more than LIMIT_EDIT_STEPS, or is about more than LIMIT_EDIT_BYTES, is *prepared* outside
 * (item_commit_prepare in item.h): on a worker, over the item as it is read there. The committer applies what was prepared if the item is
 * still the same (number and lsn), and otherwise has it prepared again. After LIMIT_EDIT_ATTEMPTS the committer runs the edit itself, with
 * the larger budget LIMIT_EDIT_STEPS_MAX: a busy item delays such a write, but never makes it fail.
 *
 * The functions of a kind are called on any thread and more than once for one write. They must depend on nothing but their input. */
#pragma once

#include "item/layout.h"

struct item_key;
struct item_op;

/* ---- kinds: add a line, never reuse a number ---- */

typedef enum item_edit_id {
    ITEM_EDIT_NONE = 0,
    ITEM_EDIT_PATCH = 1,  /* doc/patch.h; the argument is {"operations":[…]} or the bare array */
    ITEM_EDIT_TESTS = 56, /* from here on: of unit tests */
    ITEM_EDIT_IDS = 64
} item_edit_id;

typedef enum item_condition_id {
    ITEM_CONDITION_NONE = 0,
    ITEM_CONDITION_EXISTS = 1, /* no argument */
    ITEM_CONDITION_ABSENT = 2, /* no argument */
    ITEM_CONDITION_FILTER = 3, /* query/condition.h; the argument is {"filter":"FROM c WHERE …"} */
    ITEM_CONDITION_TESTS = 56, /* from here on: of unit tests */
    ITEM_CONDITION_IDS = 64
} item_condition_id;

/* ---- what travels ---- */

/* Kind and argument are the whole of an edit. `ready` is what this process made of the argument, and does not travel. */
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

/* ---- what a kind is given, and answers ---- */

typedef struct item_edit_input {
    const container *container;
    const struct item_key *key; /* of the item that is asked for, whether or not it is there */
    bool there;                 /* false: head and body are empty */
    item_head head;
    slice body;
    slice argument;
    const void *ready;
} item_edit_input;

/* Steps of about 10 ns. */
typedef struct item_edit_budget {
    uint64_t steps; /* that are left */
    bool exceeded;
} item_edit_budget;

/* False: the budget is spent; the kind returns item_edit_too_long at once. Pay before the work. */
static inline bool item_edit_pay(item_edit_budget *b, uint64_t steps) {
    b->exceeded = b->exceeded || steps > b->steps;
    b->steps = b->exceeded ? 0 : b->steps - steps;
    return !b->exceeded;
}

/* What it takes to look at, or copy, so many bytes of BSON once. */
static inline uint64_t item_edit_steps(size_t bytes) {
    return 1 + bytes / 64;
}

MUST_CHECK err item_edit_too_long(op *o); /* E_EDIT_TOO_LONG with its sentence */

typedef enum item_edit_answer {
    ITEM_EDIT_LEAVE, /* nothing is written: no new lsn, no change for those who follow */
    ITEM_EDIT_PUT,   /* inserts where nothing is, replaces otherwise */
    ITEM_EDIT_DELETE /* where nothing is: leaves */
} item_edit_answer;

typedef struct item_edit_result {
    item_edit_answer answer;
    slice body;          /* put: BSON in the op's arena, with the key that was asked for */
    slice reply;         /* small BSON for the client in the op's arena, such as a counter's new value; may be empty */
    uint32_t properties; /* that it changed, if its charge depends on them (CHARGE_PATCHED_PROPERTY) */
} item_edit_result;

/* ---- registering ---- */

/* Reads and checks an argument, on the thread that submits the write: E_BAD_REQUEST and friends with a sentence. What it makes lives in the
 * op's arena. */
typedef err (*item_edit_prepare_fn)(op *o, const container *c, slice argument, const void **ready_out);

typedef struct item_edit_kind {
    uint16_t id;
    const char *name;             /* a noun, for sentences: "A patch cannot …" */
    bool needs_item;              /* where nothing is it fails with E_NOT_FOUND, before conditions are asked */
    bool frees;                   /* it never puts: it is let through when the disk is nearly full */
    item_edit_prepare_fn prepare; /* NULL: the argument is used as it is */
    /* How many steps it will take of this item, if that can be told; NULL: those of one look at item and argument. */
    uint64_t (*estimate)(const item_edit_input *in);
    err (*apply)(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out);
} item_edit_kind;

typedef struct item_condition_kind {
    uint16_t id;
    const char *name;
    item_edit_prepare_fn prepare;
    uint64_t (*estimate)(const item_edit_input *in);
    /* OK, E_PRECONDITION, or why it cannot be said. */
    err (*check)(op *o, const item_edit_input *in, item_edit_budget *b);
} item_condition_kind;

/* At start, before the first write; again with the same kind does nothing. The kinds are the caller's and stay where they are. */
void item_edit_register(const item_edit_kind *kind);
void item_condition_register(const item_condition_kind *kind);
const item_edit_kind *item_edit_kind_of(uint16_t id); /* NULL: nobody registered it */
const item_condition_kind *item_condition_kind_of(uint16_t id);

/* ---- before a write is submitted ---- */

/* Makes edit and conditions of a write ready, so that a bad argument is told at once. item_commit_submit does it for those that are not. */
MUST_CHECK err item_edit_make_ready(op *o, const container *c, struct item_op *op);

/* Runs conditions and edit of a write over an item as the caller has it, as a transaction does that sees its own writes. Without an edit
 * the result is empty. E_EDIT_TOO_LONG when the budget is spent. The new body's key has been checked, and *ttl_out is its ttl. */
MUST_CHECK err item_edit_run(op *o, struct item_op *op, item_edit_input *in, item_edit_budget *b, item_edit_result *result_out,
                             int32_t *ttl_out);
