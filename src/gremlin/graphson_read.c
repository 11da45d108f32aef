/* graphson_read.c — GraphSON 1, 2 and 3 to values. JSON is read as BSON first (doc/json.h), which checks its form, depth and UTF-8. What
 * has an "@type" is that type; everything else is what JSON says: objects are maps, arrays are lists. */
#include <math.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/limits.h"
#include "doc/json.h"
#include "doc/walk.h"
#include "gremlin/text_int.h"
#include "gremlin/wire_int.h"
#include "text/text.h"

static err read_element(source *s, const doc_element *e, gremlin_value *value_out);

static bool is(slice text, const char *what) {
    return slice_eq(text, slice_str(what));
}

static bool find(slice bson, const char *key, doc_element *e) {
    uint64_t passed = 0;
    return doc_find_member_counted(bson, slice_str(key), e, &passed);
}

/* ---- plain JSON ---- */

static err read_items(source *s, slice bson, gremlin_items *items) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, bson); doc_walk_next(&w, &e);) {
        gremlin_value v;
        TRY(read_element(s, &e, &v));
        gremlin_items_add(s->arena, items, v);
    }
    return s->op->budget ? budget_error(s->op->budget) : OK;
}

static err read_object(source *s, slice bson, gremlin_value *value_out) {
    gremlin_pairs pairs = {0};
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, bson); doc_walk_next(&w, &e);) {
        gremlin_value v;
        TRY(read_element(s, &e, &v));
        gremlin_pairs_add(s->arena, &pairs, gremlin_string(arena_copy(s->arena, e.key)), v);
    }
    *value_out = gremlin_pairs_map(s->arena, &pairs, GREMLIN_MAP);
    return s->op->budget ? budget_error(s->op->budget) : OK;
}

static err read_list(source *s, slice bson, gremlin_type type, gremlin_value *value_out) {
    gremlin_items items = {0};
    TRY(read_items(s, bson, &items));
    *value_out = gremlin_items_list(s->arena, &items, type);
    return OK;
}

/* ---- numbers ---- */

static bool number_of(const doc_element *e, double *number_out) {
    if (e->type == BSON_TYPE_INT32) {
        *number_out = doc_load_i32(e->value.p);
    } else if (e->type == BSON_TYPE_INT64) {
        *number_out = (double)doc_load_i64(e->value.p);
    } else if (e->type == BSON_TYPE_DOUBLE) {
        *number_out = doc_load_double(e->value.p);
    } else if (e->type == BSON_TYPE_UTF8) {
        slice text = doc_element_text(e);
        *number_out = is(text, "NaN") ? (double)NAN : is(text, "-Infinity") ? -(double)INFINITY : (double)INFINITY;
        return is(text, "NaN") || is(text, "Infinity") || is(text, "-Infinity");
    } else {
        return false;
    }
    return true;
}

static bool whole_of(const doc_element *e, int64_t *number_out) {
    if (e->type == BSON_TYPE_INT32) {
        *number_out = doc_load_i32(e->value.p);
    } else if (e->type == BSON_TYPE_INT64) {
        *number_out = doc_load_i64(e->value.p);
    } else {
        double d = 0;
        bool whole = e->type == BSON_TYPE_DOUBLE && number_of(e, &d) && d == floor(d) && fabs(d) < 9e18;
        *number_out = whole ? (int64_t)d : 0;
        return whole;
    }
    return true;
}

static const struct {
    const char *name;
    gremlin_type type;
    int64_t least, most;
} wholes[] = {
    {"g:Int32", GREMLIN_INT, INT32_MIN, INT32_MAX},    {"g:Int64", GREMLIN_LONG, INT64_MIN, INT64_MAX},
    {"gx:Int16", GREMLIN_SHORT, INT16_MIN, INT16_MAX}, {"gx:Byte", GREMLIN_BYTE, INT8_MIN, INT8_MAX},
    {"g:Date", GREMLIN_DATE, INT64_MIN, INT64_MAX},    {"g:Timestamp", GREMLIN_TIMESTAMP, INT64_MIN, INT64_MAX},
};

static err read_whole(source *s, slice type, const doc_element *e, gremlin_value *value_out, bool *found_out) {
    int64_t number;
    *found_out = false;
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        if (is(type, wholes[i].name)) {
            *found_out = true;
            if (!whole_of(e, &number) || number < wholes[i].least || number > wholes[i].most) {
                return gremlin__malformed(s, "the value of %s does not fit", wholes[i].name);
            }
            *value_out = gremlin_whole(wholes[i].type, number);
        }
    }
    return OK;
}

