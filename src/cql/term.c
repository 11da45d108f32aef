/* term.c — terms with types. */
#include "cql/term.h"

#include "cql/function_int.h"

/* ---- what constants are ---- */

static const char *constant_name(cql_term_kind kind) {
    static const char *const names[] = {"NULL", "STRING", "INTEGER", "FLOAT", "BOOLEAN", "UUID", "HEX", "DURATION"};
    return names[kind];
}

static bool is_constant_kind(cql_term_kind kind) {
    return kind >= CQL_TERM_STRING && kind <= CQL_TERM_DURATION;
}

static bool is_operation(cql_term_kind kind) {
    return kind >= CQL_TERM_ADD && kind <= CQL_TERM_MODULO;
}

static bool integer_fits(cql_kind kind) {
    return kind == CQL_DATE || kind == CQL_TIME || kind == CQL_TIMESTAMP;
}

/* Which types a constant can be, as Constants.Literal of Cassandra has it. */
static bool constant_fits(cql_term_kind constant, const cql_type *type) {
    cql_kind kind = type->kind;
    switch (constant) {
    case CQL_TERM_STRING:
        return kind == CQL_ASCII || kind == CQL_TEXT || kind == CQL_INET || kind == CQL_DATE || kind == CQL_TIME || kind == CQL_TIMESTAMP ||
               kind == CQL_CUSTOM;
    case CQL_TERM_INTEGER:
        return cql_type_is_number(type) || integer_fits(kind);
    case CQL_TERM_FLOAT:
        return kind == CQL_FLOAT || kind == CQL_DOUBLE || kind == CQL_DECIMAL;
    case CQL_TERM_BOOLEAN:
        return kind == CQL_BOOLEAN;
    case CQL_TERM_UUID:
        return kind == CQL_UUID || kind == CQL_TIMEUUID;
    case CQL_TERM_HEX:
        return kind == CQL_BLOB || kind == CQL_CUSTOM;
    default:
        return kind == CQL_DURATION;
    }
}

static const cql_type *preferred_type(const cql_term *t) {
    enum { VERSION_AT = 14 }; /* of a UUID's text */
    int64_t number;
    switch (t->kind) {
    case CQL_TERM_INTEGER:
        if (!slice_to_i64(t->text, &number)) {
            return cql_type_of(CQL_VARINT);
        }
        return cql_type_of(number == (int32_t)number ? CQL_INT : CQL_BIGINT);
    case CQL_TERM_FLOAT:
        return cql_type_of(CQL_DOUBLE);
    case CQL_TERM_BOOLEAN:
        return cql_type_of(CQL_BOOLEAN);
    case CQL_TERM_UUID: /* a timeuuid is a uuid too, and an argument of functions that take nothing else */
        return cql_type_of(t->text.n > VERSION_AT && t->text.p[VERSION_AT] == '1' ? CQL_TIMEUUID : CQL_UUID);
    case CQL_TERM_HEX:
        return cql_type_of(CQL_BLOB);
    case CQL_TERM_DURATION:
        return cql_type_of(CQL_DURATION);
    default:
        return NULL;
    }
}

/* ---- errors ---- */

static err fail_constant(op *o, const cql_term *t, const cql_receiver *r) {
    slice type = cql_type_text(o->arena, r->type);
    return op_fail(o, E_BAD_REQUEST, "Invalid %s constant (%s%.*s) for \"%.*s\" of type %.*s", constant_name(t->kind),
                   t->kind == CQL_TERM_HEX ? "0x" : "", slice_shown(t->text), t->text.p, slice_shown(r->name), r->name.p, slice_shown(type),
                   type.p);
}

static err fail_literal(op *o, const char *what, const cql_receiver *r) {
    slice type = cql_type_text(o->arena, r->type);
    return op_fail(o, E_BAD_REQUEST, "Invalid %s literal for %.*s of type %.*s", what, slice_shown(r->name), r->name.p, slice_shown(type),
                   type.p);
}

/* ---- the step: preparing and evaluating walk the same tree ---- */

typedef struct step {
    op *op;
    const cql_type_source *types;
    cql_receiver *markers; /* preparing; may be NULL */
    const cql_run *run;    /* evaluating; NULL: preparing */
} step;

