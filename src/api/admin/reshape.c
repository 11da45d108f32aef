/* POST /_tesela/split and /_tesela/merge: manual, one at a time. GET /_tesela/events: past splits and merges, and their reasons. */
#include <stdlib.h>

#include "api/admin/admin_int.h"
#include "base/memory.h"
#include "doc/json.h"

/* ---- events ---- */

static void add_ids(buf *out, const char *name, const uint32_t *ids, uint32_t n) {
    buf_addf(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < n && i < 8; i++) {
        buf_addf(out, "%s\"%u\"", i ? "," : "", ids[i]);
    }
    buf_add_byte(out, ']');
}

static void write_event(buf *out, const account_event *e) {
    buf_addf(out, "{\"number\":%lu,\"time\":%ld,\"kind\":\"%s\"", (unsigned long)e->number, (long)e->ts_ms,
             e->after_n > e->before_n ? "split" : "merge");
    admin_add_text(out, "reason", slice_str(plan_reason_text(e->reason)));
    admin_add_text(out, "database", slice_str(e->database));
    admin_add_text(out, "container", slice_str(e->container));
    add_ids(out, "before", e->before, e->before_n);
    add_ids(out, "after", e->after, e->after_n);
    admin_add(out, "beforeCount", e->before_n);
    admin_add(out, "afterCount", e->after_n);
    admin_add(out, "items", e->items);
    admin_add(out, "bytes", e->bytes);
    admin_add(out, "tookUs", e->took_us);
    admin_add(out, "heldUs", e->held_us);
    buf_add_byte(out, '}');
}

static bool is_of(const account_event *e, slice database, slice container) {
    return (!database.n || slice_eq(database, slice_str(e->database))) && (!container.n || slice_eq(container, slice_str(e->container)));
}

/* If no event matches, the container must at least exist. Deleted containers keep their events for a while. */
static err check_there(admin_request *q, slice database, slice container) {
    report found;
    if (account_report(q->admin->account, database, container, &found) != OK) {
        return op_fail(&q->op, E_NOT_FOUND, "There is no such %s.", container.n ? "container" : "database");
    }
    report_free(&found);
    return OK;
}

err admin_events(admin_request *q) {
    slice database, container;
    uint64_t limit = ACCOUNT_EVENTS_MAX, written = 0;
    TRY(admin_param(q, "database", &database));
    TRY(admin_param(q, "container", &container));
    TRY(admin_param_number(q, "limit", 1, ACCOUNT_EVENTS_MAX, &limit));
    account_event *events = mem_alloc(ACCOUNT_EVENTS_MAX * sizeof *events);
    size_t n = account_events(q->admin->account, events, ACCOUNT_EVENTS_MAX);
    buf_add_lit(&q->body, "{\"events\":[");
    for (size_t i = 0; i < n && written < limit; i++) {
        if (is_of(&events[i], database, container)) {
            buf_add(&q->body, ",", written++ > 0);
            write_event(&q->body, &events[i]);
        }
    }
    buf_add_lit(&q->body, "]}\n");
    free(events);
    return written ? OK : check_there(q, database, container);
}

/* ---- manual splits and merges ---- */

typedef struct target {
    container *container;
    int64_t ranges[2];
    uint64_t parts;
} target;

static err read_container(admin_request *q, slice body, target *t) {
    slice database, name;
    TRY(admin_text(q, body, "database", &database));
    TRY(admin_text(q, body, "container", &name));
    return admin_container(q, database, name, &t->container);
}

/* Rejects unknown ranges before anything waits; later errors mean that the range has gone. */
static err read_range(admin_request *q, const target *t, slice body, const char *name, int64_t *id_out) {
    size_t position;
    *id_out = -1;
    TRY(admin_range_id(q, body, name, id_out));
    if (*id_out < 0) {
        return op_fail(&q->op, E_BAD_REQUEST, "'%s' must be given: the id of a range.", name);
    }
    return admin_range(q, t->container, *id_out, &position);
}

/* Writes the newest event of the container whose first source is this range: the one that just happened. */
static void write_done(admin_request *q, const container *c, uint32_t range) {
    enum { LOOKED_AT = 64 };
    account_event *events = mem_alloc(LOOKED_AT * sizeof *events);
    size_t n = account_events(q->admin->account, events, LOOKED_AT);
    for (size_t i = 0; i < n; i++) {
        if (is_of(&events[i], c->database_id, c->id) && events[i].before[0] == range) {
            write_event(&q->body, &events[i]);
            break;
        }
    }
    if (q->body.n == 0) {
        buf_add_lit(&q->body, "{}");
    }
    buf_add_byte(&q->body, '\n');
    free(events);
}

static err split(admin_request *q, slice body, target *t) {
    t->parts = 2;
    TRY(read_range(q, t, body, "range", &t->ranges[0]));
    TRY(admin_number(q, body, "parts", 2, 100, &t->parts));
    return account_split(q->admin->account, &q->op, t->container, (uint32_t)t->ranges[0], (uint32_t)t->parts);
}

static err merge(admin_request *q, slice body, target *t) {
    TRY(read_range(q, t, body, "first", &t->ranges[0]));
    TRY(read_range(q, t, body, "second", &t->ranges[1]));
    return account_merge(q->admin->account, &q->op, t->container, (uint32_t)t->ranges[0], (uint32_t)t->ranges[1]);
}

static err reshape(admin_request *q, slice body, err (*change)(admin_request *, slice, target *)) {
    target t = {0};
    TRY(read_container(q, body, &t));
    err code = change(q, body, &t);
    if (code == OK) {
        write_done(q, t.container, (uint32_t)t.ranges[0]);
    }
    container_give(t.container);
    return code;
}

err admin_split(admin_request *q) {
    static const char *const names[] = {"database", "container", "range", "parts"};
    slice body;
    TRY(admin_body(q, names, 4, &body));
    return reshape(q, body, split);
}

err admin_merge(admin_request *q) {
    static const char *const names[] = {"database", "container", "first", "second"};
    slice body;
    TRY(admin_body(q, names, 4, &body));
    return reshape(q, body, merge);
}