static err read_big(source *s, const doc_element *e, bool decimal, gremlin_value *value_out) {
    buf text = buf_init(512);
    gremlin_bigint big;
    gremlin_wide bits;
    int64_t whole;
    double d;
    if (e->type == BSON_TYPE_UTF8) {
        buf_add_slice(&text, doc_element_text(e));
    } else if (whole_of(e, &whole)) {
        buf_add_i64(&text, whole);
    } else if (number_of(e, &d)) {
        json_add_double(&text, d);
    }
    bool read = buf_ok(&text) && (decimal ? gremlin_decimal_read(buf_view(&text), &bits) : gremlin_big_read(buf_view(&text), &big));
    buf_free(&text);
    if (!read) {
        return gremlin__malformed(s, "a big number cannot be read");
    }
    *value_out = decimal ? gremlin_decimal(s->arena, bits) : gremlin_big(s->arena, big);
    return OK;
}

/* ---- texts ---- */

/* PT1H2M3.5S: what java.time.Duration writes. */
static bool read_duration(slice text, int64_t *seconds_out, int32_t *nanos_out) {
    double total = 0;
    bool date = true;
    if (text.n < 2 || text.n > 40 || text.p[0] != 'P') {
        return false;
    }
    for (size_t i = 1; i < text.n;) {
        char room[40], *end;
        if (text.p[i] == 'T') {
            date = false;
            i++;
            continue;
        }
        memcpy(room, text.p + i, text.n - i);
        room[text.n - i] = 0;
        double number = strtod(room, &end);
        double unit = *end == 'D' && date ? 86400 : *end == 'H' && !date ? 3600 : *end == 'M' && !date ? 60 : *end == 'S' && !date ? 1 : 0;
        if (end == room || unit == 0 || !isfinite(number)) {
            return false;
        }
        total += number * unit;
        i += (size_t)(end - room) + 1;
    }
    double whole = floor(total);
    if (fabs(whole) > 9e15) {
        return false;
    }
    *seconds_out = (int64_t)whole;
    *nanos_out = (int32_t)((total - whole) * 1e9);
    return true;
}

static err read_bytes(source *s, slice text, gremlin_value *value_out) {
    buf bytes = buf_init(text.n + 4);
    bool read = base64_decode(&bytes, text);
    slice kept = arena_copy(s->arena, buf_view(&bytes));
    buf_free(&bytes);
    *value_out = (gremlin_value){.type = GREMLIN_BINARY, .n = (uint32_t)kept.n, .p = kept.p};
    return read ? OK : gremlin__malformed(s, "gx:ByteBuffer must be base64");
}

static err read_texts(source *s, slice type, slice text, gremlin_value *value_out, bool *found_out) {
    uint8_t uuid[16];
    int64_t seconds;
    int32_t nanos;
    uint32_t c;
    *found_out = true;
    if (is(type, "g:UUID")) {
        bool read = gremlin__uuid_read(text, uuid);
        *value_out = gremlin_uuid(s->arena, uuid);
        return read ? OK : gremlin__malformed(s, "g:UUID cannot be read");
    }
    if (is(type, "gx:Char") && text.n) {
        (void)text_decode(text.p, text.p + text.n, &c);
        *value_out = gremlin_whole(GREMLIN_CHAR, c);
        return OK;
    }
    if (is(type, "gx:Duration")) {
        bool read = read_duration(text, &seconds, &nanos);
        *value_out = read ? gremlin_duration_of(s->arena, seconds, nanos) : gremlin_null();
        return read ? OK : gremlin__malformed(s, "gx:Duration cannot be read");
    }
    if (is(type, "gx:Instant") || is(type, "gx:OffsetDateTime")) {
        return gremlin__read_date(s->arena, text, value_out) == OK ? OK : gremlin__malformed(s, "a date cannot be read");
    }
    if (is(type, "gx:ByteBuffer")) {
        return read_bytes(s, text, value_out);
    }
    if (is(type, "g:Class")) {
        *value_out = gremlin_string(arena_copy(s->arena, text));
        return OK;
    }
    *found_out = false;
    return OK;
}

static bool read_member(slice type, const doc_element *e, gremlin_value *value_out) {
    gremlin_enum family;
    unsigned member;
    if (e->type != BSON_TYPE_UTF8 || !slice_starts(type, SLICE_LIT("g:")) || !gremlin_enum_find(slice_skip(type, 2), &family)) {
        return false;
    }
    if (!gremlin_member_find(family, doc_element_text(e), &member)) {
        return false;
    }
    *value_out = gremlin_member(family, member);
    return true;
}

