/* update_numbers.c — $inc, $mul, $min, $max and $bit. */
#include "mql/number.h"
#include "mql/show.h"
#include "mql/update_int.h"

/* ---- $inc and $mul ---- */

enum { INCREMENT, MULTIPLY };

static err parse_number(mql__update_parser *p, mql__leaf *leaf) {
    if (mql_is_number(leaf->operand)) {
        return OK;
    }
    return mql_fail(p->scope->op, 14, "Cannot %s with non-numeric argument: {%.*s: %s}",
                    leaf->modifier->variant == MULTIPLY ? "multiply" : "increment", slice_shown(leaf->path), leaf->path.p,
                    mql__show(p->scope->op->arena, leaf->operand));
}

static err arithmetic(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    bool multiply = leaf->modifier->variant == MULTIPLY;
    slice name = leaf->modifier->name;
    arena *a = c->run->arena;
    if (mql_is_missing(old)) {
        old = multiply ? mql_int32(a, 0) : leaf->operand;
        if (!multiply) {
            *new_out = old;
            return OK;
        }
    }
    if (!mql_is_number(old)) {
        slice field = leaf->parts[leaf->parts_n - 1];
        return mql_fail(c->run->op, 14, "Cannot apply %.*s to a value of non-numeric type. %s has the field '%.*s' of non-numeric type %s",
                        (int)name.n, name.p, mql__show_id(c), slice_shown(field), field.p, mql_type_name(old.type));
    }
    bool fits = multiply ? mql_product_exact(a, old, leaf->operand, new_out) : mql_sum_exact(a, old, leaf->operand, new_out);
    if (!fits) {
        return mql_fail(c->run->op, 2, "Failed to apply %.*s operations to current value ((NumberLong)%s) for document %s", (int)name.n,
                        name.p, mql__show(c->run->op->arena, old), mql__show_id(c));
    }
    return OK;
}

/* ---- $min and $max ---- */

enum { MINIMUM = -1, MAXIMUM = 1 };

static err extreme(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    TRY(mql_pay(c->run, 1 + leaf->operand.bytes.n / 64));
    int by = mql_is_missing(old) ? 0 : mql_compare_by(c->run->collation, leaf->operand, old);
    bool better = mql_is_missing(old) || (leaf->modifier->variant == MINIMUM ? by < 0 : by > 0);
    *new_out = better ? leaf->operand : old;
    return OK;
}

/* ---- $bit ---- */

typedef enum bit_kind { BIT_AND, BIT_OR, BIT_XOR, BIT_KINDS } bit_kind;
static const slice bit_names[BIT_KINDS] = {SLICE_LIT("and"), SLICE_LIT("or"), SLICE_LIT("xor")};

static bool is_integer(bson_type_t type) {
    return type == BSON_TYPE_INT32 || type == BSON_TYPE_INT64;
}

static bool bit_kind_of(slice name, bit_kind *kind_out) {
    for (*kind_out = BIT_AND; *kind_out < BIT_KINDS; (*kind_out)++) {
        if (slice_eq(name, bit_names[*kind_out])) {
            return true;
        }
    }
    return false;
}

static err parse_bit(mql__update_parser *p, mql__leaf *leaf) {
    op *o = p->scope->op;
    doc_walk w;
    doc_element e;
    size_t n = 0;
    if (leaf->operand.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 2,
                        "The $bit modifier is not compatible with a %s. You must pass in an embedded document: {$bit: {field: "
                        "{and/or/xor: #}}",
                        mql_type_name(leaf->operand.type));
    }
    for (doc_walk_init(&w, leaf->operand.bytes); doc_walk_next(&w, &e); n++) {
        bit_kind kind;
        const char *shown = mql__show(o->arena, mql_of(&e));
        if (!bit_kind_of(e.key, &kind)) {
            return mql_fail(o, 2,
                            "The $bit modifier only supports 'and', 'or', and 'xor', not '%.*s' which is an unknown operator: {%.*s: %s}",
                            slice_shown(e.key), e.key.p, slice_shown(e.key), e.key.p, shown);
        }
        if (!is_integer(e.type)) {
            return mql_fail(o, 2, "The $bit modifier field must be an Integer(32/64 bit); a '%s' is not supported here: {%.*s: %s}",
                            mql_type_name(e.type), slice_shown(e.key), e.key.p, shown);
        }
    }
    return n ? OK : mql_fail(o, 2, "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}");
}

static err bit(mql__change *c, const mql__leaf *leaf, mql_value old, mql_value *new_out) {
    int64_t number = 0, operand;
    bson_type_t type = mql_is_missing(old) ? BSON_TYPE_INT32 : old.type;
    doc_walk w;
    doc_element e;
    if (!is_integer(type)) {
        slice field = leaf->parts[leaf->parts_n - 1];
        return mql_fail(c->run->op, 2, "Cannot apply $bit to a value of non-integral type.%s has the field %.*s of non-integer type %s",
                        mql__show_id(c), slice_shown(field), field.p, mql_type_name(type));
    }
    if (!mql_is_missing(old) && !mql_as_integer(old, &number)) {
        number = 0;
    }
    for (doc_walk_init(&w, leaf->operand.bytes); doc_walk_next(&w, &e);) {
        bit_kind kind;
        if (bit_kind_of(e.key, &kind) && mql_as_integer(mql_of(&e), &operand)) {
            number = kind == BIT_AND ? number & operand : kind == BIT_OR ? number | operand : number ^ operand;
            type = mql_number_type(type, e.type);
        }
    }
    *new_out = mql_integer(c->run->arena, type, number);
    return OK;
}

static const mql__modifier rows[] = {
    {SLICE_LIT("$inc"), parse_number, arithmetic, INCREMENT},
    {SLICE_LIT("$mul"), parse_number, arithmetic, MULTIPLY},
    {SLICE_LIT("$min"), NULL, extreme, MINIMUM},
    {SLICE_LIT("$max"), NULL, extreme, MAXIMUM},
    {SLICE_LIT("$bit"), parse_bit, bit, 0},
};
const mql__modifiers mql__number_modifiers = {rows, sizeof rows / sizeof *rows};
