#include "api/gremlin/edit_kind.h"

#include <stdio.h>

#include "base/hex.h"
#include "base/random.h"

/* ---- arguments ---- */

void edit_guid(random_source *random, char text[37]) {
    uint8_t b[16];
    random_bytes(random, b, sizeof b);
    b[6] = (uint8_t)((b[6] & 0x0F) | 0x40); /* a random UUID, RFC 4122 */
    b[8] = (uint8_t)((b[8] & 0x3F) | 0x80);
    for (unsigned i = 0; i < sizeof b; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *text++ = '-';
        }
        hex_write(b[i], text);
        text += 2;
    }
    *text = 0;
}

size_t edit_begin(buf *argument) {
    size_t at = member_begin(argument);
    (void)member_open(argument, BSON_TYPE_ARRAY, SLICE_LIT("changes"));
    return at;
}

void edit_end(buf *argument, size_t at) {
    member_close(argument, at + 4 + sizeof "changes" + 1);
    member_close(argument, at);
}

static bool is_id(slice key) {
    return slice_eq(key, SLICE_LIT("id"));
}

static err add_metas(op *o, const gremlin_write *w, slice name, buf *out) {
    size_t at = member_open(out, BSON_TYPE_DOCUMENT, name);
    for (size_t i = 0; i < w->n; i++) {
        slice key = gremlin_text(w->metas[i].key);
        TRY(document_check_key(o, key));
        if (!member_value(out, key, w->metas[i].value)) {
            return op_fail(o, E_BAD_REQUEST, "The property '%.*s' must have a string, a number or a boolean as its value.",
                           slice_shown(key), key.p);
        }
    }
    member_close(out, at);
    return OK;
}

static err check_write(op *o, const gremlin_target *t, const gremlin_write *w, bool edge) {
    TRY(document_check_key(o, w->key));
    if (!member_fits(w->value)) {
        return op_fail(o, E_BAD_REQUEST, "The property '%.*s' must have a string, a number or a boolean as its value.", slice_shown(w->key),
                       w->key.p);
    }
    if ((edge || t->of_property) && w->n) {
        return op_fail(o, E_BAD_REQUEST, "Only properties of vertices have properties of their own.");
    }
    return OK;
}

static err add_write(op *o, const container *c, const gremlin_target *t, const gremlin_write *w, bool edge, random_source *random,
                     buf *argument) {
    char guid[37];
    bool flat = edge || document_is_flat(c, w->key);
    TRY(check_write(o, t, w, edge));
    size_t at = member_open(argument, BSON_TYPE_DOCUMENT, SLICE_LIT("0"));
    member_text(argument, SLICE_LIT("set"), w->key);
    (void)member_value(argument, SLICE_LIT("value"), w->value);
    if (t->of_property) {
        member_text(argument, SLICE_LIT("of"), t->of_property->key);
        member_text(argument, SLICE_LIT("at"), t->of_property->id.type == GREMLIN_STRING ? gremlin_text(t->of_property->id) : SLICE_EMPTY);
    } else if (flat) {
        member_bool(argument, SLICE_LIT("flat"), true);
    } else {
        edit_guid(random, guid);
        member_text(argument, SLICE_LIT("id"), slice_of(guid, 36));
        (void)member_value(argument, SLICE_LIT("cardinality"), gremlin_int(w->cardinality));
        if (w->n) {
            TRY(add_metas(o, w, SLICE_LIT("meta"), argument));
        }
    }
    member_close(argument, at);
    return OK;
}

err edit_add_writes(op *o, const container *c, const gremlin_target *t, bool edge, random_source *random, buf *argument) {
    if (t->n > EDIT_CHANGES_MAX) {
        return op_fail(o, E_BAD_REQUEST, "One step sets %d properties at most.", EDIT_CHANGES_MAX);
    }
    for (size_t i = 0; i < t->n; i++) {
        if (t->element || !is_id(t->writes[i].key)) {
            TRY(add_write(o, c, t, &t->writes[i], edge, random, argument));
        }
    }
    return OK;
}

