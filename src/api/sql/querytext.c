#include "api/sql/querytext.h"

#include <ctype.h>
#include <stdlib.h>

enum { DEPTH_MAX = 32, KEYS_MAX = 10000, CONDITIONS_MAX = 2 * KEYS_MAX, TEXT_BYTES_MAX = 512 * 1024 };

typedef enum node_kind { NODE_EQUAL, NODE_ABSENT, NODE_AND, NODE_OR } node_kind;

struct query_node {
    node_kind kind;
    doc_path path;    /* of NODE_EQUAL and NODE_ABSENT, below the alias */
    pkey_value value; /* a scalar of any kind */
    query_node *children;
    query_node *next; /* in its parent's list */
};

typedef struct parameter {
    slice name;
    pkey_value value;
} parameter;

typedef struct parser {
    op *op;
    slice rest;
    slice alias;
    parameter *parameters; /* sorted by name */
    size_t parameters_n;
    size_t conditions;
    unsigned depth;
} parser;

static err unsupported(parser *p) {
    return op_fail(p->op, E_BAD_REQUEST,
                   "This query is not supported yet (near '%.*s'): tesela answers SELECT * FROM c with conditions path = value, IN, AND "
                   "and OR so far.",
                   slice_shown(p->rest), p->rest.p ? p->rest.p : "");
}

/* ---- words ---- */

static void skip_blanks(parser *p) {
    while (p->rest.n && isspace((unsigned char)p->rest.p[0])) {
        p->rest = slice_skip(p->rest, 1);
    }
}

