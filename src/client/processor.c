/* processor.c — leases: items {"id":"NAME:MIN-MAX","processor":NAME,"min","max","owner","expires","continuation"}.
 *
 *   free or expired → taken (owner, by etag) → renewed, and moved on after each page (by etag) → given back
 *
 * Every change of a lease names its etag, so of two processors that want it one gets 412 and leaves it. A lease whose ranges were split is
 * replaced by one for each of them: the new ones are created before the old one is deleted, so a crash in between repeats pages, and leaves
 * out none. */
#include <tesela/processor.h>

#include <stdlib.h>
#include <time.h>

#include <tesela/changes.h>
#include <tesela/item.h>
#include <tesela/query.h>

#include "base/memory.h"
#include "client/json.h"
#include "client/resolver_int.h"
#include "doc/json.h"

enum { POLL_MS = 1000, RENEW_MS = 5000, EXPIRE_MS = 20000, STATE_BYTES_MAX = 2 << 20 };

typedef struct lease {
    char *id, *min, *max, *owner, *etag, *continuation;
    int64_t expires_ms;
    tesela_changes *changes; /* NULL: not ours */
} lease;

typedef struct leases {
    lease *list;
    size_t n;
} leases;

struct tesela_processor {
    tesela_processor_options options;
    char *name, *instance;
    atomic_bool stop;
    atomic_uint held;
    leases own;
};

/* ---- leases as items ---- */

static int64_t wall_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void free_lease(lease *l) {
    tesela_changes_close(l->changes);
    free(l->id);
    free(l->min);
    free(l->max);
    free(l->owner);
    free(l->etag);
    free(l->continuation);
}

static void free_leases(leases *all) {
    for (size_t i = 0; i < all->n; i++) {
        free_lease(&all->list[i]);
    }
    free(all->list);
    *all = (leases){0};
}

static void add_lease(leases *all, lease l) {
    all->list = mem_resize(all->list, (all->n + 1) * sizeof *all->list);
    all->list[all->n++] = l;
}

static void drop_lease(tesela_processor *p, size_t at) {
    free_lease(&p->own.list[at]);
    p->own.list[at] = p->own.list[--p->own.n];
    p->held = (unsigned)p->own.n;
}

static bool read_lease(slice item, lease *l) {
    *l = (lease){.id = client__text_member(item, "id"),
                 .min = client__text_member(item, "min"),
                 .max = client__text_member(item, "max"),
                 .owner = client__text_member(item, "owner"),
                 .etag = client__text_member(item, "_etag"),
                 .continuation = client__text_member(item, "continuation"),
                 .expires_ms = json_whole(json_member(item, "expires"), 0, INT64_C(1) << 53, 0)};
    return l->id && l->min && l->max && l->owner && l->etag;
}

static void add_text(buf *out, const char *name, const char *text) {
    buf_addf(out, "%s\"%s\":", out->n ? "," : "{", name);
    json_add_string(out, slice_str(text));
}

static void write_lease(const tesela_processor *p, const lease *l, const char *owner, buf *out) {
    add_text(out, "id", l->id);
    add_text(out, "processor", p->name);
    add_text(out, "min", l->min);
    add_text(out, "max", l->max);
    add_text(out, "owner", owner);
    if (l->continuation) {
        add_text(out, "continuation", l->continuation);
    }
    buf_addf(out, ",\"expires\":%lld}", (long long)(*owner ? wall_ms() + p->options.expire_ms : 0));
    buf_add_byte(out, 0);
}

/* Writes a lease if it is as it was read. TESELA_PRECONDITION_FAILED: somebody else has it. */
static tesela_status put_lease(tesela_processor *p, lease *l, const char *owner, tesela_error *error) {
    buf item = buf_init(STATE_BYTES_MAX);
    tesela_key key = tesela_key_string(l->id);
    tesela_response *r = NULL;
    write_lease(p, l, owner, &item);
    tesela_status status =
        tesela_item_replace(p->options.leases, l->id, item.p, &key, &(tesela_item_options){.if_match = l->etag}, &r, error);
    if (status == TESELA_OK) {
        free(l->etag);
        l->etag = mem_text(tesela_response_etag(r), strlen(tesela_response_etag(r)));
    }
    tesela_response_free(r);
    buf_free(&item);
    return status == TESELA_NOT_FOUND ? TESELA_PRECONDITION_FAILED : status;
}

