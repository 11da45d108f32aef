/* text.c — scripts: statements, chains of methods, arguments. By recursive descent; nesting is bounded by the limits. */
#include <math.h>

#include "gremlin/text_int.h"

/* A traversal without a source: `first` is the name of its first step, `args` that step's arguments, or NULL if they are still to be read.
 * Ends before what does not belong to it. */
static err read_anonymous(reader *r, slice first, size_t first_at, const gremlin_items *args, gremlin_value *value_out);

static inline bool is(slice word, const char *text) {
    return slice_is(word, text);
}

/* ---- lists, sets, maps ---- */

static err enter(reader *r) {
    return ++r->depth > r->limits->depth ? gremlin__refuse(r, r->at, "Nested deeper than %u levels.", r->limits->depth) : OK;
}

/* A key of a map: a bare word is a string, as in Groovy, unless it is in parentheses or qualified (T.id). */
static err read_key(reader *r, gremlin_value *key_out, bool *bare_out) {
    size_t from = r->at;
    slice word = gremlin__word(r);
    *bare_out = word.n && gremlin__peek(r) == ':';
    if (*bare_out) {
        *key_out = gremlin_string(word);
        return OK;
    }
    r->at = from;
    if (gremlin__eat(r, '(')) {
        TRY(gremlin__read_value(r, key_out));
        return gremlin__expect(r, ')');
    }
    return gremlin__read_value(r, key_out);
}

static void put(reader *r, gremlin_pairs *pairs, gremlin_value key, gremlin_value value) {
    for (size_t i = 0; i < pairs->n; i++) {
        if (gremlin_same(pairs->at[i].key, key)) {
            pairs->at[i].value = value;
            return;
        }
    }
    gremlin_pairs_add(r->arena, pairs, key, value);
}

static err read_map(reader *r, gremlin_value first_key, gremlin_value *value_out) {
    gremlin_pairs pairs = {0};
    gremlin_value key = first_key, value;
    bool bare;
    for (;;) {
        TRY(gremlin__expect(r, ':'));
        TRY(gremlin__read_value(r, &value));
        put(r, &pairs, key, value);
        if (!gremlin__eat(r, ',')) {
            break;
        }
        TRY(read_key(r, &key, &bare));
    }
    TRY(gremlin__expect(r, ']'));
    *value_out = gremlin_pairs_map(r->arena, &pairs, GREMLIN_MAP);
    return OK;
}

static err read_rest_of_list(reader *r, gremlin_items *items, char close) {
    gremlin_value v;
    while (gremlin__eat(r, ',')) {
        TRY(gremlin__read_value(r, &v));
        gremlin_items_add(r->arena, items, v);
    }
    return gremlin__expect(r, close);
}

static err read_brackets(reader *r, gremlin_value *value_out) {
    gremlin_items items = {0};
    gremlin_value first;
    bool bare;
    if (gremlin__eat(r, ']')) {
        *value_out = gremlin_items_list(r->arena, &items, GREMLIN_LIST);
        return OK;
    }
    if (gremlin__eat(r, ':')) {
        *value_out = gremlin_map_of(r->arena, GREMLIN_MAP, NULL, 0);
        return gremlin__expect(r, ']');
    }
    TRY(read_key(r, &first, &bare));
    if (gremlin__peek(r) == ':') {
        return read_map(r, first, value_out);
    }
    gremlin_items_add(r->arena, &items, first);
    TRY(read_rest_of_list(r, &items, ']'));
    bool range = items.n == 1 && first.type == GREMLIN_LIST && first.list == r->range; /* [1..5] is the range itself */
    *value_out = range ? first : gremlin_items_list(r->arena, &items, GREMLIN_LIST);
    return OK;
}

