/* patch_apply.c — applies one operation after another; each copies the document with one change.
 *
 * The copy descends the path. In each object or array, the elements before and after the step's element are copied unchanged, and the
 * step's element is changed. If an array grows or shrinks, the elements after the change get new keys. Two buffers alternate as source and
 * target. */
#include <math.h>

#include "base/limits.h"
#include "doc/number.h"
#include "doc/patch_int.h"
#include "doc/walk.h"

typedef struct edit {
    op *o;
    size_t number; /* the operation's number, from 1, for error messages */
    patch_kind kind;
    patch_path path;
    bson_type_t type; /* type of `value` */
    slice value;
    buf *out;
    char sum[8]; /* holds the value of an increment */
} edit;

/* The place of a step in its container (an object or array): the element that it names, or where to add one. */
typedef struct place {
    slice before;
    slice after; /* without the found element */
    doc_element found;
    bool present;
    bool is_array;
    size_t index; /* in an array: number of elements before */
} place;

/* ---- error messages ---- */

static err fail_node(const edit *e, const char *what) {
    return op_fail(e->o, E_BAD_REQUEST, "For Operation(%zu): Node(%.*s) %s", e->number, slice_shown(e->path.text), e->path.text.p, what);
}

static err fail_absent(const edit *e) {
    return fail_node(e, e->kind == PATCH_REMOVE ? "to be removed is absent. Note: it may also have been removed earlier in the transaction."
                                                : "to be replaced is absent.");
}

/* The first `depth` steps of the path exist; the next one does not, or is not an object or array. */
static err fail_parent(const edit *e, size_t depth) {
    if (e->kind == PATCH_REPLACE || e->kind == PATCH_REMOVE) {
        return fail_absent(e);
    }
    slice text = slice_skip(e->path.text, 1);
    size_t n = 0;
    for (size_t steps = 0; n < text.n && !(text.p[n] == '/' && steps++ == depth);) {
        n++;
    }
    text.n = n;
    return op_fail(e->o, E_BAD_REQUEST,
                   "For Operation(%zu): %s Operation can only create a child object of an existing node(array or object) and cannot create "
                   "path recursively, no path found beyond: '%.*s'",
                   e->number, e->kind == PATCH_ADD ? "Add" : "Given", slice_shown(text), text.p);
}

static err fail_index(const edit *e, slice step) {
    return op_fail(e->o, E_BAD_REQUEST, "For Operation(%zu): Index(%.*s) to operate on is out of array bounds", e->number,
                   slice_shown(step), step.p);
}

/* ---- finding ---- */

/* Finds the place of a step; the element need not exist. E_STORE_CORRUPT: the container's bytes are not valid. If the step is "-" or an
 * index beyond the array's end, `index` is the number of elements. */
static err find_place(slice container, bool is_array, slice step, place *place_out) {
    doc_walk w;
    doc_element e;
    if (!doc_walk_init(&w, container)) {
        return E_STORE_CORRUPT;
    }
    size_t wanted;
    if (!is_array || !patch__index(step, &wanted)) {
        wanted = SIZE_MAX;
    }
    const char *start = w.at;
    const char *end = w.end;
    place p = {.is_array = is_array, .before = slice_of(start, (size_t)(end - start)), .after = slice_of(end, 0)};
    for (; doc_walk_next(&w, &e); p.index++) {
        if (is_array ? p.index == wanted : slice_eq(e.key, step)) {
            slice found = doc_element_bytes(&e);
            p.before = slice_of(start, (size_t)(found.p - start));
            p.after = slice_of(w.at, (size_t)(end - w.at));
            p.found = e;
            p.present = true;
            break;
        }
    }
    *place_out = p;
    return w.corrupt ? E_STORE_CORRUPT : OK;
}

/* Follows the first `n` steps of a path. E_NOT_FOUND: there is no such element. */
static err find_element(slice document, const patch_path *path, size_t n, doc_element *element_out) {
    doc_element at = {.type = BSON_TYPE_DOCUMENT, .value = document};
    for (size_t i = 0; i < n; i++) {
        place p;
        if (!doc_is_container(at.type)) {
            return E_NOT_FOUND;
        }
        TRY(find_place(at.value, at.type == BSON_TYPE_ARRAY, path->steps[i], &p));
        if (!p.present) {
            return E_NOT_FOUND;
        }
        at = p.found;
    }
    *element_out = at;
    return OK;
}