/* Creates a lease; one that is there stays. */
static tesela_status create_lease(tesela_processor *p, const char *min, const char *max, const char *continuation, tesela_error *error) {
    buf id = buf_init(4096), item = buf_init(STATE_BYTES_MAX);
    buf_addf(&id, "%s:%s-%s", p->name, min, max);
    buf_add_byte(&id, 0);
    lease l = {.id = id.p, .min = (char *)(uintptr_t)min, .max = (char *)(uintptr_t)max, .continuation = (char *)(uintptr_t)continuation};
    write_lease(p, &l, "", &item);
    tesela_key key = tesela_key_string(l.id);
    tesela_status status = tesela_item_create(p->options.leases, item.p, &key, NULL, NULL, error);
    buf_free(&id);
    buf_free(&item);
    return status == TESELA_CONFLICT ? TESELA_OK : status;
}

static tesela_status read_leases(tesela_processor *p, leases *all, tesela_error *error) {
    buf parameters = buf_init(4096);
    tesela_cursor *cursor;
    const char *row;
    buf_add_lit(&parameters, "{\"@name\":");
    json_add_string(&parameters, slice_str(p->name));
    buf_add_lit(&parameters, "}");
    buf_add_byte(&parameters, 0);
    tesela_status status = tesela_query(p->options.leases, "SELECT * FROM c WHERE c.processor = @name", parameters.p, NULL, &cursor, error);
    buf_free(&parameters);
    while (status == TESELA_OK && (status = tesela_cursor_next(cursor, &row, NULL, error)) == TESELA_OK) {
        lease l;
        if (read_lease(slice_str(row), &l)) {
            add_lease(all, l);
        } else {
            free_lease(&l);
        }
    }
    tesela_cursor_close(cursor);
    return status == TESELA_DONE ? TESELA_OK : status;
}

/* The first processor of a name makes a lease for each range. With from_now their positions are taken before any is made. */
static tesela_status create_leases(tesela_processor *p, tesela_error *error) {
    tesela_ranges *ranges = NULL;
    tesela_status status = tesela_container_ranges(p->options.feed, &ranges, error);
    for (size_t i = 0; status == TESELA_OK && i < tesela_ranges_count(ranges); i++) {
        const tesela_range *g = tesela_ranges_get(ranges, i);
        tesela_changes *c = NULL;
        size_t count;
        tesela_changes_options options = {.from_now = p->options.from_now, .min = g->min, .max = g->max};
        if (p->options.from_now) {
            status = tesela_changes_open(p->options.feed, &options, &c, error);
            status = status == TESELA_OK ? tesela_changes_page(c, &count, error) : status;
            status = status == TESELA_DONE ? TESELA_OK : status;
        }
        if (status == TESELA_OK) {
            status = create_lease(p, g->min, g->max, c ? tesela_changes_continuation(c) : NULL, error);
        }
        tesela_changes_close(c);
    }
    tesela_ranges_free(ranges);
    return status;
}

/* ---- sharing ---- */

static lease *own_lease(tesela_processor *p, const char *id) {
    for (size_t i = 0; i < p->own.n; i++) {
        if (strcmp(p->own.list[i].id, id) == 0) {
            return &p->own.list[i];
        }
    }
    return NULL;
}

static bool is_free(const lease *l) {
    return !*l->owner || l->expires_ms < wall_ms();
}

/* How many leases an owner has; the first lease of each owner counts the owner. */
static size_t count_of(const leases *all, const char *owner) {
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) {
        n += !is_free(&all->list[i]) && strcmp(all->list[i].owner, owner) == 0;
    }
    return n;
}

static size_t fair_share(const tesela_processor *p, const leases *all) {
    size_t owners = 1;
    for (size_t i = 0; i < all->n; i++) {
        bool first = !is_free(&all->list[i]) && strcmp(all->list[i].owner, p->instance) != 0;
        for (size_t k = 0; first && k < i; k++) {
            first = is_free(&all->list[k]) || strcmp(all->list[k].owner, all->list[i].owner) != 0;
        }
        owners += first;
    }
    return (all->n + owners - 1) / owners;
}

