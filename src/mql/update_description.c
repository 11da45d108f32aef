/* update_description.c — compares two versions of a document, as MongoDB does for change streams.
 *
 * Both are walked at once. Members of the same name are compared. If the names differ, the member of the old document was removed or has
 * moved. Members that remain in the new document were added or moved, which counts as updated. */
#include "mql/update_description.h"

#include <inttypes.h>
#include <stdio.h>

enum { PATH_BYTES_MAX = 64 * 1024, DESCRIPTION_BYTES_MAX = 32 * 1024 * 1024 };

typedef enum list { UPDATED, REMOVED, TRUNCATED, LISTS } list;

typedef struct differ {
    mql_run *run;
    buf bytes[LISTS];
    mql_builder lists[LISTS];
    buf path;
} differ;

static err compare_containers(differ *d, mql_value before, mql_value after, unsigned depth);

/* ---- what was found ---- */

static err check_room(differ *d) {
    for (list l = UPDATED; l < LISTS; l++) {
        if (!buf_ok(&d->bytes[l])) {
            return d->run->arena->budget ? budget_error(d->run->arena->budget) : E_MEMORY;
        }
    }
    return buf_ok(&d->path) ? OK : E_MEMORY;
}

static err note_updated(differ *d, mql_value v) {
    mql_add(&d->lists[UPDATED], buf_view(&d->path), v);
    TRY(mql_pay(d->run, 1 + v.bytes.n / 64));
    return check_room(d);
}

static err note_removed(differ *d) {
    mql_value path = mql_text(d->run->arena, buf_view(&d->path));
    mql_add_next(&d->lists[REMOVED], path);
    return check_room(d);
}

static err note_truncated(differ *d, size_t size) {
    mql_builder *b = &d->lists[TRUNCATED];
    mql_open_next(b, BSON_TYPE_DOCUMENT);
    mql_add(b, SLICE_LIT("field"), mql_text(d->run->arena, buf_view(&d->path)));
    mql_add(b, SLICE_LIT("newSize"), mql_int32(d->run->arena, (int32_t)size));
    mql_close(b);
    return check_room(d);
}

/* ---- the path ---- */

static size_t enter(differ *d, slice name) {
    size_t before = d->path.n;
    if (before) {
        buf_add_byte(&d->path, '.');
    }
    buf_add_slice(&d->path, name);
    return before;
}

/* ---- comparing ---- */

static bool identical(const doc_element *a, const doc_element *b) {
    return a->type == b->type && slice_eq(a->value, b->value);
}

/* The changes inside a member; or the whole new value, if that is shorter. */
static err compare_inside(differ *d, mql_value before, mql_value after, unsigned depth) {
    size_t lengths[LISTS], total = 0, total_before = 0;
    uint32_t elements[LISTS];
    for (list l = UPDATED; l < LISTS; l++) {
        lengths[l] = d->bytes[l].n;
        total_before += lengths[l];
        elements[l] = d->lists[l].elements[0];
    }
    TRY(compare_containers(d, before, after, depth + 1));
    for (list l = UPDATED; l < LISTS; l++) {
        total += d->bytes[l].n;
    }
    if (total - total_before <= after.bytes.n + d->path.n) {
        return OK;
    }
    for (list l = UPDATED; l < LISTS; l++) {
        d->bytes[l].n = lengths[l];
        d->lists[l].elements[0] = elements[l];
    }
    return note_updated(d, after);
}

/* A member that both have. */
static err compare_member(differ *d, slice name, const doc_element *before, const doc_element *after, unsigned depth) {
    TRY(mql_pay(d->run, 1 + after->value.n / 64));
    if (identical(before, after)) {
        return OK;
    }
    size_t at = enter(d, name);
    bool inside = before->type == after->type && doc_is_container(before->type) && depth < MQL_DEPTH_MAX;
    TRY(inside ? compare_inside(d, mql_of(before), mql_of(after), depth) : note_updated(d, mql_of(after)));
    d->path.n = at;
    return OK;
}