static bool is_word_byte(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static slice peek_word(parser *p) {
    skip_blanks(p);
    size_t n = 0;
    while (n < p->rest.n && is_word_byte(p->rest.p[n])) {
        n++;
    }
    return slice_of(p->rest.p, n);
}

static slice take_word(parser *p) {
    slice word = peek_word(p);
    p->rest = slice_skip(p->rest, word.n);
    return word;
}

static bool take_keyword(parser *p, const char *keyword) {
    if (!slice_eq_nocase(peek_word(p), slice_str(keyword))) {
        return false;
    }
    take_word(p);
    return true;
}

static bool take_mark(parser *p, char mark) {
    skip_blanks(p);
    if (p->rest.n == 0 || p->rest.p[0] != mark) {
        return false;
    }
    p->rest = slice_skip(p->rest, 1);
    return true;
}

/* ---- values ---- */

/* A quoted text; a backslash escapes the next character, JSON's escapes included by way of the JSON reader. */
static err take_text(parser *p, slice *text_out) {
    char quote = p->rest.p[0];
    size_t n = 1;
    bool plain = true;
    while (n < p->rest.n && p->rest.p[n] != quote) {
        plain = plain && p->rest.p[n] != '\\';
        n += p->rest.p[n] == '\\' ? 2 : 1;
    }
    if (n >= p->rest.n) {
        return unsupported(p);
    }
    slice inside = slice_of(p->rest.p + 1, n - 1);
    p->rest = slice_skip(p->rest, n + 1);
    if (plain) {
        *text_out = inside;
        return OK;
    }
    slice json = arena_printf(p->op->arena, "[\"%.*s\"]", (int)inside.n, inside.p);
    buf bson = buf_init(1 << 20);
    json_root root;
    bson_iter_t it;
    err code = json_to_bson(json, NULL, &bson, &root, NULL);
    if (code == OK) {
        slice copy = arena_copy(p->op->arena, buf_view(&bson));
        code = doc_find_key(copy, SLICE_LIT("0"), &it) ? OK : E_BAD_REQUEST;
        *text_out = code == OK ? doc_text(&it) : SLICE_EMPTY;
    }
    buf_free(&bson);
    return code == OK ? OK : unsupported(p);
}

static err value_of(parser *p, const bson_iter_t *it, pkey_value *value_out) {
    *value_out = (pkey_value){.type = PKEY_UNDEFINED};
    if (BSON_ITER_HOLDS_UTF8(it)) {
        *value_out = (pkey_value){.type = PKEY_STRING, .text = doc_text(it)};
    } else if (BSON_ITER_HOLDS_NUMBER(it)) {
        *value_out = (pkey_value){.type = PKEY_NUMBER, .number = bson_iter_as_double(it)};
    } else if (BSON_ITER_HOLDS_BOOL(it)) {
        value_out->type = bson_iter_bool(it) ? PKEY_TRUE : PKEY_FALSE;
    } else if (BSON_ITER_HOLDS_NULL(it)) {
        value_out->type = PKEY_NULL;
    } else {
        return op_fail(p->op, E_BAD_REQUEST, "Parameters that are objects or arrays are not supported yet.");
    }
    return OK;
}

static int by_name(const void *a, const void *b) {
    return slice_cmp(((const parameter *)a)->name, ((const parameter *)b)->name);
}

static err read_parameter(parser *p, const bson_iter_t *entry) {
    parameter *made = &p->parameters[p->parameters_n];
    bson_iter_t name, value;
    if (!BSON_ITER_HOLDS_DOCUMENT(entry) || !bson_iter_recurse(entry, &name) || !bson_iter_recurse(entry, &value) ||
        !bson_iter_find(&name, "name") || !BSON_ITER_HOLDS_UTF8(&name)) {
        return op_fail(p->op, E_BAD_REQUEST, "Every parameter must be like {\"name\":\"@id\",\"value\":\"1\"}.");
    }
    made->name = doc_text(&name);
    made->value = (pkey_value){.type = PKEY_UNDEFINED};
    p->parameters_n++;
    return bson_iter_find(&value, "value") ? value_of(p, &value, &made->value) : OK;
}

static err read_parameters(parser *p, slice list) {
    bson_iter_t each, counting;
    size_t n = 0;
    if (!bson_iter_init_from_data(&counting, (const uint8_t *)list.p, list.n)) {
        return OK;
    }
    each = counting;
    while (bson_iter_next(&counting)) {
        n++;
    }
    p->parameters = arena_array(p->op->arena, parameter, n);
    while (bson_iter_next(&each)) {
        TRY(read_parameter(p, &each));
    }
    qsort(p->parameters, p->parameters_n, sizeof *p->parameters, by_name);
    return OK;
}

/* A parameter that was not passed is undefined. */
static pkey_value find_parameter(const parser *p, slice name) {
    parameter wanted = {.name = name};
    const parameter *found = p->parameters_n ? bsearch(&wanted, p->parameters, p->parameters_n, sizeof *p->parameters, by_name) : NULL;
    return found ? found->value : (pkey_value){.type = PKEY_UNDEFINED};
}

static err take_number(parser *p, pkey_value *value_out) {
    char text[64], *end;
    size_t n = p->rest.n < sizeof text - 1 ? p->rest.n : sizeof text - 1;
    memcpy(text, p->rest.p, n);
    text[n] = 0;
    double number = strtod(text, &end);
    if (end == text || isalpha((unsigned char)text[0])) {
        return unsupported(p);
    }
    p->rest = slice_skip(p->rest, (size_t)(end - text));
    *value_out = (pkey_value){.type = PKEY_NUMBER, .number = number};
    return OK;
}

static err take_value(parser *p, pkey_value *value_out) {
    skip_blanks(p);
    *value_out = (pkey_value){.type = PKEY_STRING};
    if (p->rest.n == 0) {
        return unsupported(p);
    }
    char first = p->rest.p[0];
    if (first == '"' || first == '\'') {
        return take_text(p, &value_out->text);
    }
    if (first == '@') {
        size_t n = 1;
        while (n < p->rest.n && is_word_byte(p->rest.p[n])) {
            n++;
        }
        slice name = slice_of(p->rest.p, n);
        p->rest = slice_skip(p->rest, n);
        *value_out = find_parameter(p, name);
        return OK;
    }
    static const struct {
        const char *word;
        pkey_type type;
    } words[] = {{"true", PKEY_TRUE}, {"false", PKEY_FALSE}, {"null", PKEY_NULL}, {"undefined", PKEY_UNDEFINED}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_eq(peek_word(p), slice_str(words[i].word))) {
            take_word(p);
            value_out->type = words[i].type;
            return OK;
        }
    }
    return take_number(p, value_out);
}

/* ---- conditions ---- */

/* One step of a path, .name or ["name"]; `done` when there is none. */
static err take_step(parser *p, slice *step_out, bool *done) {
    *done = false;
    if (take_mark(p, '.')) {
        *step_out = take_word(p);
    } else if (take_mark(p, '[')) {
        skip_blanks(p);
        if (p->rest.n == 0 || (p->rest.p[0] != '"' && p->rest.p[0] != '\'')) {
            return unsupported(p);
        }
        TRY(take_text(p, step_out));
        if (!take_mark(p, ']')) {
            return unsupported(p);
        }
    } else {
        *done = true;
        return OK;
    }
    return step_out->n ? OK : unsupported(p);
}

static err take_path(parser *p, doc_path *path_out) {
    slice steps[LIMIT_PATH_DEPTH], step;
    size_t n = 0;
    bool done;
    if (++p->conditions > CONDITIONS_MAX || !slice_eq(take_word(p), p->alias)) {
        return unsupported(p);
    }
    TRY(take_step(p, &step, &done));
    while (!done) {
        if (n == LIMIT_PATH_DEPTH) {
            return unsupported(p);
        }
        steps[n++] = slice_of(arena_text(p->op->arena, step), step.n);
        TRY(take_step(p, &step, &done));
    }
    if (n == 0) {
        return unsupported(p);
    }
    slice *kept = arena_array(p->op->arena, slice, n);
    memcpy(kept, steps, n * sizeof *steps);
    *path_out = (doc_path){.steps = kept, .steps_n = n};
    return OK;
}

