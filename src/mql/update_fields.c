/* update_fields.c — $set, $setOnInsert, $unset, $currentDate and $rename. */
#include "mql/show.h"
#include "mql/update_int.h"

static err set(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    (void)c, (void)old;
    *new_out = leaf->operand;
    return OK;
}

const mql__modifier mql__set_modifier = {SLICE_LIT("$set"), .apply = set};

static err set_on_insert(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    *new_out = c->inserting ? leaf->operand : old;
    return OK;
}

static err unset(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    (void)c, (void)leaf, (void)old;
    *new_out = mql_missing();
    return OK;
}

/* ---- $currentDate ---- */

static const char as_timestamp[] = "timestamp";

static err parse_current_date(mql__update_parser *p, mql__leaf *leaf) {
    op *o = p->scope->op;
    doc_walk w;
    doc_element e;
    if (leaf->operand.type == BSON_TYPE_BOOL) {
        return OK;
    }
    if (leaf->operand.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 2,
                        "%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: "
                        "'timestamp/date'}).",
                        mql_type_name(leaf->operand.type));
    }
    bool typed = false;
    for (doc_walk_init(&w, leaf->operand.bytes); doc_walk_next(&w, &e); typed = true) {
        if (!slice_eq(e.key, SLICE_LIT("$type"))) {
            return mql_fail(o, 2, "Unrecognized $currentDate option: %.*s", slice_shown(e.key), e.key.p);
        }
        slice name = e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
        bool timestamp = slice_eq(name, SLICE_LIT("timestamp"));
        typed = timestamp || slice_eq(name, SLICE_LIT("date"));
        leaf->detail = timestamp ? as_timestamp : NULL;
        if (!typed) {
            break;
        }
    }
    return typed ? OK
                 : mql_fail(o, 2,
                            "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}");
}

static err current_date(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    (void)old;
    mql_run *r = c->run;
    *new_out = leaf->detail ? mql_timestamp(r->arena, (uint32_t)(r->now_ms / 1000), 1) : mql_date(r->arena, r->now_ms);
    return OK;
}

/* ---- $rename ----
 *
 * {$rename: {a: "b"}} makes two leaves: one at a, which removes it, and one at b, which takes the value that a had. */

static err rename_target(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out);
static const mql__modifier target_modifier = {SLICE_LIT("$rename"), .apply = rename_target};

static bool is_dynamic(const mql__leaf *leaf) {
    for (size_t i = 0; i < leaf->parts_n; i++) {
        if (slice_starts(leaf->parts[i], SLICE_LIT("$"))) {
            return true;
        }
    }
    return false;
}

static bool is_prefix(slice path, slice of) {
    return slice_starts(of, path) && of.p[path.n] == '.';
}

static err parse_rename(mql__update_parser *p, mql__leaf *source) {
    op *o = p->scope->op;
    mql__leaf *target;
    slice from = source->path;
    const char *shown = mql__show(o->arena, source->operand);
    if (!mql_is_text(source->operand)) {
        return mql_fail(o, 2, "The 'to' field for $rename must be a string: %.*s: %s", slice_shown(from), from.p, shown);
    }
    slice to = mql_as_text(source->operand);
    if (is_dynamic(source)) {
        return mql_fail(o, 2, "The source field for $rename may not be dynamic: %.*s", slice_shown(from), from.p);
    }
    if (memchr(to.p, 0, to.n)) {
        return mql_fail(o, 2, "The 'to' field for $rename cannot contain an embedded null byte");
    }
    if (slice_eq(from, to)) {
        return mql_fail(o, 2, "The source and target field for $rename must differ: %.*s: %s", slice_shown(from), from.p, shown);
    }
    if (is_prefix(from, to) || is_prefix(to, from)) {
        return mql_fail(o, 2, "The source and target field for $rename must not be on the same path: %.*s: %s", slice_shown(from), from.p,
                        shown);
    }
    mql__leaf *kept = arena_new(o->arena, mql__leaf); /* `source` moves when leaves are sorted */
    *kept = *source;
    TRY(mql__update_add(p, &target_modifier, to, source->operand, &target));
    target->detail = kept;
    return is_dynamic(target) ? mql_fail(o, 2, "The destination field for $rename may not be dynamic: %.*s", slice_shown(to), to.p) : OK;
}

/* The value at the path; fails if an array is on the way. */
static err value_at(mql__change *c, const mql__leaf *leaf, const char *side, mql_value *value_out) {
    mql_value v = c->root;
    for (size_t i = 0; i < leaf->parts_n && !mql_is_missing(v); i++) {
        if (v.type == BSON_TYPE_ARRAY) {
            slice array = leaf->parts[i - 1];
            return mql_fail(c->run->op, 2,
                            "The %s field cannot be an array element, '%.*s' in doc with %s has an array field called '%.*s'", side,
                            slice_shown(leaf->path), leaf->path.p, mql__show_id(c), slice_shown(array), array.p);
        }
        v = mql_member(v, leaf->parts[i]);
    }
    *value_out = v;
    return OK;
}

static err rename_target(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    mql_value moved = mql_missing(), there;
    TRY(mql_pay(c->run, 8));
    TRY(value_at(c, leaf->detail, "source", &moved));
    if (mql_is_missing(moved)) {
        *new_out = old;
        return OK;
    }
    TRY(value_at(c, leaf, "destination", &there));
    *new_out = moved;
    return OK;
}

static const mql__modifier rows[] = {
    {SLICE_LIT("$set"), .apply = set},
    {SLICE_LIT("$setOnInsert"), .apply = set_on_insert},
    {SLICE_LIT("$unset"), .apply = unset},
    {SLICE_LIT("$currentDate"), .parse = parse_current_date, .apply = current_date},
    {SLICE_LIT("$rename"), .parse = parse_rename, .apply = unset},
};
const mql__modifiers mql__field_modifiers = {rows, sizeof rows / sizeof *rows};