static err read_braces(reader *r, gremlin_value *value_out) {
    gremlin_items items = {0};
    gremlin_value first;
    size_t from = r->at;
    if (!gremlin__eat(r, '}')) {
        if (gremlin__read_value(r, &first) != OK) {
            return gremlin__refuse(r, from, "Groovy closures (lambdas) are not supported; use a traversal.");
        }
        gremlin_items_add(r->arena, &items, first);
        if (read_rest_of_list(r, &items, '}') != OK) {
            return gremlin__refuse(r, from, "Groovy closures (lambdas) are not supported; use a traversal.");
        }
    }
    gremlin_items set = {0};
    for (size_t i = 0; i < items.n; i++) {
        bool seen = false;
        for (size_t j = 0; j < set.n && !seen; j++) {
            seen = gremlin_same(set.at[j], items.at[i]);
        }
        if (!seen) {
            gremlin_items_add(r->arena, &set, items.at[i]);
        }
    }
    *value_out = gremlin_items_list(r->arena, &set, GREMLIN_SET);
    return OK;
}

enum { RANGE_MAX = 10000 };

/* `1..5`, after the first number. */
static err read_range(reader *r, gremlin_value first, gremlin_value *value_out) {
    gremlin_value last;
    gremlin_items items = {0};
    size_t from = r->at;
    r->at += 2;
    TRY(gremlin__read_value(r, &last));
    if (!gremlin_is_whole(last)) {
        return gremlin__refuse(r, from, "A range needs two whole numbers.");
    }
    __int128 distance = (__int128)last.i - first.i;
    if (distance > RANGE_MAX || distance < -RANGE_MAX) {
        return gremlin__refuse(r, from, "A range has at most %d values.", RANGE_MAX);
    }
    for (int64_t i = 0, step = distance < 0 ? -1 : 1; i != (int64_t)distance + step; i += step) {
        gremlin_items_add(r->arena, &items, gremlin_whole((gremlin_type)first.type, first.i + i));
    }
    *value_out = gremlin_items_list(r->arena, &items, GREMLIN_LIST);
    r->range = value_out->list;
    return OK;
}

/* ---- names ---- */

static bool find_constant(slice word, gremlin_value *value_out) {
    static const struct {
        const char *name;
        gremlin_value value;
    } constants[] = {
        {"true", {.type = GREMLIN_BOOLEAN, .b = true}},
        {"false", {.type = GREMLIN_BOOLEAN, .b = false}},
        {"null", {.type = GREMLIN_NULL}},
        {"NaN", {.type = GREMLIN_DOUBLE, .d = (double)NAN}},
        {"Infinity", {.type = GREMLIN_DOUBLE, .d = (double)INFINITY}},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (is(word, constants[i].name)) {
            *value_out = constants[i].value;
            return true;
        }
    }
    return false;
}

static bool find_option(slice name, gremlin_value *value_out) {
    static const struct {
        const char *name;
        int32_t number;
        const char *text;
    } options[] = {{"tokens", 0, "~tinkerpop.valueMap.tokens"},
                   {"none", 0, NULL},
                   {"ids", 1, NULL},
                   {"labels", 2, NULL},
                   {"keys", 4, NULL},
                   {"values", 8, NULL},
                   {"all", 15, NULL},
                   {"indexer", 0, "~tinkerpop.index.indexer"},
                   {"list", 0, NULL},
                   {"map", 1, NULL}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (is(name, options[i].name)) {
            *value_out = options[i].text ? gremlin_string(slice_str(options[i].text)) : gremlin_int(options[i].number);
            return true;
        }
    }
    return false;
}

static bool ends_with(slice word, const char *end) {
    size_t n = strlen(end);
    return word.n > n && memcmp(word.p + word.n - n, end, n) == 0;
}

static gremlin_value strategy_value(reader *r, slice name, const gremlin_pairs *settings) {
    gremlin_strategy *s = arena_new(r->arena, gremlin_strategy);
    *s = (gremlin_strategy){.name = name, .n = settings->n, .settings = settings->at};
    return (gremlin_value){.type = GREMLIN_STRATEGY, .strategy = s};
}

