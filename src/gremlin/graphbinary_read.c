/* graphbinary_read.c — GraphBinary 1 to values. Counts are checked against the bytes that are left before anything is allocated. */
#include <stdio.h>

#include "gremlin/graphbinary_int.h"
#include "gremlin/wire_int.h"
#include "text/text.h"

static err short_of(source *s) {
    return gremlin__malformed(s, "it ends too early");
}

static err take(source *s, slice *rest, size_t bytes, uint64_t *number_out) {
    return slice_take_be(rest, bytes, number_out) ? OK : short_of(s);
}

static err take_whole(source *s, slice *rest, gremlin_type type, size_t bytes, gremlin_value *value_out) {
    uint64_t number;
    TRY(take(s, rest, bytes, &number));
    int64_t i = bytes == 1 ? (int8_t)number : bytes == 2 ? (int16_t)number : bytes == 4 ? (int32_t)number : (int64_t)number;
    *value_out = gremlin_whole(type, i);
    return OK;
}

err gremlin__binary_size(source *s, slice *rest, size_t least, size_t *n_out) {
    uint64_t n;
    TRY(take(s, rest, 4, &n));
    *n_out = (size_t)n;
    return n <= INT32_MAX && n <= rest->n / least ? OK : short_of(s);
}

static err take_bytes(source *s, slice *rest, slice *bytes_out) {
    size_t n;
    TRY(gremlin__binary_size(s, rest, 1, &n));
    *bytes_out = slice_of(rest->p, n);
    *rest = slice_skip(*rest, n);
    return OK;
}

err gremlin__binary_text(source *s, slice *rest, slice *text_out) {
    TRY(take_bytes(s, rest, text_out));
    if (!text_is_valid(*text_out)) {
        return gremlin__malformed(s, "a text is not UTF-8");
    }
    *text_out = arena_copy(s->arena, *text_out);
    return OK;
}

/* ---- numbers ---- */

static err take_double(source *s, slice *rest, bool is_float, gremlin_value *value_out) {
    uint64_t bits;
    TRY(take(s, rest, is_float ? 4 : 8, &bits));
    if (is_float) {
        uint32_t half = (uint32_t)bits;
        float f;
        memcpy(&f, &half, sizeof f);
        *value_out = gremlin_float(f);
    } else {
        double d;
        memcpy(&d, &bits, sizeof d);
        *value_out = gremlin_double(d);
    }
    return OK;
}

static err take_big(source *s, slice *rest, gremlin_bigint *big_out) {
    slice bytes;
    TRY(take_bytes(s, rest, &bytes));
    if (bytes.n == 0 || bytes.n > 16) {
        return gremlin__malformed(s, "a big number has more than 127 bits");
    }
    unsigned __int128 bits = bytes.p[0] & 0x80 ? ~(unsigned __int128)0 : 0;
    for (size_t i = 0; i < bytes.n; i++) {
        bits = bits << 8 | (unsigned char)bytes.p[i];
    }
    *big_out = (gremlin_bigint)bits;
    return OK;
}

static err take_decimal(source *s, slice *rest, gremlin_value *value_out) {
    gremlin_value scale;
    gremlin_bigint big;
    gremlin_wide bits;
    char digits[64], text[100];
    TRY(take_whole(s, rest, GREMLIN_INT, 4, &scale));
    TRY(take_big(s, rest, &big));
    size_t n = gremlin_big_write(big, digits);
    int length = snprintf(text, sizeof text, "%.*sE%lld", (int)n, digits, (long long)-scale.i);
    if (!gremlin_decimal_read(slice_of(text, (size_t)length), &bits)) {
        return gremlin__malformed(s, "a decimal has more than 34 digits");
    }
    *value_out = gremlin_decimal(s->arena, bits);
    return OK;
}

