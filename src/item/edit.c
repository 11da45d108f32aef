/* Edits and conditions: the registry, and running those of a write. */
#include "item/edit.h"

#include <assert.h>

#include "item/edit_int.h"
#include "item/foreign.h"

/* ---- conditions that need no argument ---- */

static err check_exists(op *o, const item_edit_input *in, item_edit_budget *b) {
    (void)o, (void)b;
    return in->there ? OK : E_PRECONDITION;
}

static err check_absent(op *o, const item_edit_input *in, item_edit_budget *b) {
    (void)o, (void)b;
    return in->there ? E_PRECONDITION : OK;
}

static uint64_t estimate_nothing(const item_edit_input *in) {
    (void)in;
    return 0;
}

static const item_condition_kind exists = {
    .id = ITEM_CONDITION_EXISTS, .name = "exists", .estimate = estimate_nothing, .check = check_exists};
static const item_condition_kind absent = {
    .id = ITEM_CONDITION_ABSENT, .name = "absent", .estimate = estimate_nothing, .check = check_absent};

/* ---- registry: written at start, then only read ---- */

static const item_edit_kind *edits[ITEM_EDIT_IDS] = {[ITEM_EDIT_PATCH] = &item__edit_patch};
static const item_condition_kind *conditions[ITEM_CONDITION_IDS] = {
    [ITEM_CONDITION_EXISTS] = &exists,
    [ITEM_CONDITION_ABSENT] = &absent,
};

void item_edit_register(const item_edit_kind *kind) {
    assert(kind->id != ITEM_EDIT_NONE && kind->id < ITEM_EDIT_IDS && kind->apply);
    assert(!edits[kind->id] || edits[kind->id] == kind); /* an id must not get a second meaning */
    edits[kind->id] = kind;
}

void item_condition_register(const item_condition_kind *kind) {
    assert(kind->id != ITEM_CONDITION_NONE && kind->id < ITEM_CONDITION_IDS && kind->check);
    assert(!conditions[kind->id] || conditions[kind->id] == kind);
    conditions[kind->id] = kind;
}

const item_edit_kind *item_edit_kind_of(uint16_t id) {
    return id < ITEM_EDIT_IDS ? edits[id] : NULL;
}

const item_condition_kind *item_condition_kind_of(uint16_t id) {
    return id < ITEM_CONDITION_IDS ? conditions[id] : NULL;
}

err item_edit_too_long(op *o) {
    return op_fail(o, E_EDIT_TOO_LONG, "The write takes more than the %d steps that its edit and conditions may take: divide it.",
                   LIMIT_EDIT_STEPS_MAX);
}

/* ---- parsing arguments ---- */

static err prepare(op *o, const container *c, item_edit_prepare_fn prepare_fn, slice argument, const void **ready_out) {
    if (argument.n > LIMIT_EDIT_ARGUMENT_BYTES) {
        return op_fail(o, E_TOO_LARGE, "The argument of an edit or a condition may have %d bytes at most.", LIMIT_EDIT_ARGUMENT_BYTES);
    }
    return prepare_fn && !*ready_out ? prepare_fn(o, c, argument, ready_out) : OK;
}

err item_edit_make_ready(op *o, const container *c, item_op *op) {
    if (op->kind == ITEM_EDIT) {
        const item_edit_kind *kind = item_edit_kind_of(op->edit.kind);
        if (!kind) {
            return op_fail(o, E_BAD_REQUEST, "There is no edit of kind %u.", op->edit.kind);
        }
        TRY(prepare(o, c, kind->prepare, op->edit.argument, &op->edit.ready));
    }
    if (op->conditions_n > LIMIT_EDIT_CONDITIONS) {
        return op_fail(o, E_BAD_REQUEST, "A write may have %d conditions at most.", LIMIT_EDIT_CONDITIONS);
    }
    for (size_t i = 0; i < op->conditions_n; i++) {
        item_condition *condition = &op->conditions[i];
        const item_condition_kind *kind = item_condition_kind_of(condition->kind);
        if (!kind) {
            return op_fail(o, E_BAD_REQUEST, "There is no condition of kind %u.", condition->kind);
        }
        TRY(prepare(o, c, kind->prepare, condition->argument, &condition->ready));
    }
    op->ready = true;
    return OK;
}