static err visit(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out);

static err type_of(step *s, const cql_term *t, const cql_type *receiver, const cql_type **type_out);

static err resolve(step *s, const cql_type *type, const cql_type **type_out) {
    static const cql_type_source none = {0};
    return cql_type_resolve(s->op, s->types ? s->types : &none, type, type_out);
}

static cql_receiver inner_receiver(op *o, const char *what, const cql_receiver *r, uint32_t i) {
    return (cql_receiver){arena_printf(o->arena, "%s(%.*s)", what, slice_shown(r->name), r->name.p), r->type->inner[i]};
}

/* ---- constants and markers ---- */

static err visit_constant(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    if (!constant_fits(t->kind, r->type)) {
        return fail_constant(s->op, t, r);
    }
    if (t->kind == CQL_TERM_HEX && r->type->kind == CQL_CUSTOM) {
        return cql_value_of_text(s->op, cql_type_of(CQL_BLOB), t->text, value_out);
    }
    return cql_value_of_text(s->op, r->type, t->text, value_out);
}

static err visit_marker(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    if (!s->run) {
        if (s->markers) {
            s->markers[t->index] = *r;
        }
        return OK;
    }
    if (t->index >= s->run->values_n) {
        return op_fail(s->op, E_BAD_REQUEST, "there were %u markers(?) in CQL but %u bound variables", t->index + 1, s->run->values_n);
    }
    cql_value v = s->run->values[t->index];
    TRY(cql_value_check(s->op, r->type, v));
    return cql_value_normalise(s->op, r->type, v, value_out);
}

/* ---- collections ---- */

static err visit_items(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    op *o = s->op;
    if (!arena_fits(o->arena, (t->n + 1) * sizeof(cql_value))) {
        return budget_error(o->budget);
    }
    cql_value *values = arena_array(o->arena, cql_value, t->n + 1);
    bool map = r->type->kind == CQL_MAP;
    const cql_receiver inner[] = {inner_receiver(o, map ? "key" : "value", r, 0), inner_receiver(o, "value", r, map)};
    for (uint32_t i = 0; i < t->n; i++) {
        TRY(visit(s, t->items[i], &inner[map ? i % 2 : 0], &values[i]));
        if (s->run && cql_value_is_null(values[i])) {
            return op_fail(o, E_BAD_REQUEST,
                           values[i].unset ? "unset value is not supported inside collections"
                                           : "null is not supported inside collections");
        }
        if (t->items[i]->kind == CQL_TERM_NULL) {
            return op_fail(o, E_BAD_REQUEST, "null is not supported inside collections");
        }
    }
    if (r->type->kind == CQL_VECTOR && t->n != r->type->dimension) {
        return op_fail(o, E_BAD_REQUEST, "Invalid vector literal for %.*s: expected %u elements, but got %u", slice_shown(r->name),
                       r->name.p, r->type->dimension, t->n);
    }
    if (!s->run) {
        return OK;
    }
    return cql_value_collect(o->arena, r->type, values, t->n, value_out) ? cql_value_normalise(o, r->type, *value_out, value_out)
                                                                         : budget_error(o->budget);
}

static err visit_list(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    bool fits = r->type->kind == CQL_LIST || r->type->kind == CQL_VECTOR;
    return fits ? visit_items(s, t, r, value_out) : fail_literal(s->op, "list", r);
}

static err visit_set(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    bool fits = r->type->kind == CQL_SET || (t->n == 0 && r->type->kind == CQL_MAP);
    return fits ? visit_items(s, t, r, value_out) : fail_literal(s->op, "set", r);
}

static err visit_tuple(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    op *o = s->op;
    if (r->type->kind != CQL_TUPLE) {
        return t->n == 1 ? visit(s, t->items[0], r, value_out) : fail_literal(o, "tuple type", r);
    }
    if (t->n > r->type->n) {
        slice type = cql_type_text(o->arena, r->type);
        return op_fail(o, E_BAD_REQUEST, "Invalid tuple literal for %.*s: too many elements. Type %.*s expects %u but got %u",
                       slice_shown(r->name), r->name.p, slice_shown(type), type.p, r->type->n, t->n);
    }
    cql_value *values = arena_array(o->arena, cql_value, r->type->n + 1);
    for (uint32_t i = 0; i < t->n; i++) {
        cql_receiver inner = {arena_printf(o->arena, "%.*s[%u]", slice_shown(r->name), r->name.p, i), r->type->inner[i]};
        TRY(visit(s, t->items[i], &inner, &values[i]));
    }
    return !s->run || cql_value_collect(o->arena, r->type, values, t->n, value_out) ? OK : budget_error(o->budget);
}