static err take_char(source *s, slice *rest, gremlin_value *value_out) {
    uint32_t c;
    if (rest->n == 0) {
        return short_of(s);
    }
    unsigned n = text_decode(rest->p, rest->p + rest->n, &c);
    *rest = slice_skip(*rest, n);
    *value_out = gremlin_whole(GREMLIN_CHAR, c);
    return c == TEXT_INVALID ? gremlin__malformed(s, "a character is not UTF-8") : OK;
}

static err take_duration(source *s, slice *rest, bool instant, gremlin_value *value_out) {
    gremlin_value seconds, nanos;
    TRY(take_whole(s, rest, GREMLIN_LONG, 8, &seconds));
    TRY(take_whole(s, rest, GREMLIN_INT, 4, &nanos));
    if (nanos.i < 0 || nanos.i > 999999999 || (instant && (seconds.i > INT64_MAX / 1001 || seconds.i < INT64_MIN / 1001))) {
        return gremlin__malformed(s, "a time is out of range");
    }
    *value_out = instant ? gremlin_whole(GREMLIN_DATE, seconds.i * 1000 + nanos.i / 1000000)
                         : gremlin_duration_of(s->arena, seconds.i, (int32_t)nanos.i);
    return OK;
}

/* ---- collections ---- */

static err take_items(source *s, slice *rest, gremlin_items *items) {
    size_t n;
    TRY(gremlin__binary_size(s, rest, 2, &n));
    for (size_t i = 0; i < n; i++) {
        gremlin_value v;
        TRY(gremlin__binary_read(s, rest, &v));
        gremlin_items_add(s->arena, items, v);
        TRY(s->op->budget ? budget_error(s->op->budget) : OK);
    }
    return OK;
}

static err take_list(source *s, slice *rest, gremlin_type type, gremlin_value *value_out) {
    gremlin_items items = {0};
    TRY(take_items(s, rest, &items));
    *value_out = gremlin_items_list(s->arena, &items, type);
    return OK;
}

static err take_map(source *s, slice *rest, gremlin_value *value_out) {
    gremlin_pairs pairs = {0};
    size_t n;
    TRY(gremlin__binary_size(s, rest, 4, &n));
    for (size_t i = 0; i < n; i++) {
        gremlin_value key, value;
        TRY(gremlin__binary_read(s, rest, &key));
        TRY(gremlin__binary_read(s, rest, &value));
        gremlin_pairs_add(s->arena, &pairs, key, value);
        TRY(s->op->budget ? budget_error(s->op->budget) : OK);
    }
    *value_out = gremlin_pairs_map(s->arena, &pairs, GREMLIN_MAP);
    return OK;
}

static err take_bulkset(source *s, slice *rest, gremlin_value *value_out) {
    size_t n;
    TRY(gremlin__binary_size(s, rest, 10, &n));
    gremlin_value *at = arena_array(s->arena, gremlin_value, n + 1);
    int64_t *bulk = arena_array(s->arena, int64_t, n + 1);
    for (size_t i = 0; i < n; i++) {
        gremlin_value times;
        TRY(gremlin__binary_read(s, rest, &at[i]));
        TRY(take_whole(s, rest, GREMLIN_LONG, 8, &times));
        bulk[i] = times.i > 0 ? times.i : 1;
    }
    gremlin_value flat = gremlin_list_of(s->arena, GREMLIN_LIST, at, n);
    gremlin_list *list = arena_new(s->arena, gremlin_list);
    *list = (gremlin_list){n, flat.list->depth, flat.list->weight, at, bulk};
    *value_out = (gremlin_value){.type = GREMLIN_BULKSET, .list = list};
    return OK;
}

/* ---- elements: what counts of an argument is its id ---- */

static err take_vertex(source *s, slice *rest, gremlin_element **out, bool whole) {
    gremlin_value properties;
    gremlin_element *e = arena_new(s->arena, gremlin_element);
    TRY(gremlin__binary_read(s, rest, &e->id));
    TRY(gremlin__binary_text(s, rest, &e->label));
    *out = e;
    return whole ? gremlin__binary_read(s, rest, &properties) : OK;
}