/* new ProductiveByStrategy(productiveKeys: ['a'], …) */
static err read_new_strategy(reader *r, gremlin_value *value_out) {
    gremlin_pairs settings = {0};
    gremlin_value key, value;
    bool bare;
    size_t from = r->at;
    slice name = gremlin__word(r);
    if (!ends_with(name, "Strategy")) {
        return gremlin__refuse(r, from, "Only strategies can be made with new.");
    }
    if (!gremlin__eat(r, '(') || gremlin__eat(r, ')')) {
        *value_out = strategy_value(r, name, &settings);
        return OK;
    }
    do {
        TRY(read_key(r, &key, &bare));
        TRY(gremlin__expect(r, ':'));
        TRY(gremlin__read_value(r, &value));
        gremlin_pairs_add(r->arena, &settings, key, value);
    } while (gremlin__eat(r, ','));
    *value_out = strategy_value(r, name, &settings);
    return gremlin__expect(r, ')');
}

/* X.build().a(1).b(2).create(), after "X.build". */
static err read_built_strategy(reader *r, slice name, gremlin_value *value_out) {
    gremlin_pairs settings = {0};
    gremlin_items args;
    TRY(gremlin__read_arguments(r, &args));
    for (;;) {
        TRY(gremlin__expect(r, '.'));
        slice setting = gremlin__word(r);
        TRY(gremlin__read_arguments(r, &args));
        if (is(setting, "create")) {
            *value_out = strategy_value(r, name, &settings);
            return OK;
        }
        gremlin_value value = args.n == 1 ? args.at[0] : gremlin_items_list(r->arena, &args, GREMLIN_LIST);
        gremlin_pairs_add(r->arena, &settings, gremlin_string(setting), value);
    }
}

static err read_predicate(reader *r, slice name, size_t from, gremlin_value *value_out) {
    gremlin_items args;
    TRY(gremlin__read_arguments(r, &args));
    if (!gremlin_predicate_of(r->arena, name, args.at, args.n, value_out)) {
        return gremlin__refuse(r, from, "The predicate %.*s does not exist or does not take these arguments.", slice_shown(name), name.p);
    }
    return OK;
}

static bool parse_uuid(slice text, uint8_t bytes[16]) {
    size_t n = 0;
    unsigned half = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (c == '-') {
            continue;
        }
        if (d < 0 || n >= 32) {
            return false;
        }
        half = half << 4 | (unsigned)d;
        if (n++ % 2) {
            bytes[n / 2 - 1] = (uint8_t)half;
        }
    }
    return n == 32;
}

static err read_uuid(reader *r, size_t from, gremlin_value *value_out) {
    gremlin_items args;
    uint8_t bytes[16];
    TRY(gremlin__read_arguments(r, &args));
    if (args.n != 1 || args.at[0].type != GREMLIN_STRING || !parse_uuid(gremlin_text(args.at[0]), bytes)) {
        return gremlin__refuse(r, from, "Expected the text of a UUID.");
    }
    *value_out = gremlin_uuid(r->arena, bytes);
    return OK;
}

static err read_datetime(reader *r, size_t from, gremlin_value *value_out) {
    gremlin_items args;
    TRY(gremlin__read_arguments(r, &args));
    if (args.n != 1 || args.at[0].type != GREMLIN_STRING || gremlin__read_date(r->arena, gremlin_text(args.at[0]), value_out) != OK) {
        return gremlin__refuse(r, from, "datetime() takes a date in ISO 8601.");
    }
    return OK;
}

/* A name with dots: `scope` is the last part but one, `name` the last. */
static err read_qualified(reader *r, slice scope, slice name, size_t from, gremlin_value *value_out) {
    gremlin_enum family;
    unsigned member;
    if (is(scope, "P") || is(scope, "TextP")) {
        return read_predicate(r, name, from, value_out);
    }
    if (is(scope, "UUID") && is(name, "fromString")) {
        return read_uuid(r, from, value_out);
    }
    if (is(scope, "WithOptions") && find_option(name, value_out)) {
        return OK;
    }
    if (is(scope, "Double") && find_constant(name, value_out)) {
        return OK;
    }
    if (ends_with(scope, "Strategy") && is(name, "build")) {
        return read_built_strategy(r, scope, value_out);
    }
    if (gremlin_enum_find(scope, &family) && gremlin_member_find(family, name, &member)) {
        *value_out = gremlin_member(family, member);
        return OK;
    }
    return gremlin__refuse(r, from, "'%.*s.%.*s' is not known; Groovy beyond the Gremlin language is not supported.", slice_shown(scope),
                           scope.p, slice_shown(name), name.p);
}

