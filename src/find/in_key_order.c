/* in_key_order.c — items in the order of one path's index entries. If entries contain all that the query needs, items are not loaded
 * (find__cover_path); otherwise they are (find__in_key_order).
 *
 * Entries come in the order of values, except for values that the index does not store in full: long strings with a common prefix, all
 * arrays, all objects. The entries of such indistinguishable values are a *cluster*, and so are the entries of one value. Keys of groups
 * and distinct values that begin with this path come cluster by cluster: at the end of a cluster all of its keys are known, and the walk
 * may end there if it has enough. */
#include <endian.h>
#include <math.h>

#include "find/find_int.h"

enum { ENTRIES_BETWEEN_CHECKS = 4096, PROBED_PER_KEY = 4, PROBED_MIN = 1024 };

static const char lacking_first = INDEX_UNDEFINED, lacking_last = INDEX_TYPE_END; /* stand for keys without the lead */

typedef struct key_walk {
    find__finder *finder;
    find__walk bounds;                 /* the spans that WHERE leaves of the path, and the shapes of items without it */
    bool in_keys;                      /* keys begin with this path, so clusters matter */
    bool tells;                        /* entries contain all that the query needs; an item is loaded only if its value is not whole */
    bool once;                         /* one row per value is enough */
    bool ended;                        /* the walk has enough keys, or has passed the key up to which the other ranges were read */
    size_t held;                       /* keys that the visitor had before this range */
    char value[INDEX_VALUE_BYTES_MAX]; /* value of the last entry */
    size_t value_n;
    size_t cluster_n;                  /* length of the prefix of `value` that is its cluster; 0: no entry yet */
    char whole[INDEX_VALUE_BYTES_MAX]; /* the last complete cluster */
    size_t whole_n;
    uint64_t times;   /* items with `value` counted but not yet passed to on_value */
    uint64_t matched; /* turn.matched at the first entry of `value` */
} key_walk;

static slice cluster_of(const key_walk *w) {
    return slice_of(w->value, w->cluster_n);
}

/* Whether all values with this spelling are one key. Numbers are, even if not whole, since those with the same spelling compare as
 * equal. */
static bool is_one_key(slice spelled) {
    index_value v;
    return index_value_read(spelled, &v) && (v.placed || v.type == INDEX_NUMBER);
}

static bool may_go_on(const key_walk *w) {
    return !w->finder->view->stopped && !w->ended;
}

/* ---- clusters ---- */

static void set_bound(find_access *a, slice cluster) {
    memcpy(a->reached.bound, cluster.p ? cluster.p : "", cluster.n);
    a->reached.bound_n = cluster.n;
    a->reached.bounded = true;
}

/* Whether a cluster is beyond the bound up to which other ranges were read. */
static bool is_beyond(const find_access *a, slice cluster) {
    return a->reached.bounded && slice_cmp(cluster, slice_of(a->reached.bound, a->reached.bound_n)) > 0;
}

static void flush_count(key_walk *w) {
    uint64_t times = w->times;
    w->times = 0;
    if (times) {
        find__give_value(w->finder, slice_of(w->value, w->value_n), times, false);
    }
}

/* One key more than wanted shows that another page follows. If every entry is sure to have a row, the next entry shows it. */
static bool has_enough(const key_walk *w) {
    const find_access *a = w->finder->access;
    bool sure = w->tells && a->asked.lead.sure;
    size_t n = a->visitor.keys_held(a->visitor.context) - w->held;
    return a->asked.key.wanted != SIZE_MAX && n >= a->asked.key.wanted + !sure;
}

/* All keys up to and including this cluster are complete. */
static void end_cluster(key_walk *w, slice cluster, slice next) {
    find_access *a = w->finder->access;
    if (!w->in_keys || !may_go_on(w)) {
        return;
    }
    memmove(w->whole, cluster.p, cluster.n);
    w->whole_n = cluster.n;
    if (a->asked.key.cut && slice_eq(cluster, w->bounds.start)) {
        w->held = a->visitor.keys_held(a->visitor.context);
    } else if (has_enough(w)) {
        set_bound(a, cluster);
    }
    w->ended = is_beyond(a, next);
}

