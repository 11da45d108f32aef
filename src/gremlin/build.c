/* build.c — from names and arguments to steps: which arguments a step takes, what modulators change. Text and bytecode end here. */
#include <assert.h>
#include <pthread.h>

#include "gremlin/build_int.h"
#include "text/regex.h"

static const struct {
    slice name;
    const char *takes;
} steps[GREMLIN_OPS] = {
#define X(op, name, takes) {{name, sizeof name - 1}, takes},
    GREMLIN_STEPS(X)
#undef X
};

static_assert(GREMLIN_OPS < UINT8_MAX, "steps are counted in bytes");

const gremlin_limits gremlin_limits_of_service = {.script_bytes = 64 * 1024, .steps = 400, .depth = 64};

const char *gremlin_op_name(gremlin_op op) {
    return steps[op].name.p;
}

/* Steps by the first letters of their names; 0 ends a list, other numbers are one more than the step's. */
static struct {
    pthread_once_t once;
    uint8_t first[128], next[GREMLIN_OPS];
} letters = {.once = PTHREAD_ONCE_INIT};

static void sort_letters(void) {
    for (size_t op = GREMLIN_OPS; op > 0; op--) {
        uint8_t *first = &letters.first[steps[op - 1].name.p[0] & 127];
        letters.next[op - 1] = *first;
        *first = (uint8_t)op;
    }
}

static bool op_find(slice name, gremlin_op *op_out) {
    pthread_once(&letters.once, sort_letters);
    for (size_t op = name.n ? letters.first[name.p[0] & 127] : 0; op > 0; op = letters.next[op - 1]) {
        if (slice_eq(name, steps[op - 1].name)) {
            *op_out = (gremlin_op)(op - 1);
            return true;
        }
    }
    return false;
}

void *gremlin__appended(arena *a, const void *at, size_t n, const void *item, size_t size) {
    char *to = (char *)(uintptr_t)at;
    if ((n & (n - 1)) == 0) { /* 0, 1, 2, 4, …: full */
        to = arena_alloc(a, (n ? 2 * n : 1) * size);
        if (n) {
            memcpy(to, at, n * size);
        }
    }
    memcpy(to + n * size, item, size);
    return to;
}

/* ---- arguments ---- */

static bool is_family(gremlin_value v, char letter) {
    static const struct {
        char letter;
        gremlin_enum family;
    } families[] = {{'c', GREMLIN_SCOPE},     {'T', GREMLIN_T},           {'C', GREMLIN_COLUMN},
                    {'D', GREMLIN_DIRECTION}, {'K', GREMLIN_CARDINALITY}, {'O', GREMLIN_OPERATOR},
                    {'P', GREMLIN_POP},       {'R', GREMLIN_ORDER},       {'d', GREMLIN_DT}};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (families[i].letter == letter) {
            return gremlin_is_member(v, families[i].family);
        }
    }
    return false;
}

static bool is_letter(gremlin_value v, char letter) {
    switch (letter) {
    case 't':
        return v.type == GREMLIN_TRAVERSAL;
    case 's':
        return v.type == GREMLIN_STRING;
    case 'u':
        return v.type == GREMLIN_STRING || v.type == GREMLIN_NULL;
    case 'a':
        return v.type == GREMLIN_STRING || v.type == GREMLIN_NULL || v.type == GREMLIN_TRAVERSAL;
    case 'n':
        return gremlin_is_whole(v);
    case 'x':
        return gremlin_is_number(v);
    case 'b':
        return v.type == GREMLIN_BOOLEAN;
    case 'm':
        return v.type == GREMLIN_MAP;
    case 'z':
        return v.type == GREMLIN_NULL;
    case 'p':
        return v.type != GREMLIN_TRAVERSAL;
    case 'q':
        return v.type == GREMLIN_P;
    case 'e':
        return v.type == GREMLIN_ENUM;
    case 'v':
        return true;
    default:
        return is_family(v, letter);
    }
}

/* Enums of one name, such as Operator.sum and bare words that belong to several families (`values`, `local`, `first`, `any`, `set`), are
 * read as the family that the form asks for. */
static bool fits_letter(gremlin_value *v, char letter) {
    if (is_letter(*v, letter)) {
        return true;
    }
    for (gremlin_enum family = 0; v->type == GREMLIN_ENUM && family < GREMLIN_ENUMS; family++) {
        unsigned member;
        if (gremlin_member_find(family, slice_str(gremlin_member_name(v->family, v->n)), &member) &&
            is_family(gremlin_member(family, member), letter)) {
            *v = gremlin_member(family, member);
            return true;
        }
    }
    return false;
}