static bool field_at(const cql_type *type, slice name, uint32_t *at_out) {
    for (uint32_t i = 0; type->fields && i < type->n; i++) {
        if (slice_eq(type->fields[i], name)) {
            *at_out = i;
            return true;
        }
    }
    return false;
}

static err visit_udt(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    op *o = s->op;
    uint32_t at;
    if (r->type->kind != CQL_UDT) {
        return fail_literal(o, "user type", r);
    }
    cql_value *values = arena_array(o->arena, cql_value, r->type->n + 1);
    for (uint32_t i = 0; i < r->type->n; i++) {
        values[i] = cql_value_null();
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (!field_at(r->type, t->names[i], &at)) {
            slice type = cql_type_text(o->arena, r->type);
            return op_fail(o, E_BAD_REQUEST, "Unknown field '%.*s' in value of user defined type %.*s", slice_shown(t->names[i]),
                           t->names[i].p, slice_shown(type), type.p);
        }
        cql_receiver inner = {arena_printf(o->arena, "%.*s.%.*s", slice_shown(r->name), r->name.p, slice_shown(t->names[i]), t->names[i].p),
                              r->type->inner[at]};
        TRY(visit(s, t->items[i], &inner, &values[at]));
    }
    return !s->run || cql_value_collect(o->arena, r->type, values, r->type->n, value_out) ? OK : budget_error(o->budget);
}

/* ---- functions ---- */

static err fail_assign(op *o, slice name, const cql_type *type, const cql_receiver *r) {
    slice from = cql_type_text(o->arena, type), to = cql_type_text(o->arena, r->type);
    return op_fail(o, E_BAD_REQUEST, "Type error: cannot assign result of function %.*s (type %.*s) to %.*s (type %.*s)", slice_shown(name),
                   name.p, slice_shown(from), from.p, slice_shown(r->name), r->name.p, slice_shown(to), to.p);
}

typedef struct call {
    const cql_function *function;
    const cql_type *returns;
    const cql_type **types; /* of the arguments */
} call;

/* The first of a function's parameter types that an argument of no type of its own can be: a constant by its kind, anything else at all. */
static const cql_type *parameter_for(const cql_function *f, const cql_term *argument, const cql_type *own) {
    if (f->argument[0] == CQL_CUSTOM) {
        return own ? own : cql_type_of(CQL_TEXT);
    }
    for (size_t i = 0; i < CQL__ARGUMENT_TYPES && f->argument[i] != CQL_CUSTOM; i++) {
        const cql_type *type = cql_type_of(f->argument[i]);
        if (!is_constant_kind(argument->kind) || constant_fits(argument->kind, type)) {
            return type;
        }
    }
    return NULL;
}

static err find_call(step *s, const cql_term *t, const cql_type *receiver, call *c) {
    op *o = s->op;
    const cql_type **known = arena_array(o->arena, const cql_type *, t->n + 1);
    c->types = arena_array(o->arena, const cql_type *, t->n + 1);
    for (uint32_t i = 0; i < t->n; i++) {
        TRY(type_of(s, t->items[i], NULL, &c->types[i]));
        known[i] = is_constant_kind(t->items[i]->kind) ? NULL : c->types[i];
    }
    TRY(cql_function_find(o, t->keyspace, t->name, known, t->n, receiver, &c->function, &c->returns));
    for (uint32_t i = 0; i < t->n; i++) {
        const cql_type *parameter = known[i] ? known[i] : parameter_for(c->function, t->items[i], c->types[i]);
        if (!parameter) { /* a constant that fits none: the error names the signatures */
            known[i] = c->types[i] ? c->types[i] : cql_type_of(CQL_TEXT);
            return cql_function_find(o, t->keyspace, t->name, known, t->n, receiver, &c->function, &c->returns);
        }
        c->types[i] = parameter;
    }
    return OK;
}