static err take_edge(source *s, slice *rest, gremlin_value *value_out) {
    gremlin_value parent, properties;
    gremlin_element *e;
    TRY(take_vertex(s, rest, &e, false));
    TRY(take_vertex(s, rest, &e->in, false));
    TRY(take_vertex(s, rest, &e->out, false));
    TRY(gremlin__binary_read(s, rest, &parent));
    TRY(gremlin__binary_read(s, rest, &properties));
    e->is_edge = true;
    *value_out = gremlin_of_element(e);
    return OK;
}

static err take_property(source *s, slice *rest, gremlin_type type, gremlin_value *value_out) {
    gremlin_property *p = arena_new(s->arena, gremlin_property);
    gremlin_value parent, properties;
    if (type == GREMLIN_VERTEX_PROPERTY) {
        TRY(gremlin__binary_read(s, rest, &p->id));
    }
    TRY(gremlin__binary_text(s, rest, &p->key));
    TRY(gremlin__binary_read(s, rest, &p->value));
    TRY(gremlin__binary_read(s, rest, &parent));
    if (type == GREMLIN_VERTEX_PROPERTY) {
        TRY(gremlin__binary_read(s, rest, &properties));
    }
    *value_out = (gremlin_value){.type = (uint8_t)type, .property = p};
    return OK;
}

/* ---- predicates, enums, strategies, bytecode ---- */

static err take_predicate(source *s, slice *rest, gremlin_value *value_out) {
    slice name;
    gremlin_items items = {0};
    TRY(gremlin__binary_text(s, rest, &name));
    TRY(take_items(s, rest, &items));
    if (!gremlin_predicate_of(s->arena, name, items.at, items.n, value_out)) {
        return gremlin__malformed(s, "the predicate '%.*s' is not known or has other arguments", slice_shown(name), name.p);
    }
    return OK;
}

static bool family_of(unsigned code, gremlin_enum *family_out) {
    static const struct {
        unsigned code;
        gremlin_enum family;
    } families[] = {{CODE_BARRIER, GREMLIN_BARRIER},   {CODE_CARDINALITY, GREMLIN_CARDINALITY},
                    {CODE_COLUMN, GREMLIN_COLUMN},     {CODE_DIRECTION, GREMLIN_DIRECTION},
                    {CODE_OPERATOR, GREMLIN_OPERATOR}, {CODE_ORDER, GREMLIN_ORDER},
                    {CODE_PICK, GREMLIN_PICK},         {CODE_POP, GREMLIN_POP},
                    {CODE_SCOPE, GREMLIN_SCOPE},       {CODE_T, GREMLIN_T},
                    {CODE_MERGE, GREMLIN_MERGE},       {CODE_DT, GREMLIN_DT}};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (families[i].code == code) {
            *family_out = families[i].family;
            return true;
        }
    }
    return false;
}

static err take_member(source *s, slice *rest, gremlin_enum family, gremlin_value *value_out) {
    gremlin_value name;
    unsigned member;
    TRY(gremlin__binary_read(s, rest, &name));
    if (name.type != GREMLIN_STRING || !gremlin_member_find(family, gremlin_text(name), &member)) {
        return gremlin__malformed(s, "a member of %s is not known", gremlin_enum_name(family));
    }
    *value_out = gremlin_member(family, member);
    return OK;
}

/* The last part of a class's name. */
static slice short_name(slice name) {
    for (size_t i = name.n; i > 0; i--) {
        if (name.p[i - 1] == '.') {
            return slice_skip(name, i);
        }
    }
    return name;
}

static err take_strategy(source *s, slice *rest, gremlin_value *value_out) {
    slice name;
    gremlin_value settings;
    gremlin_strategy *strategy = arena_new(s->arena, gremlin_strategy);
    TRY(gremlin__binary_text(s, rest, &name));
    TRY(take_map(s, rest, &settings));
    *strategy = (gremlin_strategy){short_name(name), settings.map->n, settings.map->at};
    *value_out = (gremlin_value){.type = GREMLIN_STRATEGY, .strategy = strategy};
    return OK;
}