static bool fits_form(const char *form, size_t form_n, gremlin_value *args, size_t n) {
    size_t at = 0, i = 0;
    while (at < form_n) {
        bool repeats = at + 1 < form_n && form[at + 1] == '*';
        if (repeats) {
            while (i < n && fits_letter(&args[i], form[at])) {
                i++;
            }
            at += 2;
        } else if (i < n && fits_letter(&args[i], form[at])) {
            i++;
            at++;
        } else {
            return false;
        }
    }
    return i == n;
}

static bool fits(const char *takes, gremlin_value *args, size_t n) {
    for (const char *form = takes;; form++) {
        size_t form_n = strcspn(form, "|");
        if (fits_form(form, form_n, args, n)) {
            return true;
        }
        form += form_n;
        if (!*form) {
            return false;
        }
    }
}

static err refuse_arguments(gremlin_builder *b, slice name, const gremlin_value *args, size_t n) {
    buf shown = buf_init(400);
    for (size_t i = 0; i < n && i < 8; i++) {
        buf_addf(&shown, "%s%s", i ? ", " : "", gremlin_type_name((gremlin_type)args[i].type));
    }
    err e = op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: The step %.*s() does not take the arguments (%.*s).",
                    slice_shown(name), name.p, (int)shown.n, shown.p ? shown.p : "");
    buf_free(&shown);
    return e;
}

/* ---- predicates ---- */

static bool predicate_kind(slice name, gremlin_p *kind_out) {
    for (gremlin_p kind = 0; kind < P_KINDS; kind++) {
        if (slice_is(name, gremlin_p_name(kind))) {
            *kind_out = kind;
            return true;
        }
    }
    return false;
}

static size_t arguments_of(gremlin_p kind) {
    return kind == P_INSIDE || kind == P_OUTSIDE || kind == P_BETWEEN ? 2 : 1;
}

enum { CONNECTIVES_MAX = 200 }; /* levels of and(), or() and not() of predicates */

static bool connective(arena *a, gremlin_p kind, const gremlin_value *args, size_t n, gremlin_value *predicate_out) {
    gremlin_predicate *p = arena_new(a, gremlin_predicate);
    size_t wanted = kind == P_NOT ? 1 : 2;
    if (n != wanted || args[0].type != GREMLIN_P || args[n - 1].type != GREMLIN_P) {
        return false;
    }
    *p = (gremlin_predicate){.kind = kind, .left = args[0].predicate, .right = wanted == 2 ? args[1].predicate : NULL};
    unsigned left = p->left->depth, right = args[n - 1].predicate->depth;
    p->depth = 1 + (left > right ? left : right);
    *predicate_out = (gremlin_value){.type = GREMLIN_P, .predicate = p};
    return p->depth <= CONNECTIVES_MAX;
}

bool gremlin_predicate_of(arena *a, slice name, const gremlin_value *args, size_t n, gremlin_value *predicate_out) {
    gremlin_p kind;
    slice reason;
    if (!predicate_kind(name, &kind)) {
        return false;
    }
    if (kind == P_AND || kind == P_OR || kind == P_NOT) {
        return connective(a, kind, args, n, predicate_out);
    }
    gremlin_predicate *p = arena_new(a, gremlin_predicate);
    *p = (gremlin_predicate){.kind = kind, .n = n, .values = args};
    if (kind == P_WITHIN || kind == P_WITHOUT) {
        if (n == 1 && gremlin_is_list(args[0])) {
            p->n = args[0].list->n;
            p->values = args[0].list->at;
        }
    } else if (n != arguments_of(kind)) {
        return false;
    }
    if (kind == P_REGEX || kind == P_NOT_REGEX) {
        if (args[0].type != GREMLIN_STRING || !text_regex_compile(a, gremlin_text(args[0]), SLICE_EMPTY, &p->regex, &reason)) {
            return false;
        }
    }
    *predicate_out = (gremlin_value){.type = GREMLIN_P, .predicate = p};
    return true;
}

const gremlin_predicate *gremlin__predicate(arena *a, gremlin_value v) {
    if (v.type == GREMLIN_P) {
        return v.predicate;
    }
    gremlin_value *values = arena_new(a, gremlin_value);
    gremlin_predicate *p = arena_new(a, gremlin_predicate);
    *values = v;
    *p = (gremlin_predicate){.kind = P_EQ, .n = 1, .values = values};
    return p;
}

const gremlin_traversal *gremlin__is_traversal(arena *a, gremlin_value predicate) {
    gremlin_traversal *t = arena_new(a, gremlin_traversal);
    gremlin_step *s = arena_new(a, gremlin_step);
    gremlin_value *args = arena_new(a, gremlin_value);
    *args = predicate;
    *s = (gremlin_step){.op = GREMLIN_IS_STEP, .n = 1, .args = args, .times = -1, .limit = -1};
    *t = (gremlin_traversal){.n = 1, .steps = s};
    return t;
}