static err visit_function(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    op *o = s->op;
    call c;
    TRY(find_call(s, t, r->type, &c));
    if (!cql__assignable(r->type, c.returns)) {
        return fail_assign(o, cql_function_name(c.function), c.returns, r);
    }
    cql_value *values = arena_array(o->arena, cql_value, t->n + 1);
    for (uint32_t i = 0; i < t->n; i++) {
        cql_receiver argument = {arena_printf(o->arena, "arg%u(%.*s)", i, slice_shown(t->name), t->name.p), c.types[i]};
        TRY(visit(s, t->items[i], &argument, &values[i]));
    }
    return s->run ? cql_function_call(o, s->run, c.function, c.types, values, t->n, c.returns, value_out) : OK;
}

/* ---- operations ---- */

/* A constant takes the type of the other side, or of the receiver, if it can; otherwise its own. */
static const cql_type *operand_type(const cql_term *t, const cql_type *own, const cql_type *other, const cql_type *receiver) {
    if (own && !is_constant_kind(t->kind)) {
        return own;
    }
    const cql_type *wanted = other ? other : receiver && cql_type_is_number(receiver) ? receiver : NULL;
    bool fits =
        wanted && (t->kind == CQL_TERM_BIND || t->kind == CQL_TERM_NULL || (is_constant_kind(t->kind) && constant_fits(t->kind, wanted)));
    return fits ? wanted : own;
}

static err operand_types(step *s, const cql_term *t, const cql_type *receiver, const cql_type *types[2]) {
    const cql_type *own[2];
    for (int i = 0; i < 2; i++) {
        TRY(type_of(s, t->items[i], NULL, &own[i]));
    }
    /* '2017-01-01' - 2d is a date or timestamp if that is wanted */
    bool dated = receiver && (receiver->kind == CQL_DATE || receiver->kind == CQL_TIMESTAMP) && own[1] && own[1]->kind == CQL_DURATION;
    for (int i = 0; i < 2; i++) {
        bool other_is_constant = is_constant_kind(t->items[1 - i]->kind);
        const cql_type *other = dated && i == 0 ? receiver : other_is_constant ? NULL : own[1 - i];
        types[i] = operand_type(t->items[i], own[i], other, receiver);
    }
    for (int i = 0; i < 2; i++) {
        if (!types[i]) { /* a marker beside a constant */
            types[i] = types[1 - i];
        }
        if (!types[i]) {
            return op_fail(s->op, E_BAD_REQUEST,
                           "Ambiguous operation with args unknown and unknown: use type hint to disambiguate, example '(int) ?'");
        }
    }
    return OK;
}

static err visit_operation(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    const cql_type *types[2], *result;
    cql_value values[2] = {cql_value_null(), cql_value_null()};
    op *o = s->op;
    TRY(operand_types(s, t, r->type, types));
    TRY(cql_arithmetic_type(o, t->kind, types[0], types[1], &result));
    if (!cql__assignable(r->type, result)) {
        return fail_assign(o, SLICE_LIT("arithmetic"), result, r);
    }
    for (int i = 0; i < 2; i++) {
        cql_receiver operand = {r->name, types[i]};
        TRY(visit(s, t->items[i], &operand, &values[i]));
    }
    return s->run ? cql_arithmetic(o, t->kind, types[0], values[0], types[1], values[1], result, value_out) : OK;
}

static err visit_negation(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    cql_value v = cql_value_null();
    TRY(visit(s, t->items[0], r, &v));
    return s->run ? cql_negate(s->op, r->type, v, value_out) : OK;
}

static err visit_hint(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    cql_receiver inner = {r->name, NULL};
    TRY(resolve(s, t->type, &inner.type));
    if (!cql__assignable(r->type, inner.type)) {
        slice from = cql_type_text(s->op->arena, inner.type), to = cql_type_text(s->op->arena, r->type);
        return op_fail(s->op, E_BAD_REQUEST, "Cannot assign value (%.*s) to %.*s of type %.*s", slice_shown(from), from.p,
                       slice_shown(r->name), r->name.p, slice_shown(to), to.p);
    }
    return visit(s, t->items[0], &inner, value_out);
}