/* How many levels of objects and arrays a value has; stops counting at `allowed` + 1. */
static unsigned depth_of(bson_type_t type, slice value, unsigned allowed) {
    doc_walk w;
    doc_element e;
    unsigned deepest = 0;
    if (!doc_is_container(type) || !doc_walk_init(&w, value)) {
        return 0;
    }
    while (allowed > deepest && doc_walk_next(&w, &e)) {
        unsigned depth = depth_of(e.type, e.value, allowed - 1);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + 1;
}

/* ---- copying ---- */

static void put_key(edit *e, const place *p, slice step) {
    buf_add_byte(e->out, (char)e->type);
    if (p->is_array) {
        char digits[NUMBER_TEXT_MAX];
        buf_add(e->out, digits, number_write_integer(digits, (int64_t)p->index));
    } else {
        buf_add_slice(e->out, step);
    }
    buf_add_byte(e->out, 0);
}

/* Copies array elements, numbering them from `index` on. */
static void copy_renumbered(buf *out, slice elements, size_t index) {
    doc_walk w = {.at = elements.p, .end = elements.p + elements.n};
    doc_element e;
    while (doc_walk_next(&w, &e)) {
        char digits[NUMBER_TEXT_MAX];
        buf_add_byte(out, (char)e.type);
        buf_add(out, digits, number_write_integer(digits, (int64_t)index++));
        buf_add_byte(out, 0);
        buf_add_slice(out, e.value);
    }
}

static void put_value(edit *e, const place *p, slice step) {
    buf_add_slice(e->out, p->before);
    put_key(e, p, step);
    buf_add_slice(e->out, e->value);
    buf_add_slice(e->out, p->after);
}

static void insert_value(edit *e, const place *p, slice step) {
    buf_add_slice(e->out, p->before);
    put_key(e, p, step);
    buf_add_slice(e->out, e->value);
    if (p->present) {
        slice found = doc_element_bytes(&p->found);
        copy_renumbered(e->out, slice_of(found.p, found.n + p->after.n), p->index + 1);
    }
}

static void leave_out(edit *e, const place *p) {
    buf_add_slice(e->out, p->before);
    if (p->is_array) {
        copy_renumbered(e->out, p->after, p->index);
    } else {
        buf_add_slice(e->out, p->after);
    }
}

/* ---- changing ---- */

static double number_of(bson_type_t type, slice value, int64_t *integer_out, bool *is_integer_out) {
    *is_integer_out = type != BSON_TYPE_DOUBLE;
    if (!*is_integer_out) {
        return doc_load_double(value.p);
    }
    *integer_out = type == BSON_TYPE_INT32 ? doc_load_i32(value.p) : doc_load_i64(value.p);
    return (double)*integer_out;
}

/* Replaces e->value by its sum with the number in the document. */
static err add_up(edit *e, const doc_element *there) {
    int64_t a = 0, b = 0, sum;
    bool a_is_integer, b_is_integer;
    if (!doc_is_number(there->type)) {
        return fail_node(e, "is not a number.");
    }
    double total = number_of(there->type, there->value, &a, &a_is_integer) + number_of(e->type, e->value, &b, &b_is_integer);
    if (a_is_integer && b_is_integer && !__builtin_add_overflow(a, b, &sum)) {
        bool small = sum >= INT32_MIN && sum <= INT32_MAX;
        e->type = small ? BSON_TYPE_INT32 : BSON_TYPE_INT64;
        if (small) {
            doc_store_i32(e->sum, (int32_t)sum);
        } else {
            doc_store_i64(e->sum, sum);
        }
        e->value = slice_of(e->sum, small ? 4 : 8);
        return OK;
    }
    if (!isfinite(total)) {
        return fail_node(e, "would become too large a number.");
    }
    int64_t bits;
    memcpy(&bits, &total, sizeof bits);
    doc_store_i64(e->sum, bits);
    e->type = BSON_TYPE_DOUBLE;
    e->value = slice_of(e->sum, 8);
    return OK;
}

/* In an array a step is an index, or "-" for the end if the operation may append. */
static err check_index(const edit *e, const place *p, slice step) {
    size_t index;
    bool may_append = e->kind != PATCH_REPLACE && e->kind != PATCH_REMOVE;
    if (p->present || (may_append && slice_eq(step, SLICE_LIT("-")))) {
        return OK;
    }
    return may_append && patch__index(step, &index) && index == p->index ? OK : fail_index(e, step);
}

/* Makes the change at the last step of the path. */
static err change(edit *e, const place *p, slice step) {
    if (p->is_array) {
        TRY(check_index(e, p, step));
    } else if (!p->present && (e->kind == PATCH_REPLACE || e->kind == PATCH_REMOVE)) {
        return fail_absent(e);
    }
    if (e->kind == PATCH_INCR && p->present) {
        TRY(add_up(e, &p->found));
    }
    if (e->kind == PATCH_REMOVE) {
        leave_out(e, p);
    } else if (p->is_array && (e->kind == PATCH_ADD || e->kind == PATCH_MOVE)) {
        insert_value(e, p, step);
    } else {
        put_value(e, p, step);
    }
    return OK;
}

static err edit_container(edit *e, slice container, bool is_array, size_t depth) {
    place p;
    slice step = e->path.steps[depth];
    TRY(find_place(container, is_array, step, &p));
    size_t start = e->out->n;
    buf_add(e->out, "\0\0\0", 4);
    if (depth + 1 == e->path.n) {
        TRY(change(e, &p, step));
    } else if (!p.present || !doc_is_container(p.found.type)) {
        return fail_parent(e, depth);
    } else {
        buf_add_slice(e->out, p.before);
        buf_add(e->out, p.found.key.p - 1, 1 + p.found.key.n + 1);
        TRY(edit_container(e, p.found.value, p.found.type == BSON_TYPE_ARRAY, depth + 1));
        buf_add_slice(e->out, p.after);
    }
    buf_add_byte(e->out, 0);
    if (!buf_ok(e->out)) {
        return E_TOO_LARGE;
    }
    doc_store_i32(e->out->p + start, (int32_t)(e->out->n - start));
    return OK;
}

static err edit_document(edit *e, slice document) {
    unsigned allowed = LIMIT_JSON_DEPTH - (unsigned)e->path.n;
    if (depth_of(e->type, e->value, allowed) > allowed) {
        return fail_node(e, "would be nested too deeply.");
    }
    return edit_container(e, document, false, 0);
}

/* ---- operations ---- */

/* The state between operations: `now` is the document that the next operation reads. */
typedef struct work {
    slice now;
    buf scratch[2];
    unsigned turn;
} work;

static err run(work *w, edit *e) {
    e->out = &w->scratch[w->turn];
    w->turn ^= 1;
    buf_clear(e->out);
    TRY(edit_document(e, w->now));
    w->now = buf_view(e->out);
    return OK;
}

static bool is_prefix(const patch_path *a, const patch_path *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!slice_eq(a->steps[i], b->steps[i])) {
            return false;
        }
    }
    return true;
}