/* Whether the walk begins with the items without the path. Their keys sort before all others, or after them if keys are objects
 * (ends_lacking). */
static bool begins_lacking(const key_walk *w) {
    const find_access *a = w->finder->access;
    bool again = a->asked.key.given && !a->asked.lead.alone && !a->asked.lead.in_objects && !a->asked.key.defined;
    return w->bounds.undefined && !a->asked.lead.only_defined && (!a->asked.key.given || again || !w->in_keys);
}

static bool ends_lacking(const key_walk *w) {
    const find_lead *l = &w->finder->access->asked.lead;
    return w->in_keys && w->bounds.undefined && l->in_objects && !l->alone;
}

/* ---- entries ---- */

static err take_again(key_walk *w, item_lookup *l, const item_entry *e, unsigned *same) {
    const find_access *a = w->finder->access;
    bool enough = w->once && is_one_key(slice_of(w->value, w->value_n)) && (w->times || a->turn.matched > w->matched);
    if (enough && ++*same % FIND_NEAR == 0) {
        item_lookup_seek(l, slice_of(w->value, w->value_n), UINT64_MAX, false);
    }
    if (w->times) {
        w->times++;
        return OK;
    }
    return enough ? OK : find__offer(w->finder, (item_ref){e->number, e->segment});
}

static err take_first(key_walk *w, const item_entry *e) {
    index_value v;
    bool whole = index_value_read(e->value, &v) && v.whole;
    memcpy(w->value, e->value.p, e->value.n);
    w->value_n = e->value.n;
    w->cluster_n = find_cluster_bytes(e->value);
    w->matched = w->finder->access->turn.matched;
    if (w->tells && whole) {
        w->times = 1;
        return OK;
    }
    return find__offer(w->finder, (item_ref){e->number, e->segment});
}

static err take_entry(key_walk *w, item_lookup *l, const item_entry *e, unsigned *same) {
    if (++w->finder->access->report.entries % ENTRIES_BETWEEN_CHECKS == 0) {
        TRY(op_check(w->finder->view->op));
    }
    if (e->value.n == 0 || e->value.n > sizeof w->value) {
        return E_STORE_CORRUPT;
    }
    if (w->cluster_n && slice_eq(e->value, slice_of(w->value, w->value_n))) {
        return take_again(w, l, e, same);
    }
    *same = 0;
    flush_count(w);
    slice next = slice_of(e->value.p, find_cluster_bytes(e->value));
    if (w->cluster_n ? !slice_eq(next, cluster_of(w)) : w->whole_n > 0) {
        end_cluster(w, w->cluster_n ? cluster_of(w) : slice_of(w->whole, w->whole_n), next);
    } else if (w->in_keys && !w->cluster_n) { /* the range's first entry */
        w->ended = is_beyond(w->finder->access, next);
    }
    return may_go_on(w) ? take_first(w, e) : OK;
}

/* Seeks the first entry of a span after the previous page's last key. False: the whole span is before that key. */
static bool seek_start(const key_walk *w, item_lookup *l, const find_span *span) {
    slice start = w->bounds.start;
    if (start.n && span->to.n && slice_cmp(span->to, start) <= 0) {
        return false;
    }
    bool resumed = start.n && slice_cmp(start, span->from) >= 0;
    item_lookup_seek(l, resumed ? start : span->from, resumed ? w->bounds.start_number : 0, false);
    return true;
}

static item_lookup *open_span(const key_walk *w, const find_span *span) {
    const item_view *v = w->finder->view;
    return span->point ? item_lookup_open_value(v, w->bounds.path, span->from, true) : item_lookup_open(v, w->bounds.path);
}

static err walk_span(key_walk *w, const find_span *span) {
    item_entry e;
    unsigned same = 0;
    err code = OK;
    item_lookup *l = open_span(w, span);
    if (seek_start(w, l, span)) {
        while (code == OK && may_go_on(w) && find__next_entry(w->finder, l, &e) && find_within(span, e.value)) {
            code = take_entry(w, l, &e, &same);
        }
    }
    err ended = find__close_lookup(w->finder, l);
    return code != OK ? code : ended;
}