static query_node *new_node(parser *p, node_kind kind) {
    query_node *node = arena_new(p->op->arena, query_node);
    node->kind = kind;
    return node;
}

static err take_or(parser *p, query_node **node_out);

static err take_list(parser *p, const doc_path *path, query_node **node_out) {
    query_node *any = new_node(p, NODE_OR), **last = &any->children;
    if (!take_mark(p, '(')) {
        return unsupported(p);
    }
    do {
        query_node *one = new_node(p, NODE_EQUAL);
        if (++p->conditions > CONDITIONS_MAX) {
            return unsupported(p);
        }
        one->path = *path;
        TRY(take_value(p, &one->value));
        *last = one;
        last = &one->next;
    } while (take_mark(p, ','));
    *node_out = any;
    return take_mark(p, ')') ? OK : unsupported(p);
}

/* IS_DEFINED(path) = false, as SDKs ask for items without a key. */
static err take_absent(parser *p, query_node **node_out) {
    *node_out = new_node(p, NODE_ABSENT);
    if (!take_mark(p, '(')) {
        return unsupported(p);
    }
    TRY(take_path(p, &(*node_out)->path));
    return take_mark(p, ')') && take_mark(p, '=') && take_keyword(p, "false") ? OK : unsupported(p);
}

static err take_comparison(parser *p, query_node **node_out) {
    if (take_mark(p, '(')) {
        if (++p->depth > DEPTH_MAX) {
            return unsupported(p);
        }
        TRY(take_or(p, node_out));
        p->depth--;
        return take_mark(p, ')') ? OK : unsupported(p);
    }
    if (take_keyword(p, "IS_DEFINED")) {
        return take_absent(p, node_out);
    }
    doc_path path;
    TRY(take_path(p, &path));
    if (take_keyword(p, "IN")) {
        return take_list(p, &path, node_out);
    }
    if (!take_mark(p, '=')) {
        return unsupported(p);
    }
    *node_out = new_node(p, NODE_EQUAL);
    (*node_out)->path = path;
    return take_value(p, &(*node_out)->value);
}

/* One or more of `take`, joined by a keyword; one alone stands for itself. */
static err take_joined(parser *p, node_kind kind, const char *keyword, err (*take)(parser *, query_node **), query_node **node_out) {
    query_node *joined = new_node(p, kind), **last = &joined->children;
    do {
        TRY(take(p, last));
        last = &(*last)->next;
    } while (take_keyword(p, keyword));
    *node_out = joined->children->next ? joined : joined->children;
    return OK;
}

static err take_and(parser *p, query_node **node_out) {
    return take_joined(p, NODE_AND, "AND", take_comparison, node_out);
}

static err take_or(parser *p, query_node **node_out) {
    return take_joined(p, NODE_OR, "OR", take_and, node_out);
}

static err take_query(parser *p, query_filter *filter_out) {
    if (p->rest.n > TEXT_BYTES_MAX) {
        return op_fail(p->op, E_BAD_REQUEST, "The SQL query text exceeded the maximum limit of %d characters", TEXT_BYTES_MAX);
    }
    if (!take_keyword(p, "SELECT") || !take_mark(p, '*') || !take_keyword(p, "FROM")) {
        return unsupported(p);
    }
    p->alias = take_word(p);
    if (take_keyword(p, "AS")) {
        p->alias = take_word(p);
    } else if (peek_word(p).n && !slice_eq_nocase(peek_word(p), SLICE_LIT("WHERE"))) {
        p->alias = take_word(p);
    }
    query_node *root = NULL;
    if (take_keyword(p, "WHERE")) {
        TRY(take_or(p, &root));
    }
    skip_blanks(p);
    filter_out->root = root;
    return p->rest.n == 0 && p->alias.n ? OK : unsupported(p);
}

