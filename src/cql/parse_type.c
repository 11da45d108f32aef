/* parse_type.c — the grammar of types. */
#include "cql/parse_int.h"

static bool constructed(cql__parser *p, cql_kind kind, uint32_t arguments, const cql_type **type_out) {
    cql_type *t = arena_new(p->memory, cql_type);
    cql__list list = {0};
    t->kind = kind;
    t->frozen = kind == CQL_TUPLE;
    do {
        const cql_type **inner = list.n < CQL_TYPE_INNER_MAX ? cql__push(p, &list, sizeof(void *)) : NULL;
        if (!inner || !cql__type(p, inner)) {
            return cql__fail_input(p); /* keeps the first error */
        }
    } while ((arguments == 0 || list.n < arguments) && cql__accept(p, ","));
    t->inner = list.items;
    t->n = list.n;
    *type_out = t;
    return p->code == OK && (arguments == 0 || list.n == arguments ? cql__expect(p, ">") : cql__fail_input(p));
}

static bool vector(cql__parser *p, const cql_type **type_out) {
    cql_type *t = arena_new(p->memory, cql_type);
    const cql_type **inner = arena_array(p->memory, const cql_type *, 1);
    uint64_t dimension = 0;
    *t = (cql_type){.kind = CQL_VECTOR, .frozen = true, .n = 1, .inner = inner};
    if (!cql__type(p, inner) || !cql__expect(p, ",")) {
        return false;
    }
    if (p->now.kind != CQL_TOKEN_INTEGER || !slice_to_u64(p->now.text, &dimension)) {
        return cql__fail_expecting(p, "INTEGER");
    }
    if (dimension == 0 || dimension > CQL_VECTOR_MAX) {
        return cql__fail_invalid(p, "vectors may only have 1 to %d dimensions; given %llu", CQL_VECTOR_MAX, (unsigned long long)dimension);
    }
    t->dimension = (uint32_t)dimension;
    *type_out = t;
    return cql__advance(p) && cql__expect(p, ">");
}

static bool frozen(cql__parser *p, const cql_type **type_out) {
    const cql_type *inner;
    if (!cql__type(p, &inner)) {
        return false;
    }
    if (inner->n == 0 && inner->kind != CQL_UDT) {
        slice text = cql_type_text(p->memory, inner);
        return cql__fail_invalid(p, "frozen<> is only allowed on collections, tuples, and user-defined types (got %.*s)", slice_shown(text),
                                 text.p);
    }
    *type_out = cql_type_freeze(p->memory, inner);
    return cql__expect(p, ">");
}

static bool with_arguments(cql__parser *p, const cql_type **type_out) {
    static const struct {
        const char *word;
        cql_kind kind;
        uint32_t arguments;
    } constructors[] = {{"list", CQL_LIST, 1}, {"set", CQL_SET, 1}, {"map", CQL_MAP, 2}, {"tuple", CQL_TUPLE, 0}};
    slice word = p->now.text;
    if (!cql__advance(p) || !cql__advance(p)) {
        return false;
    }
    for (size_t i = 0; i < sizeof constructors / sizeof *constructors; i++) {
        if (slice_eq_nocase(word, slice_str(constructors[i].word))) {
            return constructed(p, constructors[i].kind, constructors[i].arguments, type_out);
        }
    }
    if (slice_eq_nocase(word, SLICE_LIT("frozen"))) {
        return frozen(p, type_out);
    }
    return slice_eq_nocase(word, SLICE_LIT("vector")) ? vector(p, type_out) : cql__fail_input(p);
}

static bool class_name(cql__parser *p, const cql_type **type_out) {
    slice text;
    if (!cql__string(p, &text)) {
        return false;
    }
    *type_out = cql_type_by_class(p->memory, text);
    return *type_out || cql__fail_invalid(p, "Error setting type %.*s: Syntax error parsing '%.*s'", slice_shown(text), text.p,
                                          slice_shown(text), text.p);
}

static bool named(cql__parser *p, const cql_type **type_out) {
    cql_table_name name = {0};
    bool quoted = p->now.kind == CQL_TOKEN_QUOTED;
    if (!cql__table_name(p, &name)) {
        return false;
    }
    *type_out = quoted || name.keyspace.n ? NULL : cql_type_by_name(name.name);
    if (!*type_out) {
        cql_type *t = arena_new(p->memory, cql_type);
        *t = (cql_type){.kind = CQL_UDT, .keyspace = name.keyspace, .name = name.name};
        *type_out = t;
    }
    return true;
}

static bool type_rule(cql__parser *p, const cql_type **type_out) {
    if (p->now.kind == CQL_TOKEN_STRING) {
        return class_name(p, type_out);
    }
    if (p->now.kind == CQL_TOKEN_NAME && cql__next_is(p, "<")) {
        return with_arguments(p, type_out);
    }
    return named(p, type_out);
}

/* Inner types are bounded by CQL_TYPE_DEPTH wherever the type occurs: `depth` grows by more than one for each. */
bool cql__type(cql__parser *p, const cql_type **type_out) {
    enum { LEVEL = CQL_PARSE_DEPTH / CQL_TYPE_DEPTH };
    unsigned depth = p->depth;
    *type_out = NULL;
    p->depth = depth + LEVEL - 1;
    bool ok = cql__enter(p) && type_rule(p, type_out);
    p->depth = depth;
    return ok;
}

bool cql__types(cql__parser *p, const cql_type *const **types_out, uint32_t *n_out) {
    cql__list list = {0};
    if (!cql__is(p, ")")) {
        do {
            const cql_type **type = cql__push(p, &list, sizeof *type);
            if (!type || !cql__type(p, type)) {
                return false;
            }
        } while (cql__accept(p, ","));
    }
    *types_out = list.items;
    *n_out = list.n;
    return p->code == OK;
}