/* ---- containers ---- */

static err read_map(source *s, const doc_element *e, gremlin_type type, gremlin_value *value_out) {
    gremlin_items items = {0};
    gremlin_pairs pairs = {0};
    TRY(read_items(s, e->value, &items));
    if (items.n % 2) {
        return gremlin__malformed(s, "g:Map needs pairs");
    }
    for (size_t i = 0; i < items.n; i += 2) {
        gremlin_pairs_add(s->arena, &pairs, items.at[i], items.at[i + 1]);
    }
    *value_out = gremlin_pairs_map(s->arena, &pairs, type);
    return OK;
}

static err read_bulkset(source *s, const doc_element *e, gremlin_value *value_out) {
    gremlin_items items = {0};
    TRY(read_items(s, e->value, &items));
    gremlin_list *list = arena_new(s->arena, gremlin_list);
    gremlin_value *at = arena_array(s->arena, gremlin_value, items.n / 2 + 1);
    int64_t *bulk = arena_array(s->arena, int64_t, items.n / 2 + 1);
    for (size_t i = 0; i + 1 < items.n; i += 2) {
        at[i / 2] = items.at[i];
        bulk[i / 2] = gremlin_is_whole(items.at[i + 1]) && items.at[i + 1].i > 0 ? items.at[i + 1].i : 1;
    }
    gremlin_value flat = gremlin_list_of(s->arena, GREMLIN_LIST, at, items.n / 2);
    *list = (gremlin_list){items.n / 2, flat.list->depth, flat.list->weight, at, bulk};
    *value_out = (gremlin_value){.type = GREMLIN_BULKSET, .list = list};
    return OK;
}

static err read_member_value(source *s, slice bson, const char *key, gremlin_value *value_out) {
    doc_element e;
    *value_out = gremlin_null();
    return find(bson, key, &e) ? read_element(s, &e, value_out) : OK;
}

static slice text_of(gremlin_value v) {
    return v.type == GREMLIN_STRING ? gremlin_text(v) : SLICE_EMPTY;
}

/* Elements as arguments are references: what counts is the id. */
static err read_reference(source *s, slice bson, bool edge, gremlin_value *value_out) {
    gremlin_value id, label, end;
    gremlin_element *e = arena_new(s->arena, gremlin_element);
    TRY(read_member_value(s, bson, "id", &id));
    TRY(read_member_value(s, bson, "label", &label));
    *e = (gremlin_element){.is_edge = edge, .id = id, .label = text_of(label)};
    for (int i = 0; edge && i < 2; i++) {
        gremlin_element *v = arena_new(s->arena, gremlin_element);
        TRY(read_member_value(s, bson, i ? "inV" : "outV", &end));
        TRY(read_member_value(s, bson, i ? "inVLabel" : "outVLabel", &label));
        *v = (gremlin_element){.id = end, .label = text_of(label)};
        *(i ? &e->in : &e->out) = v;
    }
    *value_out = gremlin_of_element(e);
    return OK;
}

static err read_property(source *s, slice bson, gremlin_type type, gremlin_value *value_out) {
    gremlin_property *p = arena_new(s->arena, gremlin_property);
    gremlin_value key;
    TRY(read_member_value(s, bson, type == GREMLIN_PROPERTY ? "key" : "label", &key));
    TRY(read_member_value(s, bson, "id", &p->id));
    TRY(read_member_value(s, bson, "value", &p->value));
    p->key = text_of(key);
    *value_out = (gremlin_value){.type = (uint8_t)type, .property = p};
    return OK;
}

static err read_traverser(source *s, slice bson, gremlin_value *value_out) {
    gremlin_traverser *t = arena_new(s->arena, gremlin_traverser);
    gremlin_value bulk;
    TRY(read_member_value(s, bson, "bulk", &bulk));
    TRY(read_member_value(s, bson, "value", &t->value));
    t->bulk = gremlin_is_whole(bulk) ? bulk.i : 1;
    *value_out = (gremlin_value){.type = GREMLIN_TRAVERSER, .traverser = t};
    return OK;
}

static err read_predicate(source *s, slice bson, gremlin_value *value_out) {
    gremlin_value name, value;
    gremlin_items items = {0};
    TRY(read_member_value(s, bson, "predicate", &name));
    TRY(read_member_value(s, bson, "value", &value));
    slice word = text_of(name);
    bool many = is(word, "and") || is(word, "or") || is(word, "between") || is(word, "inside") || is(word, "outside");
    for (size_t i = 0; many && gremlin_is_list(value) && i < value.list->n; i++) {
        gremlin_items_add(s->arena, &items, value.list->at[i]);
    }
    if (!many) {
        gremlin_items_add(s->arena, &items, value);
    }
    if (!gremlin_predicate_of(s->arena, word, items.at, items.n, value_out)) {
        return gremlin__malformed(s, "the predicate '%.*s' is not known or has other arguments", slice_shown(word), word.p);
    }
    return OK;
}