/* ---- drafts ---- */

gremlin_builder *gremlin_build(op *o, const gremlin_limits *limits) {
    gremlin_builder *b = arena_new(o->arena, gremlin_builder);
    *b = (gremlin_builder){.op = o, .arena = o->arena, .limits = limits};
    return b;
}

err gremlin_draft_begin(gremlin_builder *b, bool anonymous, gremlin_draft **draft_out) {
    gremlin_draft *d = arena_new(b->arena, gremlin_draft);
    if (++b->depth > b->limits->depth) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: Traversals are nested deeper than %u levels.",
                       b->limits->depth);
    }
    if (!anonymous) {
        b->rules = (gremlin_rules){0};
        d->traversal.source = &d->source;
    }
    *draft_out = d;
    return OK;
}

gremlin_step *gremlin__push(gremlin_builder *b, gremlin_draft *d, gremlin_op op, const gremlin_value *args, size_t n) {
    gremlin_step s = {.op = op, .n = n, .args = args, .times = -1, .limit = -1};
    d->steps = gremlin__appended(b->arena, d->steps, d->n, &s, sizeof s);
    b->steps++;
    return &d->steps[d->n++];
}

static err refused(gremlin_builder *b, gremlin_op op) {
    if (op == GREMLIN_IO_STEP) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: io() is not supported: the server reads and writes no files.");
    }
    return OK;
}

static err check_place(gremlin_builder *b, const gremlin_draft *d, gremlin_op op) {
    static const gremlin_op spawns[] = {GREMLIN_V_STEP,       GREMLIN_E_STEP,       GREMLIN_ADD_V_STEP,  GREMLIN_ADD_E_STEP,
                                        GREMLIN_MERGE_V_STEP, GREMLIN_MERGE_E_STEP, GREMLIN_INJECT_STEP, GREMLIN_CALL_STEP,
                                        GREMLIN_UNION_STEP,   GREMLIN_IO_STEP};
    bool spawn = false;
    for (size_t i = 0; i < sizeof spawns / sizeof *spawns; i++) {
        spawn |= spawns[i] == op;
    }
    if (d->traversal.source && d->n == 0 && !spawn) {
        return op_fail(b->op, E_BAD_QUERY,
                       "Gremlin Query Compilation Error: A traversal cannot start with %s(); start it with V(), E(), addV(), inject() or "
                       "another source step.",
                       gremlin_op_name(op));
    }
    return refused(b, op);
}

static err add_step(gremlin_builder *b, gremlin_draft *d, gremlin_op op, const gremlin_value *args, size_t n) {
    gremlin_step *s = gremlin__push(b, d, op, args, n);
    switch (op) {
    case GREMLIN_HAS_STEP:
    case GREMLIN_HAS_ID_STEP:
    case GREMLIN_HAS_KEY_STEP:
    case GREMLIN_HAS_LABEL_STEP:
    case GREMLIN_HAS_NOT_STEP:
    case GREMLIN_HAS_VALUE_STEP:
        return gremlin__conditions(b, s, args, n);
    case GREMLIN_PROPERTY_STEP:
        return gremlin__settings(b, s, args, n);
    case GREMLIN_REPEAT_STEP:
        s->until = d->early_until;
        s->emit = d->early_emit;
        s->emits = s->emit_first = d->early_emits;
        s->until_first = d->early_until != NULL;
        s->times = d->early_times - 1;
        d->early_times = 0;
        d->early_until = d->early_emit = NULL;
        d->early_emits = false;
        return OK;
    default:
        return OK;
    }
}

err gremlin_draft_step(gremlin_builder *b, gremlin_draft *d, slice name, const gremlin_value *given, size_t n) {
    gremlin_op op;
    bool done = false;
    if (!op_find(name, &op)) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: Unable to find any method '%.*s'", slice_shown(name), name.p);
    }
    if (b->steps >= b->limits->steps) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: The script has more than %zu steps.", b->limits->steps);
    }
    gremlin_value *args = arena_array(b->arena, gremlin_value, n ? n : 1);
    if (n) {
        memcpy(args, given, n * sizeof *args);
    }
    if (!fits(steps[op].takes, args, n)) {
        return refuse_arguments(b, name, args, n);
    }
    TRY(gremlin__modulate(b, d, op, args, n, &done));
    if (done) {
        return b->op->budget ? budget_error(b->op->budget) : OK;
    }
    TRY(check_place(b, d, op));
    TRY(add_step(b, d, op, args, n));
    return b->op->budget ? budget_error(b->op->budget) : OK;
}