static bool is_upper(slice word) {
    return word.n && word.p[0] >= 'A' && word.p[0] <= 'Z';
}

static bool is_package(slice word) {
    return is(word, "org") || is(word, "java");
}

static err read_dotted(reader *r, slice word, size_t from, gremlin_value *value_out) {
    slice scope = word, name = word;
    while (gremlin__eat(r, '.')) {
        scope = name;
        name = gremlin__word(r);
        if (is_upper(scope) && !(is_upper(name) && gremlin__peek(r) == '.')) {
            break;
        }
    }
    return read_qualified(r, scope, name, from, value_out);
}

static bool is_predicate_name(slice word) {
    for (gremlin_p kind = 0; kind < P_AND; kind++) {
        if (is(word, gremlin_p_name(kind))) {
            return true;
        }
    }
    return false;
}

/* not(P) and not(traversal) look alike. */
static err read_not(reader *r, size_t from, gremlin_value *value_out) {
    gremlin_items args;
    TRY(gremlin__read_arguments(r, &args));
    if (args.n == 1 && args.at[0].type == GREMLIN_P) {
        return gremlin_predicate_of(r->arena, SLICE_LIT("not"), args.at, 1, value_out) ? OK : E_BAD_QUERY;
    }
    return read_anonymous(r, SLICE_LIT("not"), from, &args, value_out);
}

static err read_call(reader *r, slice word, size_t from, gremlin_value *value_out) {
    if (is_predicate_name(word)) {
        return read_predicate(r, word, from, value_out);
    }
    if (is(word, "datetime")) {
        return read_datetime(r, from, value_out);
    }
    if (is(word, "not")) {
        return read_not(r, from, value_out);
    }
    return read_anonymous(r, word, from, NULL, value_out);
}

static err read_bare(reader *r, slice word, size_t from, gremlin_value *value_out) {
    gremlin_pairs none = {0};
    const gremlin_value *bound = gremlin_is_map(r->bindings) ? gremlin_map_get(r->bindings, gremlin_string(word)) : NULL;
    if (bound) {
        *value_out = *bound;
        return OK;
    }
    if (gremlin_bare_find(word, value_out)) {
        return OK;
    }
    if (ends_with(word, "Strategy")) {
        *value_out = strategy_value(r, word, &none);
        return OK;
    }
    return gremlin__refuse(r, from, "No such property: %.*s for class: Script1. It is neither a binding nor a word of the language.",
                           slice_shown(word), word.p);
}

static err read_named(reader *r, gremlin_value *value_out) {
    size_t from = r->at;
    slice word = gremlin__word(r);
    if (find_constant(word, value_out)) {
        return OK;
    }
    if (is(word, "new")) {
        return read_new_strategy(r, value_out);
    }
    char next = gremlin__peek(r);
    if ((is(word, "__") || is(word, "g")) && next == '.') {
        r->at++;
        size_t at = r->at;
        slice first = gremlin__word(r);
        return read_anonymous(r, first, at, NULL, value_out);
    }
    if (next == '(') {
        return read_call(r, word, from, value_out);
    }
    if (next == '.' && (is_upper(word) || is_package(word))) {
        return read_dotted(r, word, from, value_out);
    }
    return read_bare(r, word, from, value_out);
}

