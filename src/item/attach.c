/* The value that holds an item's attachments, little-endian: the next number (u32), then a record for each attachment:
 *
 *    0  u32  number      8  u64  lsn of its last write
 *    4  u32  _ts        16  u32  bytes of the body      20  the body, BSON
 */
#include "item/attach.h"

#include <endian.h>

#include "base/log.h"
#include "item/admit.h"
#include "item/stored.h"
#include "item/wipe.h"
#include "throughput/charge.h"

enum { START_BYTES = 4, RECORD_BYTES = 20 };

/* ---- records ---- */

static uint32_t get32(const char *p) {
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return le32toh(value);
}

static uint64_t get64(const char *p) {
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return le64toh(value);
}

static void add32(buf *out, uint32_t value) {
    value = htole32(value);
    buf_add(out, &value, sizeof value);
}

static void add64(buf *out, uint64_t value) {
    value = htole64(value);
    buf_add(out, &value, sizeof value);
}

static void add_record(buf *out, const attachment *a) {
    add32(out, a->number);
    add32(out, a->ts);
    add64(out, a->lsn);
    add32(out, (uint32_t)a->body.n);
    buf_add_slice(out, a->body);
}

static slice id_in(slice body) {
    bson_iter_t it;
    return doc_find_key(body, SLICE_LIT("id"), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

/* Takes the next record off `rest`. False: none is left, or the next one is incomplete. */
static bool take_record(slice *rest, attachment *out) {
    if (rest->n < RECORD_BYTES || get32(rest->p + 16) > rest->n - RECORD_BYTES) {
        return false;
    }
    *out = (attachment){
        .number = get32(rest->p),
        .ts = get32(rest->p + 4),
        .lsn = get64(rest->p + 8),
        .body = slice_of(rest->p + RECORD_BYTES, get32(rest->p + 16)),
    };
    *rest = slice_skip(*rest, RECORD_BYTES + out->body.n);
    out->id = id_in(out->body);
    return true;
}

static err read_start(slice value, uint32_t *next_out, slice *records_out) {
    if (value.n < START_BYTES) {
        log_error("item", "stored attachments are damaged", "bytes=%zu", value.n);
        return E_STORE_CORRUPT;
    }
    *next_out = get32(value.p);
    *records_out = slice_skip(value, START_BYTES);
    return OK;
}

/* ---- reading ---- */

err attach_open(const items *s, op *o, const container *c, const item_key *item, attach_list *list_out) {
    layout_key k;
    item_found found;
    uint32_t unused;
    *list_out = (attach_list){0};
    err code = item_read(s, o, c, item, &found);
    if (code != OK) {
        return code == E_NOT_FOUND ? E_OWNER_NOT_FOUND : code;
    }
    list_out->item_number = found.head.number;
    list_out->range = found.range;
    item_give(&found);
    layout_attachments(&k, c->space->container, &item->epk, list_out->item_number);
    code = store_get(list_out->range->home->store, STORE_INDEX, NULL, layout_view(&k), &list_out->value);
    if (code != OK) {
        return code == E_NOT_FOUND ? OK : code;
    }
    code = read_start(list_out->value.bytes, &unused, &list_out->rest);
    if (code != OK) {
        attach_close(list_out);
    }
    return code;
}

bool attach_next(attach_list *list, attachment *attachment_out) {
    return take_record(&list->rest, attachment_out);
}

/* Reading the item already paid for the first KB. */
void attach_charge(const items *s, op *o, const attach_list *list, size_t bytes) {
    double more = charge_read(bytes) - charge_read(0);
    if (more > 0) {
        op_charge(o, more);
        item__debit_more(s, o, list->range, METER_READ, more);
    }
}

void attach_close(attach_list *list) {
    store_give(&list->value);
}

/* ---- writing: the committer's thread ---- */

/* The attachments of an item while one of them is changed. */
typedef struct rewrite {
    slice records; /* the current ones */
    uint32_t next;
    size_t n;
    bool found; /* the addressed attachment exists; it is `old` */
    attachment old;
    buf out;
} rewrite;

static bool is_meant(const attach_write *a, const attachment *each) {
    return slice_eq(a->id, each->id) || (a->number && a->number == each->number);
}

static void look(const attach_write *a, rewrite *r) {
    attachment each;
    slice rest = r->records;
    while (take_record(&rest, &each)) {
        r->n++;
        if (is_meant(a, &each)) {
            r->found = true;
            r->old = each;
        }
    }
}

static err check(const attach_write *a, const rewrite *r) {
    bool must_be_there = a->kind == ATTACH_REPLACE || a->kind == ATTACH_DELETE;
    if (must_be_there && !r->found) {
        return E_NOT_FOUND;
    }
    if (a->kind == ATTACH_CREATE && r->found) {
        return E_CONFLICT;
    }
    if (r->found && a->if_match.n && !item_etag_matches(a->if_match, r->old.lsn, r->old.ts)) {
        return E_PRECONDITION;
    }
    if (a->kind == ATTACH_REPLACE && !slice_eq(id_in(a->body), r->old.id)) {
        return op_fail(a->op, E_BAD_REQUEST, "The id of an attachment cannot be changed.");
    }
    if (!r->found && r->n >= ATTACH_COUNT_MAX) {
        return op_fail(a->op, E_FORBIDDEN, "An item may have at most %d attachments.", ATTACH_COUNT_MAX);
    }
    return OK;
}

/* Writes the records in the order of their numbers; a changed one keeps its position. */
static err write_records(const attach_write *a, rewrite *r) {
    attachment each;
    slice rest = r->records;
    r->out = buf_init(ATTACH_BYTES_MAX);
    add32(&r->out, r->next);
    while (take_record(&rest, &each)) {
        if (!r->found || each.number != r->old.number) {
            add_record(&r->out, &each);
        } else if (a->kind != ATTACH_DELETE) {
            add_record(&r->out, &a->now);
        }
    }
    if (!r->found) {
        add_record(&r->out, &a->now);
    }
    return buf_ok(&r->out) ? OK
                           : op_fail(a->op, E_TOO_LARGE, "The attachments of an item may take at most %d KB.", ATTACH_BYTES_MAX / 1024);
}

static err put_records(item_work *w, const attach_write *a, const rewrite *r, slice key, size_t before) {
    TRY(item__check_room(w, a->op, before, r->out.n));
    store_put(&w->group->batch, STORE_INDEX, key, buf_view(&r->out));
    item__count_bytes(w, &a->item, (int64_t)r->out.n - (int64_t)before);
    w->part->attachments = ATTACHMENTS_SOME;
    counts_log_link(w->group, w->range);
    return OK;
}

static err change(item_work *w, attach_write *a, slice key, slice value) {
    rewrite r = {.next = 1};
    TRY(value.p ? read_start(value, &r.next, &r.records) : OK);
    look(a, &r);
    TRY(check(a, &r));
    a->created = !r.found;
    a->now = (attachment){
        .number = r.found ? r.old.number : r.next++,
        .ts = clock_ts(w->now_s),
        .lsn = ++w->range->pending.lsn,
        .id = id_in(a->body),
        .body = a->body,
    };
    err code = write_records(a, &r);
    code = code != OK ? code : put_records(w, a, &r, key, value.n);
    buf_free(&r.out);
    return code;
}

static err change_item(item_work *w, attach_write *a) {
    layout_key k;
    stored_item item;
    store_value value = {0};
    bool unused;
    TRY(item__enter(w, &a->item));
    a->range = w->range;
    TRY(item__load(w, &a->item, &item));
    bool there = item.there && !item_gone(w->container, item_wipes_now(w->container), &item.head, item.body, w->now_s);
    a->item_number = item.place.number;
    store_give(&item.pin);
    if (!there) {
        return E_OWNER_NOT_FOUND;
    }
    layout_attachments(&k, w->container->space->container, &a->item.epk, a->item_number);
    err code = commit_get(w->group, STORE_INDEX, layout_view(&k), &value, &unused);
    if (code == OK || code == E_NOT_FOUND) {
        code = change(w, a, layout_view(&k), value.bytes);
    }
    store_give(&value);
    return code;
}

static home *home_of(const attach_write *a) {
    return container_route(a->container->tiles, &a->item.epk)->home;
}

static err apply(commit *base, commit_group *group) {
    attach_write *a = (attach_write *)base;
    home *home = home_of(a);
    container_part *part = container_part_of(a->container->space, home);
    a->tiles = container_tiles_take(part->tiles);
    item_work w = {
        .items = a->items,
        .home = home,
        .group = group,
        .container = a->container,
        .part = part,
        .tiles = a->tiles,
        .arena = a->op->arena,
        .now_s = clock_wall_ms(a->items->clock) / 1000,
    };
    if (a->container->space->deleted) {
        return E_OWNER_NOT_FOUND;
    }
    TRY(container_check_writable(a->container, a->items->clock));
    container_range *range = container_route(a->tiles, &a->item.epk);
    range_counts counts = range->pending;
    err code = change_item(&w, a);
    if (code != OK) {
        range->pending = counts; /* the committer cuts the changes from the batch */
    }
    return code;
}

static void is_done(commit *base) {
    attach_write *a = (attach_write *)base;
    a->done(a);
}

err attach_submit(attach_write *a) {
    TRY(item__admit(a->items, a->op, container_route(a->container->tiles, &a->item.epk)));
    home *home = home_of(a);
    a->base = (commit){.queue = &container_part_of(a->container->space, home)->commits,
                       .use = a->kind == ATTACH_DELETE ? STORE_FREES : STORE_GROWS,
                       .apply = apply,
                       .done = is_done};
    committer_submit(home->committer, &a->base);
    return OK;
}

static double price(const attach_write *a) {
    if (a->base.code != OK) {
        return CHARGE_FAILED;
    }
    switch (a->kind) {
    case ATTACH_DELETE:
        return charge_delete(0, 0);
    default:
        return a->created ? charge_create(a->body.n, 0) : charge_replace(a->body.n, 0);
    }
}

void attach_write_charge(attach_write *a) {
    double ru = price(a);
    container_range *range = a->range ? a->range : container_route(a->container->tiles, &a->item.epk);
    op_charge(a->op, ru);
    item__debit(a->items, a->op, range, &a->item, METER_REPLACE, ru, a->base.code != OK);
}

item_mark attach_write_mark(const attach_write *w) {
    return (item_mark){w->range->id, w->range->segment, w->now.lsn};
}

void attach_write_give(attach_write *a) {
    if (a->tiles) {
        container_tiles_give(a->tiles);
        a->tiles = NULL;
    }
}

/* ---- removal with the item ---- */

/* Most containers have no attachments: one look at the store finds out, and the result is cached. */
static err look_for_any(item_work *w) {
    container_space *space = w->container->space;
    layout_key from, to;
    slice key, value;
    layout_all_attachments(&from, space->container);
    to = from;
    layout_after(&to);
    store_scan *scan = store_scan_open(w->group->store, STORE_INDEX, NULL, layout_view(&from), layout_view(&to), false);
    bool any = store_scan_next(scan, &key, &value);
    TRY(store_scan_close(scan));
    w->part->attachments = any ? ATTACHMENTS_SOME : ATTACHMENTS_NONE;
    return OK;
}

err item__remove_attachments(item_work *w, const item_key *key, uint64_t number) {
    layout_key k;
    store_value value;
    bool unused;
    if (w->part->attachments == ATTACHMENTS_UNKNOWN) {
        TRY(look_for_any(w));
    }
    if (w->part->attachments == ATTACHMENTS_NONE) {
        return OK;
    }
    layout_attachments(&k, w->container->space->container, &key->epk, number);
    err code = commit_get(w->group, STORE_INDEX, layout_view(&k), &value, &unused);
    if (code != OK) {
        return code == E_NOT_FOUND ? OK : code;
    }
    size_t bytes = value.bytes.n;
    store_give(&value);
    store_delete(&w->group->batch, STORE_INDEX, layout_view(&k));
    item__count_bytes(w, key, -(int64_t)bytes);
    return OK;
}
