/* shapes.c — finds items that lack a path. They have no entry for it, but their shape tells which paths they have. */
#include <endian.h>

#include "find/find_int.h"

enum { SHAPES_WALKED_MAX = 512, ITEMS_PER_SHAPE = 16, SHAPE_REFS = 16384 };

static bool has_path(const index_path *paths, size_t n, index_path wanted) {
    for (size_t i = 0; i < n; i++) {
        if (paths[i] == wanted) {
            return true;
        }
    }
    return false;
}

/* How many shapes are worth reading: reading the paths of one costs as much as reading some items. */
size_t find__shapes_worth_reading(const find__finder *f) {
    size_t most = (size_t)(f->view->items_n / ITEMS_PER_SHAPE);
    return f->access->asked.quick     ? FIND_QUICK_ENTRIES
           : most < SHAPES_WALKED_MAX ? SHAPES_WALKED_MAX
           : most < FIND_SHAPES_ALL   ? most
                                      : FIND_SHAPES_ALL;
}

/* Lists the shapes that lack the path, and those whose paths are not known; reads up to `most` shapes. *whole_out: all were read. */
err find__lacking_shapes(find__walk *w, size_t most, bool *whole_out) {
    find__finder *f = w->finder;
    item_entry e;
    err code = OK;
    size_t walked = 0;
    item_lookup *l = item_lookup_open(f->view, INDEX_PATH_SHAPES);
    w->shapes = arena_array(f->view->op->arena, uint64_t, most);
    w->shapes_n = 0;
    *whole_out = true;
    while (code == OK && find__next_entry(f, l, &e) && e.value.n == 8) {
        uint64_t shape;
        index_path *paths;
        size_t n = 0;
        if (++walked == most) {
            *whole_out = false;
            break;
        }
        memcpy(&shape, e.value.p, 8);
        code = item_view_shape(f->view, be64toh(shape), &paths, &n);
        if (code == E_NOT_FOUND || (code == OK && !has_path(paths, n, w->path))) {
            w->shapes[w->shapes_n++] = shape;
            code = OK;
        }
        item_lookup_seek(l, slice_of(&shape, 8), UINT64_MAX, false); /* the next shape */
    }
    f->access->report.entries += walked;
    err ended = find__close_lookup(f, l);
    return code != OK ? code : ended;
}

static err offer_lacking(find__walk *w, item_ref ref) {
    bool known = w->shapes[0] != 0;
    return known && find__skip(w, SLICE_EMPTY, ref.number) ? OK : find__offer(w->finder, ref);
}

/* Offers the items of a shape in the direction of the walk, from number `from` on. */
static err walk_one_shape(find__walk *w, uint64_t shape, uint64_t from) {
    find__finder *f = w->finder;
    item_entry e;
    err code = OK;
    item_lookup *l = item_lookup_open(f->view, INDEX_PATH_SHAPES);
    item_lookup_seek(l, slice_of(&shape, 8), from, w->backward);
    while (code == OK && find__wants_more(w) && find__next_entry(f, l, &e) && memcmp(e.value.p, &shape, 8) == 0) {
        f->access->report.entries++;
        code = offer_lacking(w, (item_ref){e.number, e.segment});
    }
    err ended = find__close_lookup(f, l);
    return code != OK ? code : ended;
}

/* Reads the next items of each shape, in the direction of the walk from number `from` on. The result is complete up to number *edge_out. */
static err read_shapes(find__walk *w, const uint64_t *shapes, size_t n, uint64_t from, find__refs *found, uint64_t *edge_out) {
    find__finder *f = w->finder;
    size_t each = SHAPE_REFS / n + 1;
    item_lookup *l = item_lookup_open(f->view, INDEX_PATH_SHAPES);
    *edge_out = w->backward ? 0 : UINT64_MAX;
    found->n = 0;
    for (size_t i = 0; i < n; i++) {
        item_entry e;
        size_t k = 0;
        item_lookup_seek(l, slice_of(&shapes[i], 8), from, w->backward);
        while (k < each && find__next_entry(f, l, &e) && memcmp(e.value.p, &shapes[i], 8) == 0 && find__add_ref(f, found, &e)) {
            k++;
        }
        if (k == each && (e.number < *edge_out) != w->backward) {
            *edge_out = e.number;
        }
        f->access->report.entries += k;
    }
    find__sort_refs(found);
    return find__close_lookup(f, l);
}

/* Merges the items of several shapes by number, in batches, since they may be as many as all items. */
static err walk_many_shapes(find__walk *w, const uint64_t *shapes, size_t n, uint64_t from) {
    find__refs found = {0};
    err code = OK;
    bool more = true;
    while (more && code == OK && find__wants_more(w)) {
        uint64_t edge;
        code = read_shapes(w, shapes, n, from, &found, &edge);
        for (size_t i = 0; i < found.n && code == OK && find__wants_more(w); i++) {
            item_ref ref = found.list[w->backward ? found.n - 1 - i : i];
            if (w->backward ? ref.number < edge : ref.number > edge) {
                break;
            }
            code = offer_lacking(w, ref);
        }
        more = edge != (w->backward ? 0 : UINT64_MAX);
        from = w->backward ? edge : edge + 1;
    }
    find__free_refs(w->finder, &found);
    return code;
}

err find__walk_undefined(find__walk *w) {
    find_access *a = w->finder->access;
    const uint64_t *shapes = w->shapes;
    size_t n = w->shapes_n;
    bool resumed = a->asked.start.given && a->asked.start.values[0].undefined;
    if (n == 0) {
        return OK;
    }
    uint64_t from = !resumed ? (w->backward ? UINT64_MAX : 0) : a->asked.start.number + w->backward;
    a->turn.only_undefined = true;
    a->turn.in_order = n == 1 || shapes[0] != 0;
    err code = n == 1 ? walk_one_shape(w, shapes[0], from) : walk_many_shapes(w, shapes, n, from);
    a->turn.only_undefined = false;
    return code;
}