/* .and(P), .or(P), .negate() after a predicate */
static err read_connectives(reader *r, gremlin_value *p) {
    while (p->type == GREMLIN_P && gremlin__eat(r, '.')) {
        size_t from = r->at;
        slice name = gremlin__word(r);
        gremlin_items args;
        gremlin_value *both = arena_array(r->arena, gremlin_value, 2);
        TRY(gremlin__read_arguments(r, &args));
        both[0] = *p;
        both[1] = args.n == 1 ? args.at[0] : gremlin_null();
        bool negate = is(name, "negate") && args.n == 0, known = negate || is(name, "and") || is(name, "or");
        if (!known || !gremlin_predicate_of(r->arena, negate ? SLICE_LIT("not") : name, both, negate ? 1 : 2, p)) {
            return gremlin__refuse(r, from, "A predicate can be followed by and(), or() with a predicate, or negate().");
        }
    }
    return OK;
}

static err read_primary(reader *r, gremlin_value *value_out) {
    bool found;
    size_t from = r->at;
    if (gremlin__eat(r, '[')) {
        return read_brackets(r, value_out);
    }
    if (gremlin__eat(r, '{')) {
        return read_braces(r, value_out);
    }
    TRY(gremlin__read_literal(r, value_out, &found));
    if (found) {
        return OK;
    }
    char c = gremlin__peek(r);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$') {
        return read_named(r, value_out);
    }
    return c ? gremlin__refuse(r, r->at, "Unexpected '%c'.", c) : gremlin__refuse(r, from, "Expected a value at the end of the script.");
}

err gremlin__read_value(reader *r, gremlin_value *value_out) {
    TRY(enter(r));
    TRY(read_primary(r, value_out));
    TRY(read_connectives(r, value_out));
    if (gremlin_is_whole(*value_out) && slice_starts(slice_skip(r->text, r->at), SLICE_LIT(".."))) {
        TRY(read_range(r, *value_out, value_out));
    }
    r->depth--;
    return r->op->budget ? budget_error(r->op->budget) : OK;
}

err gremlin__read_arguments(reader *r, gremlin_items *items_out) {
    gremlin_value v;
    *items_out = (gremlin_items){0};
    if (gremlin__peek(r) == '{') {
        return gremlin__refuse(r, r->at, "Groovy closures (lambdas) are not supported; use a traversal.");
    }
    TRY(gremlin__expect(r, '('));
    if (gremlin__eat(r, ')')) {
        return OK;
    }
    TRY(gremlin__read_value(r, &v));
    gremlin_items_add(r->arena, items_out, v);
    return read_rest_of_list(r, items_out, ')');
}

/* ---- traversals ---- */

static bool terminal_of(slice name, gremlin_terminal *terminal_out) {
    static const struct {
        const char *name;
        gremlin_terminal terminal;
    } terminals[] = {{"toList", TERMINAL_ALL},      {"next", TERMINAL_NEXT},        {"tryNext", TERMINAL_NEXT},
                     {"iterate", TERMINAL_ITERATE}, {"hasNext", TERMINAL_HAS_NEXT}, {"toSet", TERMINAL_TO_SET},
                     {"toBulkSet", TERMINAL_ALL},   {"explain", TERMINAL_EXPLAIN}};
    for (size_t i = 0; i < sizeof terminals / sizeof *terminals; i++) {
        if (is(name, terminals[i].name)) {
            *terminal_out = terminals[i].terminal;
            return true;
        }
    }
    return false;
}

static err read_terminal(reader *r, gremlin_draft *d, slice name, size_t from) {
    gremlin_items args;
    TRY(gremlin__read_arguments(r, &args));
    if (args.n == 1 && is(name, "next") && gremlin_is_whole(args.at[0])) {
        d->traversal.terminal = TERMINAL_NEXT_N;
        d->traversal.next_n = args.at[0].i;
    } else if (args.n) {
        return gremlin__refuse(r, from, "%.*s() takes no argument.", slice_shown(name), name.p);
    }
    return gremlin__peek(r) == '.'
               ? gremlin__refuse(r, r->at, "Nothing can follow %.*s(): its result is not a traversal.", slice_shown(name), name.p)
               : OK;
}