typedef struct instruction {
    slice name;
    gremlin_items args;
} instruction;

static err take_instructions(source *s, slice *rest, instruction **at_out, size_t *n_out) {
    TRY(gremlin__binary_size(s, rest, 8, n_out));
    if (!arena_fits(s->arena, *n_out * sizeof **at_out)) {
        return E_MEMORY;
    }
    *at_out = arena_array(s->arena, instruction, *n_out + 1);
    for (size_t i = 0; i < *n_out; i++) {
        TRY(gremlin__binary_text(s, rest, &(*at_out)[i].name));
        TRY(take_items(s, rest, &(*at_out)[i].args));
    }
    return OK;
}

static bool has_rules(const gremlin_rules *r) {
    return r->vertices || r->edges || r->names_edges || r->reserved_n;
}

/* The steps come before the source's instructions. They are read again if the source has strategies that hold for their traversals. */
static err take_bytecode(source *s, slice *rest, gremlin_value *value_out) {
    gremlin_draft *d;
    instruction *steps, *sources;
    size_t step_n, source_n;
    const gremlin_traversal *t;
    TRY(gremlin_draft_begin(s->builder, s->builder->depth > 0, &d));
    slice from = *rest;
    size_t before = s->builder->steps;
    TRY(take_instructions(s, rest, &steps, &step_n));
    TRY(take_instructions(s, rest, &sources, &source_n));
    for (size_t i = 0; i < source_n; i++) {
        TRY(gremlin__instruction(s, d, sources[i].name, &sources[i].args));
    }
    if (d->traversal.source && has_rules(&s->builder->rules)) {
        s->builder->steps = before;
        TRY(take_instructions(s, &from, &steps, &step_n));
    }
    for (size_t i = 0; i < step_n; i++) {
        TRY(gremlin__instruction(s, d, steps[i].name, &steps[i].args));
    }
    TRY(gremlin_draft_end(s->builder, d, &t));
    *value_out = (gremlin_value){.type = GREMLIN_TRAVERSAL, .traversal = t};
    return OK;
}

static err take_binding(source *s, slice *rest, gremlin_value *value_out) {
    slice name;
    TRY(gremlin__binary_text(s, rest, &name));
    return gremlin__binary_read(s, rest, value_out);
}

static err take_traverser(source *s, slice *rest, gremlin_value *value_out) {
    gremlin_traverser *t = arena_new(s->arena, gremlin_traverser);
    gremlin_value bulk;
    TRY(take_whole(s, rest, GREMLIN_LONG, 8, &bulk));
    TRY(gremlin__binary_read(s, rest, &t->value));
    t->bulk = bulk.i;
    *value_out = (gremlin_value){.type = GREMLIN_TRAVERSER, .traverser = t};
    return OK;
}

/* ---- everything ---- */

static err take_text_kinds(source *s, slice *rest, unsigned code, gremlin_value *value_out) {
    slice text;
    if (code == CODE_BYTEBUFFER) {
        TRY(take_bytes(s, rest, &text));
        text = arena_copy(s->arena, text);
        *value_out = (gremlin_value){.type = GREMLIN_BINARY, .n = (uint32_t)text.n, .p = text.p};
        return OK;
    }
    if (code == CODE_UUID) {
        if (rest->n < 16) {
            return short_of(s);
        }
        *value_out = gremlin_uuid(s->arena, (const uint8_t *)rest->p);
        *rest = slice_skip(*rest, 16);
        return OK;
    }
    TRY(gremlin__binary_text(s, rest, &text));
    *value_out = gremlin_string(text);
    return OK;
}