/* Adjusts `from` to the add at e->path that a move just made: an insertion in the same array shifts it by one. `*gone_out`: the add
 * overwrote the object or array that held it. */
static err follow(edit *e, slice document, patch_path *from, bool *gone_out) {
    size_t parent = e->path.n - 1;
    doc_element holder;
    *gone_out = false;
    if (from->n < e->path.n || !is_prefix(&e->path, from, parent)) {
        return OK;
    }
    TRY(find_element(document, &e->path, parent, &holder));
    if (holder.type != BSON_TYPE_ARRAY) {
        *gone_out = slice_eq(e->path.steps[parent], from->steps[parent]);
        return OK;
    }
    size_t put, taken;
    if (patch__index(e->path.steps[parent], &put) && patch__index(from->steps[parent], &taken) && put <= taken) {
        from->steps[parent] = arena_printf(e->o->arena, "%zu", taken + 1);
    }
    return OK;
}

static err move(work *w, edit *e, patch_path from) {
    doc_element moved;
    err code = find_element(w->now, &from, from.n, &moved);
    if (code != OK) {
        return code == E_NOT_FOUND ? op_fail(e->o, E_BAD_REQUEST, "For Operation(%zu): Node(%.*s) to be moved is absent.", e->number,
                                             slice_shown(from.text), from.text.p)
                                   : code;
    }
    if (from.n <= e->path.n && is_prefix(&from, &e->path, from.n)) {
        return from.n == e->path.n ? OK : fail_node(e, "is inside of what is to be moved.");
    }
    slice before = w->now;
    e->type = moved.type;
    e->value = moved.value;
    TRY(run(w, e));
    bool gone;
    TRY(follow(e, before, &from, &gone));
    edit removal = {.o = e->o, .number = e->number, .kind = PATCH_REMOVE, .path = from};
    return gone ? OK : run(w, &removal);
}

static err apply_operation(op *o, work *w, size_t number, const patch_operation *operation) {
    edit e = {.o = o, .number = number, .kind = operation->kind};
    if (!patch__split(o->arena, operation->path, &e.path)) {
        return E_BAD_REQUEST;
    }
    if (operation->kind == PATCH_MOVE) {
        patch_path from;
        return patch__split(o->arena, operation->from, &from) ? move(w, &e, from) : E_BAD_REQUEST;
    }
    e.type = operation->value.type; /* 0 for a remove */
    e.value = operation->value.value;
    return run(w, &e);
}

err patch_apply(op *o, const patch *p, slice document, buf *out) {
    size_t room = out->overflow ? 0 : out->max - out->n;
    work w = {.now = document, .scratch = {buf_init(room), buf_init(room)}};
    err code = OK;
    for (size_t i = 0; i < p->n && code == OK; i++) {
        code = apply_operation(o, &w, i + 1, &p->operations[i]);
    }
    if (code == OK && (w.now.n > room || !buf_reserve(out, w.now.n))) {
        code = E_TOO_LARGE;
    }
    if (code == OK) {
        buf_add_slice(out, w.now);
    }
    buf_free(&w.scratch[0]);
    buf_free(&w.scratch[1]);
    return code;
}