static err walk_spans(key_walk *w) {
    err code = OK;
    for (size_t i = 0; i < w->bounds.spans_n && code == OK && may_go_on(w); i++) {
        code = walk_span(w, &w->bounds.spans[i]);
    }
    if (code == OK && may_go_on(w)) {
        flush_count(w);
    }
    if (code == OK && w->cluster_n && ends_lacking(w)) {
        end_cluster(w, cluster_of(w), slice_of(&lacking_last, 1));
    }
    return code;
}

/* ---- items without the path ---- */

/* Counts the items with one of these shapes, up to `most`. */
static err count_lacking(find__finder *f, const find__walk *w, size_t most, size_t *lacking_out) {
    *lacking_out = 0;
    for (size_t i = 0; i < w->shapes_n && *lacking_out < most; i++) {
        uint64_t next = htobe64(be64toh(w->shapes[i]) + 1);
        find_span span = {.path = INDEX_PATH_SHAPES, .from = slice_of(&w->shapes[i], 8), .point = true};
        span.to = next ? slice_of(&next, 8) : SLICE_EMPTY;
        TRY(find__read_span(f, &span, 0, NULL, most, lacking_out));
    }
    f->access->report.entries += *lacking_out;
    return OK;
}

static err tell_lacking(key_walk *w) {
    size_t lacking;
    TRY(count_lacking(w->finder, &w->bounds, w->once ? 1 : SIZE_MAX, &lacking));
    if (lacking) {
        find__give_value(w->finder, SLICE_EMPTY, lacking, false);
    }
    return OK;
}

/* Offers the items without the path. If keys are objects: those with an empty key at the beginning, the others (`last`) at the end. */
static err walk_lacking(key_walk *w, bool last) {
    find_access *a = w->finder->access;
    a->turn.only_empty = !last && a->asked.lead.in_objects && !a->asked.lead.alone;
    w->bounds.enough = a->turn.only_empty || w->once ? a->turn.matched + 1 : 0;
    err code = find__walk_undefined(&w->bounds);
    a->turn.only_empty = false;
    return code;
}

static err begin_lacking(key_walk *w) {
    TRY(w->tells ? tell_lacking(w) : walk_lacking(w, false));
    if (may_go_on(w)) {
        w->whole[0] = lacking_first;
        w->whole_n = 1;
    }
    return OK;
}

static err end_lacking(key_walk *w) {
    bool whole;
    TRY(find__lacking_shapes(&w->bounds, FIND_SHAPES_ALL, &whole));
    return whole ? walk_lacking(w, true) : E_QUERY_TOO_LONG;
}

/* ---- all of it ---- */

static void take_start(key_walk *w) {
    const find_asked *a = &w->finder->access->asked;
    slice spelled = a->key.spelled;
    if (!a->key.given || !w->in_keys) {
        return;
    }
    bool done = a->lead.alone && !a->key.cut && is_one_key(spelled); /* the key at the start was complete on the previous page */
    w->bounds.start = spelled.p[0] == lacking_first ? SLICE_EMPTY : spelled;
    w->bounds.start_number = done && w->bounds.start.n ? UINT64_MAX : 0;
}

/* *found_out false: the index cannot tell which items lack the path. */
static err prepare(key_walk *w, const find_path *path, bool *found_out) {
    find__finder *f = w->finder;
    w->bounds = (find__walk){.finder = f, .path = index_path_of(path->steps, path->n)};
    find__bound_walk(&w->bounds, f->view->op->arena);
    take_start(w);
    *found_out = !f->view->index->policy.lean || !(begins_lacking(w) || ends_lacking(w));
    if (!*found_out || !begins_lacking(w)) {
        return OK;
    }
    TRY(find__lacking_shapes(&w->bounds, find__shapes_worth_reading(f), found_out));
    *found_out = *found_out && (!w->tells || w->bounds.shapes_n == 0 || w->bounds.shapes[0] != 0);
    return OK;
}

static err run(key_walk *w) {
    find_access *a = w->finder->access;
    w->held = w->in_keys ? a->visitor.keys_held(a->visitor.context) : 0;
    if (begins_lacking(w)) {
        TRY(begin_lacking(w));
    }
    TRY(may_go_on(w) ? walk_spans(w) : OK);
    if (ends_lacking(w) && may_go_on(w)) {
        TRY(end_lacking(w));
    }
    if (w->in_keys && w->finder->view->stopped) { /* stopped inside a cluster, which is incomplete */
        set_bound(a, slice_of(w->whole, w->whole_n));
    }
    return OK;
}