/* ---- a new element with one value of each property ---- */

bool edit_is_plain(const gremlin_target *t) {
    if (t->n > EDIT_PLAIN_MAX) {
        return false;
    }
    for (size_t i = 0; i < t->n; i++) {
        for (size_t j = 0; j < i; j++) {
            if (slice_eq(t->writes[i].key, t->writes[j].key)) {
                return false;
            }
        }
    }
    return true;
}

static err add_plain(op *o, const container *c, const gremlin_write *w, bool edge, random_source *random, buf *body) {
    char guid[37];
    if (edge || document_is_flat(c, w->key)) {
        (void)member_value(body, w->key, w->value);
        return OK;
    }
    size_t list = member_open(body, BSON_TYPE_ARRAY, w->key), bag = member_open_at(body, BSON_TYPE_DOCUMENT, 0);
    edit_guid(random, guid);
    member_text(body, SLICE_LIT("id"), slice_of(guid, 36));
    (void)member_value(body, SLICE_LIT("_value"), w->value);
    if (w->n) {
        TRY(add_metas(o, w, SLICE_LIT("_meta"), body));
    }
    member_close(body, bag);
    member_close(body, list);
    return OK;
}

err edit_add_plain(op *o, const container *c, const gremlin_target *t, bool edge, random_source *random, buf *body) {
    for (size_t i = 0; i < t->n; i++) {
        const gremlin_write *w = &t->writes[i];
        if (!is_id(w->key)) {
            TRY(check_write(o, t, w, edge));
            TRY(add_plain(o, c, w, edge, random, body));
        }
    }
    return OK;
}

void edit_add_drop(const container *c, const gremlin_target *t, buf *argument) {
    size_t at = member_open(argument, BSON_TYPE_DOCUMENT, SLICE_LIT("0"));
    const gremlin_property *p = t->property;
    member_text(argument, SLICE_LIT("drop"), p->key);
    if (t->element->is_edge || document_is_flat(c, p->key)) {
        member_bool(argument, SLICE_LIT("flat"), true);
    } else {
        member_text(argument, SLICE_LIT("at"), p->id.type == GREMLIN_STRING ? gremlin_text(p->id) : SLICE_EMPTY);
    }
    member_close(argument, at);
}

/* ---- one change ---- */

typedef struct change {
    slice key;
    bool drop, flat;
    doc_element value;
    slice id, of, at;
    int cardinality;
    doc_element meta; /* key.p NULL: none */
} change;

static bool is(const doc_element *e, const char *name, bson_type_t type) {
    return e->type == type && slice_eq(e->key, slice_str(name));
}

static void take_member(const doc_element *e, change *ch) {
    if (slice_eq(e->key, SLICE_LIT("value"))) {
        ch->value = *e;
    } else if (is(e, "set", BSON_TYPE_UTF8) || is(e, "drop", BSON_TYPE_UTF8)) {
        ch->key = doc_element_text(e);
        ch->drop = e->key.n == sizeof "drop" - 1;
    } else if (slice_eq(e->key, SLICE_LIT("flat"))) {
        ch->flat = true;
    } else if (is(e, "id", BSON_TYPE_UTF8)) {
        ch->id = doc_element_text(e);
    } else if (is(e, "of", BSON_TYPE_UTF8)) {
        ch->of = doc_element_text(e);
    } else if (is(e, "at", BSON_TYPE_UTF8)) {
        ch->at = doc_element_text(e);
    } else if (is(e, "cardinality", BSON_TYPE_INT32)) {
        ch->cardinality = doc_load_i32(e->value.p);
    } else if (slice_eq(e->key, SLICE_LIT("meta"))) {
        ch->meta = *e;
    }
}

static bool read_change(slice document, change *ch) {
    doc_walk w;
    doc_element e;
    *ch = (change){.cardinality = -1};
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        take_member(&e, ch);
    }
    return ch->key.n && (ch->drop || ch->value.key.p);
}