static err take_structure(source *s, slice *rest, unsigned code, gremlin_value *value_out) {
    gremlin_enum family;
    gremlin_element *e;
    if (family_of(code, &family)) {
        return take_member(s, rest, family, value_out);
    }
    switch (code) {
    case CODE_LIST:
    case CODE_SET:
        return take_list(s, rest, code == CODE_SET ? GREMLIN_SET : GREMLIN_LIST, value_out);
    case CODE_MAP:
        return take_map(s, rest, value_out);
    case CODE_BULKSET:
        return take_bulkset(s, rest, value_out);
    case CODE_VERTEX:
        TRY(take_vertex(s, rest, &e, true));
        *value_out = gremlin_of_element(e);
        return OK;
    case CODE_EDGE:
        return take_edge(s, rest, value_out);
    case CODE_PROPERTY:
    case CODE_VERTEX_PROPERTY:
        return take_property(s, rest, code == CODE_PROPERTY ? GREMLIN_PROPERTY : GREMLIN_VERTEX_PROPERTY, value_out);
    case CODE_P:
    case CODE_TEXTP:
        return take_predicate(s, rest, value_out);
    case CODE_BYTECODE:
        return take_bytecode(s, rest, value_out);
    case CODE_BINDING:
        return take_binding(s, rest, value_out);
    case CODE_STRATEGY:
        return take_strategy(s, rest, value_out);
    case CODE_TRAVERSER:
        return take_traverser(s, rest, value_out);
    case CODE_LAMBDA:
        return op_fail(s->op, E_BAD_QUERY, "Gremlin Query Compilation Error: Lambdas are not supported; use a traversal.");
    default:
        return gremlin__malformed(s, "the type 0x%02x is not known", code);
    }
}

static err take_scalar(source *s, slice *rest, unsigned code, gremlin_value *value_out, bool *found_out) {
    gremlin_bigint big;
    *found_out = true;
    switch (code) {
    case CODE_INT:
        return take_whole(s, rest, GREMLIN_INT, 4, value_out);
    case CODE_LONG:
        return take_whole(s, rest, GREMLIN_LONG, 8, value_out);
    case CODE_SHORT:
        return take_whole(s, rest, GREMLIN_SHORT, 2, value_out);
    case CODE_BYTE:
        return take_whole(s, rest, GREMLIN_BYTE, 1, value_out);
    case CODE_DATE:
    case CODE_TIMESTAMP:
        return take_whole(s, rest, code == CODE_DATE ? GREMLIN_DATE : GREMLIN_TIMESTAMP, 8, value_out);
    case CODE_BOOLEAN:
        TRY(take_whole(s, rest, GREMLIN_BYTE, 1, value_out));
        *value_out = gremlin_boolean(value_out->i != 0);
        return OK;
    case CODE_DOUBLE:
    case CODE_FLOAT:
        return take_double(s, rest, code == CODE_FLOAT, value_out);
    case CODE_BIGINTEGER:
        TRY(take_big(s, rest, &big));
        *value_out = gremlin_big(s->arena, big);
        return OK;
    case CODE_BIGDECIMAL:
        return take_decimal(s, rest, value_out);
    case CODE_CHAR:
        return take_char(s, rest, value_out);
    case CODE_DURATION:
    case CODE_INSTANT:
        return take_duration(s, rest, code == CODE_INSTANT, value_out);
    case CODE_STRING:
    case CODE_CLASS:
    case CODE_BYTEBUFFER:
    case CODE_UUID:
        return take_text_kinds(s, rest, code, value_out);
    default:
        *found_out = false;
        return OK;
    }
}

err gremlin__binary_read(source *s, slice *rest, gremlin_value *value_out) {
    uint64_t code, flag;
    bool found;
    *value_out = gremlin_null();
    TRY(take(s, rest, 1, &code));
    TRY(take(s, rest, 1, &flag));
    if (flag == 1 || code == CODE_NULL) {
        return OK;
    }
    if (flag) {
        return gremlin__malformed(s, "a value has an unknown flag");
    }
    TRY(take_scalar(s, rest, (unsigned)code, value_out, &found));
    if (found) {
        return OK;
    }
    TRY(gremlin__deeper(s));
    TRY(take_structure(s, rest, (unsigned)code, value_out));
    s->depth--;
    return OK;
}