/* ---- running: everything is ready, so all kinds are known ---- */

static uint64_t estimate(uint64_t (*by)(const item_edit_input *), item_edit_input *in, slice argument, const void *ready) {
    in->argument = argument;
    in->ready = ready;
    return by ? by(in) : item_edit_steps(in->body.n + argument.n);
}

bool item__edit_is_long(const item_op *op, item_edit_input *in) {
    uint64_t steps = 0;
    size_t bytes = in->body.n + op->edit.argument.n;
    for (size_t i = 0; i < op->conditions_n; i++) {
        const item_condition *condition = &op->conditions[i];
        steps += estimate(conditions[condition->kind]->estimate, in, condition->argument, condition->ready);
    }
    if (op->kind == ITEM_EDIT) {
        steps += estimate(edits[op->edit.kind]->estimate, in, op->edit.argument, op->edit.ready);
    }
    return steps > LIMIT_EDIT_STEPS || bytes > LIMIT_EDIT_BYTES;
}

/* The edited body must keep the item's key. */
static err check_edited(op *o, const item_edit_kind *kind, const item_edit_input *in, slice body, int32_t *ttl_out) {
    item_op whole = {.kind = ITEM_REPLACE, .key.row = in->key->row, .body = body};
    if (body.n > LIMIT_EDITED_BYTES) {
        return E_TOO_LARGE;
    }
    err code = item_check_body(o, in->container, in->container->key.n ? &in->key->partition : NULL, &whole);
    if (code == E_KEY_MISMATCH) {
        return op_fail(o, E_BAD_REQUEST, "A %s cannot change the item's partition key.", kind->name);
    }
    *ttl_out = whole.ttl;
    return code == OK && whole.row_after.n ? op_fail(o, E_BAD_REQUEST, "A %s cannot change the item's id.", kind->name) : code;
}

/* The owner of the container may refuse what a foreign edit makes of the item. */
static err adopt_edited(op *o, const item_op *op, const item_edit_input *in, item_edit_budget *b, item_edit_result *result) {
    return item_edit_pay(b, item_edit_steps(result->body.n)) ? item_adopt(o, in->container, op->foreign_ms, &result->body)
                                                             : item_edit_too_long(o);
}

static err run_edit(op *o, const item_op *op, item_edit_input *in, item_edit_budget *b, item_edit_result *result_out, int32_t *ttl_out) {
    const item_edit_kind *kind = edits[op->edit.kind];
    in->argument = op->edit.argument;
    in->ready = op->edit.ready;
    TRY(kind->apply(o, in, b, result_out));
    TRY(op->foreign_ms && result_out->answer == ITEM_EDIT_PUT ? adopt_edited(o, op, in, b, result_out) : OK);
    assert(result_out->answer == ITEM_EDIT_PUT ? !kind->frees : result_out->body.n == 0);
    if (result_out->reply.n > LIMIT_EDIT_REPLY_BYTES) {
        return E_TOO_LARGE;
    }
    return result_out->answer == ITEM_EDIT_PUT ? check_edited(o, kind, in, result_out->body, ttl_out) : OK;
}

err item_edit_run(op *o, item_op *op, item_edit_input *in, item_edit_budget *b, item_edit_result *result_out, int32_t *ttl_out) {
    *result_out = (item_edit_result){0};
    for (size_t i = 0; i < op->conditions_n; i++) {
        in->argument = op->conditions[i].argument;
        in->ready = op->conditions[i].ready;
        TRY(conditions[op->conditions[i].kind]->check(o, in, b));
    }
    return op->kind == ITEM_EDIT ? run_edit(o, op, in, b, result_out, ttl_out) : OK;
}