static bool has_id(slice bag, slice id) {
    return slice_eq(document_member(bag, "id"), id);
}

static bool same_value(slice bag, const doc_element *value) {
    doc_element e;
    return doc_find_member(bag, SLICE_LIT("_value"), &e) && e.type == value->type && slice_eq(e.value, value->value);
}

/* Whether a value that the property has stays. */
static bool stays(slice bag, const change *ch) {
    if (ch->drop) {
        return !has_id(bag, ch->at);
    }
    return ch->cardinality == CARDINALITY_LIST || (ch->cardinality == CARDINALITY_SET && !same_value(bag, &ch->value));
}

static void add_bag(buf *out, unsigned i, const change *ch) {
    size_t at = member_open_at(out, BSON_TYPE_DOCUMENT, i);
    member_text(out, SLICE_LIT("id"), ch->id);
    member_copy(out, SLICE_LIT("_value"), &ch->value);
    if (ch->meta.key.p) {
        member_copy(out, SLICE_LIT("_meta"), &ch->meta);
    }
    member_close(out, at);
}

/* The array of a property: the values that stay, and the new one. An array without values is left out. */
static void add_bags(buf *out, const doc_element *stored, const change *ch) {
    size_t before = out->n, at = member_open(out, BSON_TYPE_ARRAY, ch->key);
    unsigned n = 0;
    doc_walk w;
    doc_element bag;
    bool is_array = stored && stored->type == BSON_TYPE_ARRAY && doc_walk_init(&w, stored->value);
    while (is_array && doc_walk_next(&w, &bag)) {
        if (bag.type == BSON_TYPE_DOCUMENT && stays(bag.value, ch)) {
            size_t one = member_open_at(out, BSON_TYPE_DOCUMENT, n++);
            out->n -= out->n >= one + 4 ? 4 : 0; /* the length is a part of the value that is copied */
            buf_add_slice(out, bag.value);
        }
    }
    if (!ch->drop) {
        add_bag(out, n++, ch);
    }
    member_close(out, at);
    if (n == 0 && buf_ok(out)) {
        out->n = before;
    }
}

/* A document with one member set. */
static void add_with(buf *out, slice document, slice key, const doc_element *value) {
    doc_walk w;
    doc_element e;
    bool found = false;
    size_t at = member_begin(out);
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        bool is = slice_eq(e.key, key);
        found = found || is;
        is ? member_copy(out, key, value) : buf_add_slice(out, doc_element_bytes(&e));
    }
    if (!found) {
        member_copy(out, key, value);
    }
    member_close(out, at);
}

static void add_bag_with_meta(buf *out, const doc_element *bag, const change *ch) {
    static const char nothing[5] = {5, 0, 0, 0, 0};
    doc_element metas = {.type = BSON_TYPE_DOCUMENT, .value = {nothing, sizeof nothing}};
    doc_element with = {.type = BSON_TYPE_DOCUMENT};
    (void)doc_find_member(bag->value, SLICE_LIT("_meta"), &metas);
    buf inner = buf_init(LIMIT_EDITED_BYTES);
    add_with(&inner, metas.value, ch->key, &ch->value);
    with.value = buf_view(&inner);
    buf_add_byte(out, BSON_TYPE_DOCUMENT);
    buf_add_slice(out, bag->key);
    buf_add_byte(out, '\0');
    add_with(out, bag->value, SLICE_LIT("_meta"), &with);
    buf_free(&inner);
}

/* Ids are unique, but SQL may have written others: only the first counts, since the value is copied and paid for once. */
static void add_metas_of(buf *out, const doc_element *stored, const change *ch) {
    bool found = false;
    doc_walk w;
    doc_element bag;
    size_t at = member_open(out, stored->type, stored->key);
    for (doc_walk_init(&w, stored->value); doc_walk_next(&w, &bag);) {
        if (!found && bag.type == BSON_TYPE_DOCUMENT && has_id(bag.value, ch->at)) {
            found = true;
            add_bag_with_meta(out, &bag, ch);
        } else {
            buf_add_slice(out, doc_element_bytes(&bag));
        }
    }
    member_close(out, at);
}

