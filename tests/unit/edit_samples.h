/* edit_samples.h — kinds of edits and conditions for tests, as front ends would implement them: a counter, compare-and-set, Table's
 * InsertOrMerge, delete-if; and some that are long, wrong or too large on purpose. They also show how little code a kind needs. */
#pragma once

#include "item/item.h"

enum {
    EDIT_COUNTER = ITEM_EDIT_TESTS, /* {"by":n}: adds n to `n`; inserts the item if it is absent; replies {"n":…} */
    EDIT_SWAP,                      /* {"expected":x,"value":y}: sets `v` if it is x, else leaves; replies {"swapped":bool} */
    EDIT_MERGE,                     /* {"a":1,…}: merges these properties into the item; inserts it if absent */
    EDIT_DELETE_IF,                 /* {"v":x}: deletes if `v` is x, else leaves */
    EDIT_SPIN,                      /* {"steps":n,"told":bool}: takes n steps, then adds 1 to `n`; told: its estimate says n */
    EDIT_OTHER_ID,                  /* {…}: replaces the item by the argument, which may have another id */
};

enum {
    CONDITION_V = ITEM_CONDITION_TESTS, /* {"v":x}: `v` is x */
    CONDITION_SPIN,                     /* {"steps":n}: takes n steps, then holds */
};

/* ---- helpers ---- */

static inline int64_t sample_number(slice document, const char *name, int64_t otherwise) {
    bson_iter_t it;
    return document.n && doc_find_key(document, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : otherwise;
}

static inline bool sample_same(slice a, const char *of_a, slice b, const char *of_b) {
    doc_element x, y;
    return a.n && b.n && doc_find_member(a, slice_str(of_a), &x) && doc_find_member(b, slice_str(of_b), &y) && x.type == y.type &&
           slice_eq(x.value, y.value);
}

static inline slice sample_done(op *o, bson_t *made) {
    slice bytes = arena_copy(o->arena, slice_of(bson_get_data(made), made->len));
    bson_destroy(made);
    return bytes;
}

/* Copies the item without the properties in `over`; if it is absent, makes one with the addressed key (for containers with the partition
 * key /pk, a string). */
static inline void sample_without(bson_t *made, const item_edit_input *in, slice over) {
    bson_iter_t it, other;
    bson_init(made);
    if (!in->there) {
        bson_append_utf8(made, "id", -1, in->key->row.p, (int)in->key->row.n);
        bson_append_utf8(made, "pk", -1, in->key->partition.values[0].text.p, (int)in->key->partition.values[0].text.n);
        return;
    }
    bson_iter_init_from_data(&it, (const uint8_t *)in->body.p, in->body.n);
    while (bson_iter_next(&it)) {
        if (!doc_find_key(over, slice_str(bson_iter_key(&it)), &other)) {
            bson_append_iter(made, NULL, 0, &it);
        }
    }
}

static inline slice sample_one(op *o, const char *name, int64_t value) {
    bson_t made;
    bson_init(&made);
    bson_append_int64(&made, name, -1, value);
    return sample_done(o, &made);
}

static inline void sample_add(op *o, const item_edit_input *in, int64_t by, item_edit_result *result_out) {
    bson_t made;
    int64_t n = sample_number(in->body, "n", 0) + by;
    sample_without(&made, in, sample_one(o, "n", 0));
    bson_append_int64(&made, "n", -1, n);
    *result_out = (item_edit_result){.answer = ITEM_EDIT_PUT,
                                     .body = sample_done(o, &made),
                                     .reply = sample_one(o, "n", n),
                                     .note = sample_one(o, "by", n),
                                     .properties = 1};
}

/* ---- edits ---- */

static inline err counter_prepare(op *o, const container *c, slice argument, const void **ready_out) {
    (void)c;
    *ready_out = argument.p;
    return sample_number(argument, "by", 0) ? OK : op_fail(o, E_BAD_REQUEST, "A counter needs a number 'by' that is not 0.");
}

static inline err counter_apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    bson_iter_t it;
    if (!item_edit_pay(b, item_edit_steps(in->body.n))) {
        return item_edit_too_long(o);
    }
    if (in->there && doc_find_key(in->body, SLICE_LIT("n"), &it) && !BSON_ITER_HOLDS_NUMBER(&it)) {
        return op_fail(o, E_BAD_REQUEST, "The counter 'n' is not a number.");
    }
    sample_add(o, in, sample_number(in->argument, "by", 0), result_out);
    return OK;
}