err query_filter_read(sql_request *q, query_filter *filter_out) {
    parser p = {.op = &q->op};
    filter_out->root = NULL;
    if (slice_starts(sql_get(q, FIELD_CONTENT_TYPE), SLICE_LIT("application/sql"))) {
        p.rest = q->http->body;
        return take_query(&p, filter_out);
    }
    slice body;
    bson_iter_t it;
    TRY(sql_body(q, JSON_OBJECT, &body));
    if (!doc_find_key(body, SLICE_LIT("query"), &it) || !BSON_ITER_HOLDS_UTF8(&it)) {
        return op_fail(&q->op, E_BAD_REQUEST, "The query's body must be like {\"query\":\"SELECT * FROM c\",\"parameters\":[]}.");
    }
    p.rest = doc_text(&it);
    if (doc_find_key(body, SLICE_LIT("parameters"), &it) && BSON_ITER_HOLDS_ARRAY(&it)) {
        uint32_t n;
        const uint8_t *bytes;
        bson_iter_array(&it, &n, &bytes);
        TRY(read_parameters(&p, slice_of(bytes, n)));
    }
    return take_query(&p, filter_out);
}

/* ---- evaluating ---- */

static bool equals(slice document, const query_node *node) {
    bson_iter_t it;
    pkey a = {.n = 1}, b = {.n = 1, .values = {node->value}};
    parser unused = {.op = &(op){0}};
    if (node->value.type == PKEY_UNDEFINED || !doc_find(document, &node->path, &it) || BSON_ITER_HOLDS_DOCUMENT(&it) ||
        BSON_ITER_HOLDS_ARRAY(&it)) {
        return false;
    }
    return value_of(&unused, &it, &a.values[0]) == OK && pkey_equal(&a, &b);
}

static bool passes(const query_node *node, slice document) {
    bson_iter_t it;
    if (node->kind == NODE_ABSENT) {
        return !doc_find(document, &node->path, &it);
    }
    if (node->kind == NODE_EQUAL) {
        return equals(document, node);
    }
    bool all = node->kind == NODE_AND;
    for (const query_node *child = node->children; child; child = child->next) {
        if (passes(child, document) != all) {
            return !all;
        }
    }
    return all;
}

bool query_filter_passes(const query_filter *filter, slice document) {
    return !filter->root || passes(filter->root, document);
}

bool query_filter_by_id(const query_filter *filter, slice id) {
    bson_t document = BSON_INITIALIZER;
    bson_append_utf8(&document, "id", -1, id.p, (int)id.n);
    bool result = query_filter_passes(filter, slice_of(bson_get_data(&document), document.len));
    bson_destroy(&document);
    return result;
}

/* ---- read-many ---- */

static bool same_path(const doc_path *a, const doc_path *b) {
    bool same = a->steps_n == b->steps_n;
    for (size_t i = 0; same && i < a->steps_n; i++) {
        same = slice_eq(a->steps[i], b->steps[i]);
    }
    return same;
}

static bool is_id(const doc_path *path) {
    return path->steps_n == 1 && slice_eq(path->steps[0], SLICE_LIT("id"));
}

/* One alternative: equalities that together give the id and every component of the key, and nothing else. */
static bool read_key(const container *c, const query_node *alternative, item_key *key) {
    const query_node *first = alternative->kind == NODE_AND ? alternative->children : alternative;
    unsigned seen = 0;
    key->partition = (pkey){.n = c->key.n};
    key->id = SLICE_EMPTY;
    for (const query_node *node = first; node; node = alternative->kind == NODE_AND ? node->next : NULL) {
        bool known = false;
        if (node->kind != NODE_ABSENT && (node->kind != NODE_EQUAL || node->value.type == PKEY_UNDEFINED)) {
            return false; /* what equals undefined is nothing, and no key */
        }
        for (unsigned i = 0; i < c->key.n; i++) {
            if (same_path(&node->path, &c->key.paths[i])) {
                key->partition.values[i] = node->value;
                seen |= 1u << i;
                known = true;
            }
        }
        if (is_id(&node->path) && node->value.type == PKEY_STRING) {
            key->id = node->value.text;
            known = true;
        }
        if (!known) {
            return false;
        }
    }
    return key->id.n && seen == (1u << c->key.n) - 1;
}

err query_filter_keys(sql_request *q, const query_filter *filter, item_key **keys_out, size_t *n_out) {
    parser p = {.op = &q->op};
    size_t n = 0;
    const query_node *root = filter->root;
    const query_node *first = root->kind == NODE_OR ? root->children : root;
    for (const query_node *node = first; node; node = root->kind == NODE_OR ? node->next : NULL) {
        n++;
    }
    if (n > KEYS_MAX) {
        return unsupported(&p);
    }
    item_key *keys = arena_array(q->http->arena, item_key, n);
    n = 0;
    for (const query_node *node = first; node; node = root->kind == NODE_OR ? node->next : NULL) {
        if (!read_key(q->container, node, &keys[n])) {
            return unsupported(&p);
        }
        pkey partition = keys[n].partition;
        TRY(item_check_key(&q->op, q->container, &partition, keys[n].id, &keys[n]));
        n++;
    }
    *keys_out = keys;
    *n_out = n;
    return OK;
}