static tesela_status take_lease(tesela_processor *p, lease *l, tesela_error *error) {
    tesela_changes_options options = {.continuation = l->continuation, .min = l->min, .max = l->max, .page_items = p->options.page_items};
    tesela_status status = put_lease(p, l, p->instance, error);
    if (status == TESELA_PRECONDITION_FAILED) {
        return TESELA_OK;
    }
    if (status == TESELA_OK) {
        status = tesela_changes_open(p->options.feed, &options, &l->changes, error);
    }
    if (status == TESELA_OK) {
        add_lease(&p->own, *l);
        *l = (lease){0}; /* it has moved */
        p->held = (unsigned)p->own.n;
    }
    return status;
}

/* Free ones first; then one of a processor that has more than its share. */
static tesela_status take_share(tesela_processor *p, leases *all, tesela_error *error) {
    size_t share = fair_share(p, all);
    tesela_status status = TESELA_OK;
    for (size_t i = 0; status == TESELA_OK && i < all->n && p->own.n < share; i++) {
        if (is_free(&all->list[i]) && !own_lease(p, all->list[i].id)) {
            status = take_lease(p, &all->list[i], error);
        }
        if (!all->list[i].id) {
            all->list[i--] = all->list[--all->n];
        }
    }
    for (size_t i = 0; status == TESELA_OK && i < all->n && p->own.n < share; i++) {
        lease *l = &all->list[i];
        if (!is_free(l) && strcmp(l->owner, p->instance) != 0 && count_of(all, l->owner) > share) {
            status = take_lease(p, l, error);
            if (!l->id) {
                *l = all->list[--all->n];
            }
            break;
        }
    }
    return status;
}

static tesela_status renew(tesela_processor *p, tesela_error *error) {
    for (size_t i = 0; i < p->own.n; i++) {
        tesela_status status = put_lease(p, &p->own.list[i], p->instance, error);
        if (status == TESELA_PRECONDITION_FAILED) {
            drop_lease(p, i--);
        } else if (status != TESELA_OK) {
            return status;
        }
    }
    return TESELA_OK;
}

static tesela_status share(tesela_processor *p, tesela_error *error) {
    leases all = {0};
    tesela_status status = renew(p, error);
    if (status == TESELA_OK) {
        status = read_leases(p, &all, error);
    }
    if (status == TESELA_OK && !all.n) {
        status = create_leases(p, error);
        if (status == TESELA_OK) {
            status = read_leases(p, &all, error);
        }
    }
    if (status == TESELA_OK) {
        status = take_share(p, &all, error);
    }
    free_leases(&all);
    return status;
}

/* ---- pages ---- */

/* Makes a lease of each range, if there are several by now, and deletes the old one. True in *divided_out: the lease is no more. */
static tesela_status divide(tesela_processor *p, lease *l, bool *divided_out, tesela_error *error) {
    json_walk w;
    slice one;
    size_t n = 0;
    tesela_status status = TESELA_OK;
    *divided_out = false;
    if (!l->continuation || !json_enter(json_member(slice_str(l->continuation), "ranges"), &w)) {
        return TESELA_OK;
    }
    for (json_walk count = w; json_next(&count, NULL, &one); n++) {
    }
    while (n > 1 && status == TESELA_OK && json_next(&w, NULL, &one)) {
        char *min = client__text_member(one, "min"), *max = client__text_member(one, "max");
        buf continuation = buf_init(STATE_BYTES_MAX);
        buf_addf(&continuation, "{\"version\":1,\"ranges\":[%.*s]}", (int)one.n, one.p);
        buf_add_byte(&continuation, 0);
        status = min && max ? create_lease(p, min, max, continuation.p, error) : TESELA_OK;
        buf_free(&continuation);
        free(min);
        free(max);
    }
    if (n > 1 && status == TESELA_OK) {
        tesela_key key = tesela_key_string(l->id);
        status = tesela_item_delete(p->options.leases, l->id, &key, &(tesela_item_options){.if_match = l->etag}, NULL, error);
        status = status == TESELA_NOT_FOUND || status == TESELA_PRECONDITION_FAILED ? TESELA_OK : status;
        *divided_out = true;
    }
    return status;
}

static bool hand_over(const tesela_processor *p, const lease *l, size_t count) {
    const char **items = mem_zero(count * sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        items[i] = tesela_changes_item(l->changes, i, NULL);
    }
    bool go_on = p->options.handle(p->options.context, &(tesela_processor_page){.lease = l->id, .count = count, .items = items});
    free(items);
    return go_on;
}