static void add_changed(buf *out, const doc_element *stored, const change *ch) {
    if (ch->of.n) {
        add_metas_of(out, stored, ch);
    } else if (!ch->flat) {
        add_bags(out, stored, ch);
    } else if (!ch->drop) {
        member_copy(out, ch->key, &ch->value);
    }
}

static void make_change(buf *out, slice body, const change *ch) {
    slice key = ch->of.n ? ch->of : ch->key;
    bool found = false;
    doc_walk w;
    doc_element e;
    size_t at = member_begin(out);
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        if (slice_eq(e.key, key) && (!ch->of.n || e.type == BSON_TYPE_ARRAY)) {
            found = true;
            add_changed(out, &e, ch);
        } else {
            buf_add_slice(out, doc_element_bytes(&e));
        }
    }
    if (!found && !ch->drop && !ch->of.n) {
        add_changed(out, NULL, ch);
    }
    member_close(out, at);
}

/* ---- all changes ---- */

static err one_after_another(op *o, slice body, slice changes, item_edit_budget *b, buf rooms[2], slice *body_out) {
    doc_walk w;
    doc_element e;
    unsigned turn = 0;
    *body_out = body;
    for (doc_walk_init(&w, changes); doc_walk_next(&w, &e);) {
        change ch;
        if (e.type != BSON_TYPE_DOCUMENT || !read_change(e.value, &ch)) {
            return E_BAD_REQUEST;
        }
        if (!item_edit_pay(b, item_edit_steps(2 * body_out->n + e.value.n))) {
            return item_edit_too_long(o);
        }
        buf *out = &rooms[turn++ % 2];
        buf_clear(out);
        make_change(out, *body_out, &ch);
        if (!buf_ok(out)) {
            return E_TOO_LARGE;
        }
        *body_out = buf_view(out);
    }
    return OK;
}

err edit_apply(op *o, slice body, slice argument, item_edit_budget *b, slice *body_out) {
    doc_element changes;
    buf rooms[2] = {buf_init(LIMIT_EDITED_BYTES), buf_init(LIMIT_EDITED_BYTES)};
    *body_out = body;
    if (!doc_find_member(argument, SLICE_LIT("changes"), &changes) || changes.type != BSON_TYPE_ARRAY) {
        return E_BAD_REQUEST;
    }
    err code = one_after_another(o, body, changes.value, b, rooms, body_out);
    if (code == OK) {
        code = arena_fits(o->arena, body_out->n) ? OK : E_MEMORY;
        *body_out = code == OK ? arena_copy(o->arena, *body_out) : SLICE_EMPTY;
    }
    buf_free(&rooms[0]);
    buf_free(&rooms[1]);
    return code;
}

/* ---- the kind ---- */

/* The partition key is a part of the item's address. */
static err check_key(op *o, const item_edit_input *in, slice body) {
    pkey before, after;
    TRY(pkey_extract(o, in->body, &in->container->key, &before));
    TRY(pkey_extract(o, body, &in->container->key, &after));
    return pkey_equal(&before, &after)
               ? OK
               : op_fail(o, E_BAD_REQUEST, "The partition key of a vertex or an edge cannot be changed: drop it and add it anew.");
}

static err apply(op *o, const item_edit_input *in, item_edit_budget *b, item_edit_result *result_out) {
    result_out->answer = ITEM_EDIT_PUT;
    TRY(edit_apply(o, in->body, in->argument, b, &result_out->body));
    return in->container->key.n ? check_key(o, in, result_out->body) : OK;
}

static uint64_t estimate(const item_edit_input *in) {
    return item_edit_steps(in->body.n + in->argument.n) * (2 + in->argument.n / 64);
}

void edit_register(void) {
    static const item_edit_kind kind = {
        .id = ITEM_EDIT_GREMLIN, .name = "change of properties", .needs_item = true, .estimate = estimate, .apply = apply};
    item_edit_register(&kind);
}