static err compare_arrays(differ *d, mql_value before, mql_value after, unsigned depth) {
    doc_walk wb, wa;
    doc_element eb, ea;
    doc_walk_init(&wb, before.bytes);
    doc_walk_init(&wa, after.bytes);
    for (size_t i = 0;; i++) {
        bool more_b = doc_walk_next(&wb, &eb), more_a = doc_walk_next(&wa, &ea);
        char text[24];
        slice name = slice_of(text, (size_t)snprintf(text, sizeof text, "%zu", i));
        if (!more_a) {
            return more_b ? note_truncated(d, i) : OK;
        }
        if (more_b) {
            TRY(compare_member(d, name, &eb, &ea, depth));
        } else {
            size_t at = enter(d, name);
            TRY(note_updated(d, mql_of(&ea)));
            d->path.n = at;
        }
    }
}

static err note_if_removed(differ *d, mql_value after, slice name) {
    size_t at = enter(d, name);
    TRY(mql_pay(d->run, 1 + after.bytes.n / 64));
    if (mql_is_missing(mql_member(after, name))) {
        TRY(note_removed(d));
    }
    d->path.n = at;
    return OK;
}

static err compare_documents(differ *d, mql_value before, mql_value after, unsigned depth) {
    doc_walk wb, wa;
    doc_element eb, ea;
    doc_walk_init(&wb, before.bytes);
    doc_walk_init(&wa, after.bytes);
    bool more_b = doc_walk_next(&wb, &eb), more_a = doc_walk_next(&wa, &ea);
    while (more_b) {
        if (more_a && slice_eq(eb.key, ea.key)) {
            TRY(compare_member(d, ea.key, &eb, &ea, depth));
            more_a = doc_walk_next(&wa, &ea);
        } else {
            TRY(note_if_removed(d, after, eb.key));
        }
        more_b = doc_walk_next(&wb, &eb);
    }
    for (; more_a; more_a = doc_walk_next(&wa, &ea)) {
        size_t at = enter(d, ea.key);
        TRY(note_updated(d, mql_of(&ea)));
        d->path.n = at;
    }
    return OK;
}

static err compare_containers(differ *d, mql_value before, mql_value after, unsigned depth) {
    return before.type == BSON_TYPE_ARRAY ? compare_arrays(d, before, after, depth) : compare_documents(d, before, after, depth);
}

static err describe(differ *d, buf *out, slice *description_out) {
    mql_builder b = mql_build(out);
    mql_add(&b, SLICE_LIT("updatedFields"), mql_document(mql_built(&d->lists[UPDATED])));
    mql_add(&b, SLICE_LIT("removedFields"), mql_array(mql_built(&d->lists[REMOVED])));
    mql_add(&b, SLICE_LIT("truncatedArrays"), mql_array(mql_built(&d->lists[TRUNCATED])));
    TRY(check_room(d));
    return mql_keep(d->run->arena, &b, description_out) ? OK : d->run->arena->budget ? budget_error(d->run->arena->budget) : E_MEMORY;
}

err mql_difference_of(mql_run *r, slice before, slice after, slice *description_out) {
    differ d = {.run = r, .path = buf_init(PATH_BYTES_MAX)};
    buf out = buf_init_counted(DESCRIPTION_BYTES_MAX, r->arena->budget);
    *description_out = SLICE_EMPTY;
    for (list l = UPDATED; l < LISTS; l++) {
        d.bytes[l] = buf_init_counted(DESCRIPTION_BYTES_MAX, r->arena->budget);
        d.lists[l] = mql_build(&d.bytes[l]);
    }
    err e = compare_documents(&d, mql_document(before), mql_document(after), 0);
    if (e == OK) {
        e = describe(&d, &out, description_out);
    }
    for (list l = UPDATED; l < LISTS; l++) {
        buf_free(&d.bytes[l]);
    }
    buf_free(&d.path);
    buf_free(&out);
    return e;
}