static inline err swap_apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    bson_t made;
    bson_iter_t it;
    bool swaps = sample_same(in->body, "v", in->argument, "expected");
    if (!item_edit_pay(b, item_edit_steps(in->body.n))) {
        return item_edit_too_long(o);
    }
    if (swaps && doc_find_key(in->argument, SLICE_LIT("value"), &it)) {
        sample_without(&made, in, sample_one(o, "v", 0));
        bson_append_iter(&made, "v", 1, &it);
        *result_out = (item_edit_result){.answer = ITEM_EDIT_PUT, .body = sample_done(o, &made)};
    }
    result_out->reply = sample_one(o, "swapped", swaps);
    return OK;
}

static inline err merge_apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    bson_t made;
    bson_iter_t it;
    if (!item_edit_pay(b, item_edit_steps(in->body.n + in->argument.n))) {
        return item_edit_too_long(o);
    }
    sample_without(&made, in, in->argument);
    bson_iter_init_from_data(&it, (const uint8_t *)in->argument.p, in->argument.n);
    while (bson_iter_next(&it)) {
        bson_append_iter(&made, NULL, 0, &it);
    }
    *result_out = (item_edit_result){.answer = ITEM_EDIT_PUT, .body = sample_done(o, &made)};
    return OK;
}

static inline err delete_if_apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    (void)o, (void)b;
    result_out->answer = sample_same(in->body, "v", in->argument, "v") ? ITEM_EDIT_DELETE : ITEM_EDIT_LEAVE;
    return OK;
}

static inline uint64_t spin_estimate(const item_edit_input *in) {
    return sample_number(in->argument, "told", 0) ? (uint64_t)sample_number(in->argument, "steps", 0) : 0;
}

static inline err spin_apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    for (int64_t i = sample_number(in->argument, "steps", 0); i > 0; i -= 100) {
        if (!item_edit_pay(b, 100)) {
            return item_edit_too_long(o);
        }
    }
    sample_add(o, in, 1, result_out);
    return OK;
}

static inline err other_apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    (void)o, (void)b;
    *result_out = (item_edit_result){.answer = ITEM_EDIT_PUT, .body = in->argument};
    return OK;
}

/* ---- conditions ---- */

static inline err v_check(op *o, const item_edit_input *in, item_edit_budget *b) {
    (void)o, (void)b;
    return sample_same(in->body, "v", in->argument, "v") ? OK : E_PRECONDITION;
}

static inline err spin_check(op *o, const item_edit_input *in, item_edit_budget *b) {
    return item_edit_pay(b, (uint64_t)sample_number(in->argument, "steps", 0)) ? OK : item_edit_too_long(o);
}

static inline void samples_register(void) {
    static const item_edit_kind edits[] = {
        {.id = EDIT_COUNTER, .name = "counter", .prepare = counter_prepare, .apply = counter_apply},
        {.id = EDIT_SWAP, .name = "swap", .needs_item = true, .apply = swap_apply},
        {.id = EDIT_MERGE, .name = "merge", .apply = merge_apply},
        {.id = EDIT_DELETE_IF, .name = "conditional delete", .frees = true, .apply = delete_if_apply},
        {.id = EDIT_SPIN, .name = "spin", .estimate = spin_estimate, .apply = spin_apply},
        {.id = EDIT_OTHER_ID, .name = "merge", .apply = other_apply},
    };
    static const item_condition_kind conditions[] = {
        {.id = CONDITION_V, .name = "v", .check = v_check},
        {.id = CONDITION_SPIN, .name = "spin", .estimate = spin_estimate, .check = spin_check},
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        item_edit_register(&edits[i]);
    }
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        item_condition_register(&conditions[i]);
    }
}