static err visit_cast(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    cql_receiver inner = {r->name, NULL};
    const cql_type *to;
    cql_value v = cql_value_null();
    TRY(resolve(s, t->type, &to));
    TRY(type_of(s, t->items[0], NULL, &inner.type));
    if (!inner.type || !cql__assignable(r->type, to)) {
        return fail_assign(s->op, SLICE_LIT("cast"), to, r);
    }
    TRY(visit(s, t->items[0], &inner, &v));
    return s->run ? cql_cast(s->op, inner.type, to, v, value_out) : OK;
}

static err visit(step *s, const cql_term *t, const cql_receiver *r, cql_value *value_out) {
    *value_out = cql_value_null();
    if (is_constant_kind(t->kind)) {
        return visit_constant(s, t, r, value_out);
    }
    if (is_operation(t->kind)) {
        return visit_operation(s, t, r, value_out);
    }
    switch (t->kind) {
    case CQL_TERM_NULL:
        return OK;
    case CQL_TERM_BIND:
        return visit_marker(s, t, r, value_out);
    case CQL_TERM_LIST:
        return visit_list(s, t, r, value_out);
    case CQL_TERM_SET:
        return visit_set(s, t, r, value_out);
    case CQL_TERM_MAP:
        return r->type->kind == CQL_MAP ? visit_items(s, t, r, value_out) : fail_literal(s->op, "map", r);
    case CQL_TERM_UDT:
        return visit_udt(s, t, r, value_out);
    case CQL_TERM_TUPLE:
        return visit_tuple(s, t, r, value_out);
    case CQL_TERM_FUNCTION:
        return visit_function(s, t, r, value_out);
    case CQL_TERM_HINT:
        return visit_hint(s, t, r, value_out);
    case CQL_TERM_CAST:
        return visit_cast(s, t, r, value_out);
    case CQL_TERM_NEGATE:
        return visit_negation(s, t, r, value_out);
    default:
        return op_fail(s->op, E_BAD_REQUEST, "A column cannot be used here");
    }
}

/* ---- types of terms ---- */

static err type_of(step *s, const cql_term *t, const cql_type *receiver, const cql_type **type_out) {
    const cql_type *types[2];
    call c;
    *type_out = NULL;
    if (is_constant_kind(t->kind)) {
        *type_out = preferred_type(t);
        return OK;
    }
    if (is_operation(t->kind)) {
        TRY(operand_types(s, t, receiver, types));
        return cql_arithmetic_type(s->op, t->kind, types[0], types[1], type_out);
    }
    switch (t->kind) {
    case CQL_TERM_HINT:
    case CQL_TERM_CAST:
        return resolve(s, t->type, type_out);
    case CQL_TERM_NEGATE:
        return type_of(s, t->items[0], receiver, type_out);
    case CQL_TERM_TUPLE:
        return t->n == 1 ? type_of(s, t->items[0], receiver, type_out) : OK;
    case CQL_TERM_FUNCTION:
        TRY(find_call(s, t, receiver, &c));
        *type_out = c.returns;
        return OK;
    default:
        return OK;
    }
}

/* ---- entries ---- */

err cql_term_prepare(op *o, const cql_type_source *types, const cql_term *term, const cql_receiver *receiver, cql_receiver *markers) {
    step s = {.op = o, .types = types, .markers = markers};
    cql_value ignored;
    return visit(&s, term, receiver, &ignored);
}

err cql_term_value(op *o, const cql_run *run, const cql_term *term, const cql_receiver *receiver, cql_value *value_out) {
    step s = {.op = o, .types = run->types, .run = run};
    return visit(&s, term, receiver, value_out);
}

err cql_term_type(op *o, const cql_type_source *types, const cql_term *term, const cql_type **type_out) {
    step s = {.op = o, .types = types};
    return type_of(&s, term, NULL, type_out);
}

bool cql_term_is_constant(const cql_term *t) {
    if (t->kind == CQL_TERM_BIND || t->kind >= CQL_TERM_COLUMN || (t->kind == CQL_TERM_FUNCTION && t->n == 0)) {
        return false;
    }
    for (uint32_t i = 0; i < t->n; i++) {
        if (t->items[i] && !cql_term_is_constant(t->items[i])) {
            return false;
        }
    }
    return true;
}