static err read_strategy(source *s, slice name, slice bson, gremlin_value *value_out) {
    gremlin_strategy *strategy = arena_new(s->arena, gremlin_strategy);
    gremlin_value settings;
    TRY(read_object(s, bson, &settings));
    *strategy = (gremlin_strategy){arena_copy(s->arena, name), settings.map->n, settings.map->at};
    *value_out = (gremlin_value){.type = GREMLIN_STRATEGY, .strategy = strategy};
    return OK;
}

/* ---- bytecode ---- */

static err read_instructions(source *s, slice list, gremlin_draft *d) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, list); doc_walk_next(&w, &e);) {
        gremlin_items items = {0};
        if (e.type != BSON_TYPE_ARRAY) {
            return gremlin__malformed(s, "an instruction is a list");
        }
        TRY(read_items(s, e.value, &items));
        if (items.n == 0 || items.at[0].type != GREMLIN_STRING) {
            return gremlin__malformed(s, "an instruction begins with a name");
        }
        gremlin_items args = {.n = items.n - 1, .at = items.at + 1};
        TRY(gremlin__instruction(s, d, gremlin_text(items.at[0]), &args));
    }
    return OK;
}

/* The outermost bytecode has a source; nested ones are anonymous. */
static err read_bytecode(source *s, slice bson, gremlin_value *value_out) {
    gremlin_draft *d;
    doc_element e;
    const gremlin_traversal *t;
    TRY(gremlin_draft_begin(s->builder, s->builder->depth > 0, &d));
    if (find(bson, "source", &e)) {
        TRY(read_instructions(s, e.value, d));
    }
    if (find(bson, "step", &e)) {
        TRY(read_instructions(s, e.value, d));
    }
    TRY(gremlin_draft_end(s->builder, d, &t));
    *value_out = (gremlin_value){.type = GREMLIN_TRAVERSAL, .traversal = t};
    return OK;
}

/* ---- everything with a type ---- */

static err read_typed_object(source *s, slice type, const doc_element *e, gremlin_value *value_out) {
    if (is(type, "g:Bytecode")) {
        return read_bytecode(s, e->value, value_out);
    }
    if (is(type, "g:Binding")) {
        return read_member_value(s, e->value, "value", value_out);
    }
    if (is(type, "g:P") || is(type, "g:TextP")) {
        return read_predicate(s, e->value, value_out);
    }
    if (is(type, "g:Vertex") || is(type, "g:Edge")) {
        return read_reference(s, e->value, is(type, "g:Edge"), value_out);
    }
    if (is(type, "g:VertexProperty") || is(type, "g:Property")) {
        return read_property(s, e->value, is(type, "g:Property") ? GREMLIN_PROPERTY : GREMLIN_VERTEX_PROPERTY, value_out);
    }
    if (is(type, "g:Traverser")) {
        return read_traverser(s, e->value, value_out);
    }
    if (slice_starts(type, SLICE_LIT("g:")) && type.n > 10 && is(slice_skip(type, type.n - 8), "Strategy")) {
        return read_strategy(s, slice_skip(type, 2), e->value, value_out);
    }
    if (is(type, "g:Lambda")) {
        return op_fail(s->op, E_BAD_QUERY, "Gremlin Query Compilation Error: Lambdas are not supported; use a traversal.");
    }
    return gremlin__malformed(s, "the type %.*s is not known", slice_shown(type), type.p);
}

static err read_typed_array(source *s, slice type, const doc_element *e, gremlin_value *value_out) {
    if (is(type, "g:List") || is(type, "g:Set")) {
        return read_list(s, e->value, is(type, "g:Set") ? GREMLIN_SET : GREMLIN_LIST, value_out);
    }
    if (is(type, "g:Map")) {
        return read_map(s, e, GREMLIN_MAP, value_out);
    }
    if (is(type, "g:BulkSet")) {
        return read_bulkset(s, e, value_out);
    }
    return gremlin__malformed(s, "the type %.*s is not known", slice_shown(type), type.p);
}