err gremlin_draft_end(gremlin_builder *b, gremlin_draft *d, const gremlin_traversal **traversal_out) {
    b->depth--;
    if (d->early_until || d->early_emits || d->early_times) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: until() and emit() need a repeat().");
    }
    TRY(gremlin__check_rules(b, d));
    TRY(gremlin__plan(b, d));
    if (d->traversal.writes && gremlin_strategy_find(d->traversal.source, SLICE_LIT("ReadOnlyStrategy"))) {
        return op_fail(b->op, E_BAD_QUERY, "The provided traversal has a mutating step and thus is not read only");
    }
    d->traversal.n = d->n;
    d->traversal.steps = d->steps;
    *traversal_out = &d->traversal;
    return OK;
}

/* ---- g.with…() ---- */

static const char *const source_methods[] = {"with",           "withBulk",       "withPath",          "withSack",
                                             "withSideEffect", "withStrategies", "withoutStrategies", "withComputer"};

bool gremlin_is_source_method(slice name) {
    for (size_t i = 0; i < sizeof source_methods / sizeof *source_methods; i++) {
        if (slice_is(name, source_methods[i])) {
            return true;
        }
    }
    return false;
}

static void add_pair(gremlin_builder *b, const gremlin_pair **pairs, size_t *n, gremlin_value key, gremlin_value value) {
    gremlin_pair pair = {key, value};
    *pairs = gremlin__appended(b->arena, *pairs, (*n)++, &pair, sizeof pair);
}

static err add_strategy(gremlin_builder *b, gremlin_source *source, const gremlin_strategy *strategy) {
    TRY(gremlin__take_strategy(b, strategy));
    bool options = slice_eq(strategy->name, SLICE_LIT("OptionsStrategy")); /* what drivers make of with() */
    for (size_t i = 0; options && i < strategy->n; i++) {
        add_pair(b, &source->given, &source->given_n, strategy->settings[i].key, strategy->settings[i].value);
    }
    source->strategies = gremlin__appended(b->arena, source->strategies, source->strategy_n++, &strategy, sizeof strategy);
    return OK;
}

static err add_strategies(gremlin_builder *b, gremlin_draft *d, const gremlin_value *args, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (args[i].type != GREMLIN_STRATEGY) {
            return refuse_arguments(b, SLICE_LIT("withStrategies"), args, n);
        }
        TRY(add_strategy(b, &d->source, args[i].strategy));
    }
    return OK;
}

static err add_sack(gremlin_builder *b, gremlin_draft *d, const gremlin_value *args, size_t n) {
    if (n < 1 || n > 2 || args[0].type == GREMLIN_TRAVERSAL || (n == 2 && !fits_letter((gremlin_value *)(uintptr_t)&args[1], 'O'))) {
        return refuse_arguments(b, SLICE_LIT("withSack"), args, n);
    }
    d->source.has_sack = true;
    d->source.sack = args[0];
    d->source.sack_merge = n == 2 ? args[1] : gremlin_null();
    return OK;
}

static err add_side(gremlin_builder *b, gremlin_source *s, const gremlin_value *args, size_t n) {
    gremlin_value reducer = n == 3 ? args[2] : gremlin_null();
    if (n < 2 || n > 3 || args[0].type != GREMLIN_STRING || (n == 3 && !fits_letter(&reducer, 'O'))) {
        return refuse_arguments(b, SLICE_LIT("withSideEffect"), args, n);
    }
    s->side_reducers = gremlin__appended(b->arena, s->side_reducers, s->side_n, &reducer, sizeof reducer);
    add_pair(b, &s->sides, &s->side_n, args[0], args[1]);
    return OK;
}

err gremlin_draft_source(gremlin_builder *b, gremlin_draft *d, slice name, const gremlin_value *args, size_t n) {
    gremlin_source *s = &d->source;
    if (slice_eq(name, SLICE_LIT("with")) && (n == 1 || n == 2) && args[0].type == GREMLIN_STRING) {
        add_pair(b, &s->given, &s->given_n, args[0], n == 2 ? args[1] : gremlin_boolean(true));
        return OK;
    }
    if (slice_eq(name, SLICE_LIT("withSideEffect"))) {
        return add_side(b, s, args, n);
    }
    if (slice_eq(name, SLICE_LIT("withSack"))) {
        return add_sack(b, d, args, n);
    }
    if (slice_eq(name, SLICE_LIT("withStrategies"))) {
        return add_strategies(b, d, args, n);
    }
    if (slice_eq(name, SLICE_LIT("withoutStrategies")) || slice_eq(name, SLICE_LIT("withPath")) || slice_eq(name, SLICE_LIT("withBulk"))) {
        return OK; /* optimisations that do not change results here */
    }
    if (slice_eq(name, SLICE_LIT("withComputer"))) {
        return op_fail(b->op, E_BAD_QUERY, "Gremlin Query Compilation Error: withComputer() is not supported: traversals run as OLTP.");
    }
    return refuse_arguments(b, name, args, n);
}