err find__cover_path(find__finder *f, bool *found_out) {
    find_access *a = f->access;
    key_walk w = {.finder = f, .tells = true, .once = !a->asked.cover.multiplicity};
    w.in_keys = a->asked.lead.given &&
                a->asked.lead.path.n == a->asked.cover.path.n; /* a covered query uses one path: equal lengths mean the same path */
    err code = prepare(&w, &a->asked.cover.path, found_out);
    if (code == OK && *found_out) {
        a->reached.by_key = w.in_keys;
        code = run(&w);
    }
    return code;
}

/* ---- whether loading in this order pays ---- */

typedef struct probe {
    const key_walk *walk;
    size_t loads, loads_max;
    size_t keys;
} probe;

/* There are at least as many keys as lead values. If there are known to be more keys than wanted, one value is enough to decide. */
static bool is_undecided(const probe *p) {
    const find_access *a = p->walk->finder->access;
    bool many = !a->asked.lead.alone && (a->asked.key.many || a->asked.key.given);
    return p->loads <= p->loads_max && p->keys <= (many ? 1 : a->asked.key.wanted);
}

static err probe_span(probe *p, const find_span *span) {
    item_entry e;
    char value[INDEX_VALUE_BYTES_MAX];
    size_t value_n = 0, entries = 0, same = 0;
    item_lookup *l = open_span(p->walk, span);
    bool live = seek_start(p->walk, l, span);
    for (; live && is_undecided(p) && find__next_entry(p->walk->finder, l, &e) && find_within(span, e.value); entries++) {
        bool again = slice_eq(e.value, slice_of(value, value_n));
        p->loads += !again || !p->walk->once;
        p->keys += !again;
        if (!again && e.value.n <= sizeof value) {
            memcpy(value, e.value.p, value_n = e.value.n);
            same = 0;
        } else if (p->walk->once && ++same % FIND_NEAR == 0) {
            item_lookup_seek(l, slice_of(value, value_n), UINT64_MAX, false);
        }
    }
    p->walk->finder->access->report.entries += entries;
    return find__close_lookup(p->walk->finder, l);
}

/* Whether reading a page's keys in key order costs less than scanning all items; loading an item costs as much as scanning several. While
 * it is not known that there are more keys than wanted, only some entries are probed. If these do not decide, items are scanned until it is
 * known. */
static err pays(const key_walk *w, bool *pays_out) {
    find__finder *f = w->finder;
    const find_access *a = f->access;
    size_t worth = (size_t)(f->view->items_n / FIND_SCAN_PER_LOAD) + FIND_QUICK_ENTRIES,
           some = PROBED_PER_KEY * a->asked.key.wanted + PROBED_MIN;
    probe p = {.walk = w,
               .loads_max = a->asked.key.many || a->asked.key.given || a->asked.key.wanted == SIZE_MAX || worth < some ? worth : some};
    if (begins_lacking(w)) {
        TRY(count_lacking(f, &w->bounds, w->once ? 1 : p.loads_max + 1, &p.loads));
    }
    for (size_t i = 0; i < w->bounds.spans_n && is_undecided(&p); i++) {
        TRY(probe_span(&p, &w->bounds.spans[i]));
    }
    *pays_out = p.loads <= p.loads_max;
    return OK;
}

/* Not used if there are items without entries: they would have to be merged in number order, since the first of equal values is
 * returned. */
err find__in_key_order(find__finder *f, bool *found_out) {
    find_access *a = f->access;
    key_walk w = {.finder = f, .in_keys = true, .once = a->asked.lead.once};
    TRY(find__find_large(f));
    if (f->large.n) {
        return OK;
    }
    TRY(prepare(&w, &a->asked.lead.path, found_out));
    TRY(*found_out ? pays(&w, found_out) : OK);
    if (!*found_out) {
        return OK;
    }
    a->report.way = WAY_BY_KEY;
    a->reached.by_key = true;
    return run(&w);
}