static err add_method(reader *r, gremlin_draft *d, slice name, size_t from, const gremlin_items *args) {
    bool of_source = d->traversal.source && d->n == 0 && gremlin_is_source_method(name);
    err e = of_source ? gremlin_draft_source(r->builder, d, name, args->at, args->n)
                      : gremlin_draft_step(r->builder, d, name, args->at, args->n);
    return e == E_BAD_QUERY ? gremlin__located(r, from, e) : e;
}

static err read_method(reader *r, gremlin_draft *d, slice name, size_t from) {
    gremlin_items args;
    TRY(gremlin__read_arguments(r, &args));
    return add_method(r, d, name, from, &args);
}

/* .name(…) and so on */
static err read_methods(reader *r, gremlin_draft *d) {
    while (gremlin__peek(r) == '.' && !slice_starts(slice_skip(r->text, r->at), SLICE_LIT(".."))) {
        r->at++;
        gremlin__skip(r);
        size_t from = r->at;
        slice name = gremlin__word(r);
        if (!name.n) {
            return gremlin__refuse(r, from, "Expected the name of a step.");
        }
        if (is(name, "tx") && d->traversal.source && d->n == 0) {
            return gremlin__refuse(r, from, "Transactions (g.tx()) are not supported.");
        }
        if (terminal_of(name, &d->traversal.terminal)) {
            return read_terminal(r, d, name, from);
        }
        TRY(read_method(r, d, name, from));
    }
    return OK;
}

static err read_anonymous(reader *r, slice first, size_t first_at, const gremlin_items *args, gremlin_value *value_out) {
    gremlin_draft *d;
    const gremlin_traversal *t;
    err e = gremlin_draft_begin(r->builder, true, &d);
    if (e != OK) {
        return gremlin__located(r, first_at, e);
    }
    TRY(args ? add_method(r, d, first, first_at, args) : read_method(r, d, first, first_at));
    TRY(read_methods(r, d));
    e = gremlin_draft_end(r->builder, d, &t);
    *value_out = (gremlin_value){.type = GREMLIN_TRAVERSAL, .traversal = t};
    return e == E_BAD_QUERY ? gremlin__located(r, first_at, e) : e;
}

static err read_statement(reader *r, const gremlin_traversal **traversal_out) {
    gremlin_draft *d;
    gremlin__skip(r);
    size_t from = r->at;
    slice word = gremlin__word(r);
    if (!is(word, "g")) {
        return gremlin__refuse(r, from,
                               "A statement must start with the traversal source g; Groovy beyond the Gremlin language is not supported.");
    }
    TRY(gremlin_draft_begin(r->builder, false, &d));
    TRY(read_methods(r, d));
    if (d->n == 0) {
        return gremlin__refuse(r, from, "The traversal has no steps.");
    }
    err e = gremlin_draft_end(r->builder, d, traversal_out);
    return e == E_BAD_QUERY ? gremlin__located(r, from, e) : e;
}

err gremlin_parse(op *o, const gremlin_limits *limits, slice text, gremlin_value bindings, gremlin_script *script_out) {
    reader r = {.op = o, .arena = o->arena, .builder = gremlin_build(o, limits), .limits = limits, .text = text, .bindings = bindings};
    const gremlin_traversal *t;
    *script_out = (gremlin_script){0};
    if (text.n > limits->script_bytes) {
        return op_fail(o, E_BAD_QUERY, "Gremlin Query Compilation Error: The script has %zu bytes; at most %zu are allowed.", text.n,
                       limits->script_bytes);
    }
    for (;;) {
        while (gremlin__eat(&r, ';')) {
        }
        gremlin__skip(&r);
        if (r.at >= r.text.n) {
            break;
        }
        TRY(read_statement(&r, &t));
        script_out->traversals = gremlin__appended(r.arena, script_out->traversals, script_out->n++, &t, sizeof t);
        if (gremlin__peek(&r) != ';' && r.at < r.text.n && gremlin__peek(&r) != 'g') {
            return gremlin__expect(&r, ';');
        }
    }
    return script_out->n ? OK : gremlin__refuse(&r, 0, "The script is empty.");
}