/* Reads a page of lease `at` and stores the position after it. The lease may be dropped: *gone_out. */
static tesela_status work_on(tesela_processor *p, size_t at, bool *busy_out, bool *gone_out, tesela_error *error) {
    lease *l = &p->own.list[at];
    size_t count;
    *gone_out = false;
    tesela_status status = tesela_changes_page(l->changes, &count, error);
    if (status != TESELA_OK) {
        return status == TESELA_DONE ? TESELA_OK : status;
    }
    *busy_out = true;
    if (!hand_over(p, l, count)) {
        return client__fail(error, TESELA_CANCELLED, "The application's function returned false.");
    }
    const char *continuation = tesela_changes_continuation(l->changes);
    free(l->continuation);
    l->continuation = continuation ? mem_text(continuation, strlen(continuation)) : NULL;
    status = put_lease(p, l, p->instance, error);
    if (status == TESELA_PRECONDITION_FAILED) {
        *gone_out = true;
        status = TESELA_OK;
    } else if (status == TESELA_OK) {
        status = divide(p, l, gone_out, error);
    }
    if (*gone_out) {
        drop_lease(p, at);
    }
    return status;
}

/* One page of each lease. */
static tesela_status work(tesela_processor *p, bool *busy_out, tesela_error *error) {
    tesela_status status = TESELA_OK;
    *busy_out = false;
    for (size_t i = 0; status == TESELA_OK && i < p->own.n && !p->stop;) {
        bool gone;
        status = work_on(p, i, busy_out, &gone, error);
        i += !gone;
    }
    return status;
}

/* ---- running ---- */

static bool passes(tesela_status status) {
    return status == TESELA_THROTTLED || status == TESELA_NO_CONNECTION || status == TESELA_UNAVAILABLE || status == TESELA_TIMEOUT ||
           status == TESELA_GONE || status == TESELA_RETRY_WITH;
}

static void give_back(tesela_processor *p) {
    while (p->own.n) {
        (void)put_lease(p, &p->own.list[0], "", NULL);
        drop_lease(p, 0);
    }
}

static void rest(const tesela_processor *p, int64_t until_us) {
    while (!p->stop && client__now_us() < until_us) {
        client__sleep_us(10000);
    }
}

tesela_status tesela_processor_run(tesela_processor *p, tesela_error *error) {
    int64_t next_share_us = 0;
    tesela_status status = TESELA_OK;
    while (!p->stop && (status == TESELA_OK || passes(status))) {
        bool busy = false;
        int64_t now = client__now_us();
        status = TESELA_OK;
        if (now >= next_share_us) {
            status = share(p, error);
            next_share_us = now + (int64_t)p->options.renew_ms * 1000;
        }
        if (status == TESELA_OK) {
            status = work(p, &busy, error);
        }
        if (!busy) {
            int64_t until = client__now_us() + (int64_t)p->options.poll_ms * 1000;
            rest(p, until < next_share_us ? until : next_share_us);
        }
    }
    give_back(p);
    p->stop = false;
    return passes(status) ? TESELA_OK : status;
}

void tesela_processor_stop(tesela_processor *p) {
    p->stop = true;
}

unsigned tesela_processor_leases(const tesela_processor *p) {
    return p->held;
}

tesela_status tesela_processor_open(const tesela_processor_options *options, tesela_processor **processor_out, tesela_error *error) {
    *processor_out = NULL;
    if (!options->name || !*options->name || !options->instance || !*options->instance || !options->feed || !options->leases ||
        !options->handle || strlen(options->name) > 200 || strpbrk(options->name, "/\\?#")) {
        return client__fail(error, TESELA_BAD_ARGUMENT,
                            "A processor needs a name without / \\ ? #, an instance, two containers and a function.");
    }
    tesela_processor *p = mem_zero(sizeof *p);
    p->options = *options;
    p->options.poll_ms = options->poll_ms ? options->poll_ms : POLL_MS;
    p->options.renew_ms = options->renew_ms ? options->renew_ms : RENEW_MS;
    p->options.expire_ms = options->expire_ms ? options->expire_ms : EXPIRE_MS;
    p->name = mem_text(options->name, strlen(options->name));
    p->instance = mem_text(options->instance, strlen(options->instance));
    *processor_out = p;
    return TESELA_OK;
}

void tesela_processor_close(tesela_processor *p) {
    if (p) {
        free_leases(&p->own);
        free(p->name);
        free(p->instance);
        free(p);
    }
}