static err read_typed(source *s, slice type, const doc_element *e, gremlin_value *value_out) {
    bool found;
    double d;
    TRY(read_whole(s, type, e, value_out, &found));
    if (found) {
        return OK;
    }
    if (is(type, "gx:BigInteger") || is(type, "gx:BigDecimal")) {
        return read_big(s, e, is(type, "gx:BigDecimal"), value_out);
    }
    if ((is(type, "g:Double") || is(type, "g:Float")) && number_of(e, &d)) {
        *value_out = is(type, "g:Float") ? gremlin_float((float)d) : gremlin_double(d);
        return OK;
    }
    if (read_member(type, e, value_out)) {
        return OK;
    }
    if (e->type == BSON_TYPE_UTF8) {
        TRY(read_texts(s, type, doc_element_text(e), value_out, &found));
        if (found) {
            return OK;
        }
    }
    return e->type == BSON_TYPE_DOCUMENT ? read_typed_object(s, type, e, value_out)
           : e->type == BSON_TYPE_ARRAY  ? read_typed_array(s, type, e, value_out)
                                         : gremlin__malformed(s, "a value of the type %.*s cannot be read", slice_shown(type), type.p);
}

static err read_document(source *s, slice bson, gremlin_value *value_out) {
    doc_element type, value;
    if (find(bson, "@type", &type) && type.type == BSON_TYPE_UTF8) {
        if (!find(bson, "@value", &value)) { /* a strategy, or a class, without settings */
            static const char empty[] = "\5\0\0\0";
            value = (doc_element){.value = slice_of(empty, 5), .type = BSON_TYPE_DOCUMENT};
        }
        return read_typed(s, doc_element_text(&type), &value, value_out);
    }
    return read_object(s, bson, value_out);
}

static err read_plain(source *s, const doc_element *e, gremlin_value *value_out) {
    switch (e->type) {
    case BSON_TYPE_NULL:
        *value_out = gremlin_null();
        return OK;
    case BSON_TYPE_BOOL:
        *value_out = gremlin_boolean(e->value.p[0] != 0);
        return OK;
    case BSON_TYPE_INT32:
        *value_out = gremlin_int(doc_load_i32(e->value.p));
        return OK;
    case BSON_TYPE_INT64:
        *value_out = gremlin_long(doc_load_i64(e->value.p));
        return OK;
    case BSON_TYPE_DOUBLE:
        *value_out = gremlin_double(doc_load_double(e->value.p));
        return OK;
    case BSON_TYPE_UTF8:
        *value_out = gremlin_string(arena_copy(s->arena, doc_element_text(e)));
        return OK;
    default:
        return gremlin__malformed(s, "a value cannot be read");
    }
}

static err read_element(source *s, const doc_element *e, gremlin_value *value_out) {
    if (!doc_is_container(e->type)) {
        return read_plain(s, e, value_out);
    }
    TRY(gremlin__deeper(s));
    TRY(e->type == BSON_TYPE_ARRAY ? read_list(s, e->value, GREMLIN_LIST, value_out) : read_document(s, e->value, value_out));
    s->depth--;
    return OK;
}

/* The requestId of a request: a text, or a g:UUID. */
static bool find_id(slice request, uint8_t id[16]) {
    doc_element e, value;
    bool found = find(request, "requestId", &e);
    if (found && e.type == BSON_TYPE_DOCUMENT) {
        found = find(e.value, "@value", &value);
        e = value;
    }
    return found && e.type == BSON_TYPE_UTF8 && gremlin__uuid_read(doc_element_text(&e), id);
}

static err read_text(source *s, slice text, gremlin_request *request, gremlin_value *value_out) {
    buf bson = buf_init_counted(LIMIT_BODY_BYTES * 4, s->op->budget);
    json_root root;
    json_error why = {0};
    json_options options = {.depth_max = 2 * s->limits->depth};
    err e = json_to_bson(text, &options, &bson, &root, &why);
    if (e != OK) {
        buf_free(&bson);
        return e == E_BAD_JSON ? gremlin__malformed(s, "%s at byte %zu", why.reason ? why.reason : "not JSON", why.offset) : e;
    }
    doc_element whole = {.value = buf_view(&bson), .type = root == JSON_ARRAY ? BSON_TYPE_ARRAY : BSON_TYPE_DOCUMENT};
    if (request && root != JSON_ARRAY) {
        request->has_id = find_id(whole.value, request->id);
    }
    e = read_element(s, &whole, value_out);
    buf_free(&bson);
    return e;
}

err gremlin__graphson_read(source *s, slice text, gremlin_value *value_out) {
    return read_text(s, text, NULL, value_out);
}

err gremlin__graphson_read_request(source *s, slice text, gremlin_request *request, gremlin_value *value_out) {
    return read_text(s, text, request, value_out);
}
