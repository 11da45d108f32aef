/* GET /_tesela/: the server as a whole. GET /_tesela/ranges: every range with its contents and load. GET /_tesela/history: past load. */
#include <stdlib.h>

#include "api/admin/admin_int.h"
#include "base/memory.h"
#include "doc/json.h"

enum { RANGES_DEFAULT = 10000, ANSWER_BYTES_MAX = 16 * 1024 * 1024, SECONDS_MAX = 3600, MINUTES_MAX = 1440 };

/* ---- the server ---- */

static int64_t now_ms(const admin_request *q) {
    return clock_wall_ms(account_items(q->admin->account)->clock);
}

static void add_limits(buf *out, const account_rules *rules) {
    buf_addf(out, ",\"limits\":{\"throttling\":%s", rules->unlimited ? "false" : "true");
    admin_add(out, "partitionRuPerSecond", rules->range_throughput);
    admin_add(out, "partitionBytes", rules->range_bytes);
    admin_add(out, "logicalPartitionBytes", rules->partition_bytes);
    admin_add(out, "fixedContainerBytes", rules->fixed_bytes);
    buf_add_byte(out, '}');
}

static void add_ports(buf *out, const net_server *server) {
    buf_add_lit(out, ",\"ports\":{");
    for (unsigned i = 0; i < net_server_ports(server); i++) {
        net_port port = net_server_port(server, i);
        buf_addf(out, "%s\"%s\":%u", i ? "," : "", port.name, port.port);
    }
    buf_add_byte(out, '}');
}

err admin_overview(admin_request *q) {
    admin *a = q->admin;
    report all;
    size_t ranges = 0;
    fault faults[FAULTS_MAX];
    TRY(account_report(a->account, SLICE_EMPTY, SLICE_EMPTY, &all));
    for (size_t i = 0; i < all.n; i++) {
        ranges += range_count(all.list[i].container);
    }
    admin_process process = admin_process_read();
    buf *out = &q->body;
    buf_add_lit(out, "{\"version\":\"" TESELA_VERSION "\"");
    admin_add(out, "now", (uint64_t)now_ms(q));
    admin_add(out, "started", (uint64_t)a->started_ms);
    admin_add_decimal(out, "uptimeSeconds", (double)(now_ms(q) - a->started_ms) / 1000, 1);
    admin_add(out, "databases", all.databases);
    admin_add(out, "containers", all.n);
    admin_add(out, "ranges", ranges);
    admin_add(out, "connections", net_server_connections(a->server));
    admin_add(out, "memoryBytes", process.resident_bytes);
    admin_add(out, "openFiles", process.open_files);
    admin_add_decimal(out, "cpuSeconds", process.cpu_s, 2);
    admin_add(out, "faults", faults_list(a->faults, faults));
    admin_add(out, "faultsInjected", faults_hits(a->faults));
    buf_addf(out, ",\"readOnly\":%s", q->read_only ? "true" : "false");
    add_limits(out, account_get_rules(a->account));
    add_ports(out, a->server);
    buf_add_lit(out, ",\"paths\":");
    admin_add_paths(out);
    buf_add_lit(out, "}\n");
    report_free(&all);
    return OK;
}

/* ---- ranges ---- */

static const char *mode_of(const report_container *c) {
    switch (c->throughput.kind) {
    case THROUGHPUT_MANUAL:
        return "manual";
    case THROUGHPUT_AUTOSCALE:
        return "autoscale";
    default:
        return "serverless";
    }
}

static void add_names(buf *out, const container *c) {
    buf_add_lit(out, "{\"database\":");
    json_add_string(out, c->database_id);
    admin_add_text(out, "container", c->id);
}

static void add_numbers(buf *out, const report_range *r) {
    admin_add(out, "items", r->items);
    admin_add(out, "bytes", r->bytes);
    admin_add(out, "indexBytes", r->index_bytes);
    admin_add(out, "logicalPartitions", r->partitions);
    if (r->share > 0) {
        admin_add_decimal(out, "shareRuPerSecond", r->share, 2);
    } else {
        buf_add_lit(out, ",\"shareRuPerSecond\":null");
    }
    admin_add_decimal(out, "ruPerSecond", (double)r->last.ru, 2);
    admin_add_decimal(out, "normalizedPercent", r->last.normalized / 10.0, 1);
    admin_add(out, "requestsPerSecond", r->last.requests);
    admin_add(out, "throttledPerSecond", r->last.throttled);
    admin_add(out, "latencyAverageUs", r->last.latency_average_us);
    admin_add(out, "latencyMaxUs", r->last.latency_max_us);
}

/* Progress of an index build: 100 and 0 seconds if there is none. */
static void add_index(buf *out, const container_space *space) {
    uint32_t seconds = container_space_seconds(space);
    admin_add(out, "indexPercent", container_space_progress(space));
    if (seconds == (uint32_t)CONTAINER_UNKNOWN) {
        buf_add_lit(out, ",\"indexSeconds\":null");
    } else {
        admin_add(out, "indexSeconds", seconds);
    }
}

void admin_add_container(buf *out, const report_container *c, bool whole) {
    report_range sum = report_sum(c->container);
    add_names(out, c->container);
    admin_add_text(out, "api", c->container->api);
    if (c->container->retired) {
        buf_add_lit(out, ",\"retired\":true");
    }
    admin_add(out, "memoBytes", c->container->memo.n);
    if (whole && c->container->memo.n) {
        buf_add_lit(out, ",\"memo\":");
        json_from_bson(out, c->container->memo);
    }
    buf_add_lit(out, ",\"partitionKey\":[");
    for (size_t i = 0; i < c->container->key.n; i++) {
        buf_add(out, ",", i > 0);
        json_add_string(out, c->container->key.paths[i].text);
    }
    buf_addf(out, "],\"throughput\":{\"mode\":\"%s\",\"shared\":%s", mode_of(c), c->shared ? "true" : "false");
    admin_add(out, "ruPerSecond", c->throughput.value);
    buf_add_byte(out, '}');
    admin_add(out, "ranges", range_count(c->container));
    add_numbers(out, &sum);
    add_index(out, c->container->space);
    buf_add_byte(out, '}');
}

/* The hottest key of the last minute; null if the range has had no requests. */
static void add_hottest(const admin *a, buf *out, const container *c, size_t position) {
    hotkey top[HOTKEYS_TOP];
    buf_add_lit(out, ",\"hottest\":");
    if (range_hottest_keys(c, position, clock_monotonic_us(account_items(a->account)->clock), top) == 0) {
        buf_add_lit(out, "null");
        return;
    }
    buf_add_lit(out, "{\"key\":");
    json_add_string(out, slice_of(top[0].text, top[0].text_n));
    admin_add_decimal(out, "ruPerSecond", top[0].value, 2);
    buf_add_byte(out, '}');
}

void admin_add_range(const admin *a, buf *out, const container *c, size_t i) {
    range_info info;
    report_range r = report_range_at(c, i);
    const partition_range *range = &info.range;
    range_info_at(c, i, &info);
    add_names(out, c);
    admin_add_id(out, "id", range->id);
    buf_add_lit(out, ",\"min\":\"");
    epk_write(out, &range->min);
    buf_add_lit(out, "\",\"max\":\"");
    epk_write(out, &range->max);
    buf_add_lit(out, "\",\"parents\":[");
    for (uint32_t p = 0; p < range->parents_n; p++) {
        buf_addf(out, "%s\"%u\"", p ? "," : "", range->parents[p]);
    }
    buf_add_byte(out, ']');
    add_numbers(out, &r);
    admin_add(out, "lsn", r.lsn);
    admin_add(out, "segments", r.segments);
    buf_addf(out, ",\"moving\":%s", r.moving ? "true" : "false");
    add_hottest(a, out, c, i);
    buf_add_byte(out, '}');
}

/* A page of ranges, counted over all containers of a report. */
typedef struct page {
    uint64_t skip, limit;
    uint64_t seen, written; /* ranges */
    uint64_t containers;
    bool whole; /* one container was requested: write all its details */
    buf ranges; /* the list of ranges, written alongside the list of containers in q->body */
} page;

static bool page_is_full(const admin_request *q, const page *p) {
    return p->written == p->limit || q->body.n + p->ranges.n > ANSWER_BYTES_MAX;
}

static void add_page(admin_request *q, const report_container *c, page *p) {
    size_t n = range_count(c->container);
    bool listed = false;
    for (size_t i = 0; i < n; i++, p->seen++) {
        if (p->seen < p->skip || page_is_full(q, p)) {
            continue;
        }
        if (!listed) {
            buf_add(&q->body, ",", p->containers++ > 0);
            admin_add_container(&q->body, c, p->whole);
            listed = true;
        }
        buf_add(&p->ranges, ",", p->written++ > 0);
        admin_add_range(q->admin, &p->ranges, c->container, i);
    }
}

err admin_ranges(admin_request *q) {
    slice database, container;
    report found;
    page p = {.limit = RANGES_DEFAULT, .ranges = buf_init(BUF_NO_LIMIT)};
    TRY(admin_param(q, "database", &database));
    TRY(admin_param(q, "container", &container));
    TRY(admin_param_number(q, "skip", 0, UINT32_MAX, &p.skip));
    TRY(admin_param_number(q, "limit", 1, RANGES_DEFAULT, &p.limit));
    if (account_report(q->admin->account, database, container, &found) != OK) {
        return op_fail(&q->op, E_NOT_FOUND, "There is no such database or container.");
    }
    p.whole = database.n && container.n;
    buf_addf(&q->body, "{\"now\":%ld,\"containers\":[", (long)now_ms(q));
    for (size_t i = 0; i < found.n; i++) {
        add_page(q, &found.list[i], &p);
    }
    buf_add_lit(&q->body, "],\"ranges\":[");
    buf_add_slice(&q->body, buf_view(&p.ranges));
    buf_add_byte(&q->body, ']');
    admin_add(&q->body, "total", p.seen);
    if (p.skip + p.written < p.seen) {
        admin_add(&q->body, "next", p.skip + p.written);
    } else {
        buf_add_lit(&q->body, ",\"next\":null");
    }
    buf_add_lit(&q->body, "}\n");
    buf_free(&p.ranges);
    report_free(&found);
    return OK;
}

/* ---- history ---- */

typedef struct history {
    container *container;
    size_t position; /* a range's position, or REPORT_ALL_RANGES */
    uint32_t range;  /* its id */
    bool by_minute;
    int64_t from_s;
    size_t n;
    meter_sample *samples;
} history;

static void add_column(buf *out, const history *h, const char *name, void (*add)(buf *, const meter_sample *)) {
    buf_addf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < h->n; i++) {
        buf_add(out, ",", i > 0);
        add(out, &h->samples[i]);
    }
    buf_add_byte(out, ']');
}

static void add_ru(buf *out, const meter_sample *s) {
    s->ru > 0 ? buf_addf(out, "%.2f", (double)s->ru) : buf_add_byte(out, '0');
}

static void add_requests(buf *out, const meter_sample *s) {
    buf_add_u64(out, s->requests);
}

static void add_throttled(buf *out, const meter_sample *s) {
    buf_add_u64(out, s->throttled);
}

static void add_normalized(buf *out, const meter_sample *s) {
    s->normalized ? buf_addf(out, "%.1f", s->normalized / 10.0) : buf_add_byte(out, '0');
}

static void add_latency(buf *out, const meter_sample *s) {
    buf_add_u64(out, s->latency_average_us);
}

static void add_latency_max(buf *out, const meter_sample *s) {
    buf_add_u64(out, s->latency_max_us);
}

/* RU for each kind of work. Kinds that cost nothing are left out, since a day has many samples. */
static void add_works(buf *out, const history *h) {
    bool first = true;
    buf_add_lit(out, ",\"ruByOperation\":{");
    for (unsigned work = 0; work < METER_WORKS; work++) {
        bool any = false;
        for (size_t i = 0; i < h->n && !any; i++) {
            any = h->samples[i].parts[work] > 0;
        }
        if (!any) {
            continue;
        }
        buf_addf(out, "%s\"%s\":[", first ? "" : ",", meter_work_name(work));
        first = false;
        for (size_t i = 0; i < h->n; i++) {
            const meter_sample *s = &h->samples[i];
            buf_add(out, ",", i > 0);
            s->parts[work] ? buf_addf(out, "%.2f", (double)s->ru * s->parts[work] / UINT8_MAX) : buf_add_byte(out, '0');
        }
        buf_add_byte(out, ']');
    }
    buf_add_byte(out, '}');
}

static void add_provisioned(admin_request *q, const history *h) {
    double *ru = arena_array(q->op.arena, double, h->n);
    report_provisioned(h->container, h->by_minute, h->from_s, ru, h->n);
    buf_add_lit(&q->body, ",\"provisioned\":[");
    for (size_t i = 0; i < h->n; i++) {
        buf_add(&q->body, ",", i > 0);
        ru[i] < 0 ? buf_add_lit(&q->body, "null") : buf_addf(&q->body, "%.0f", ru[i]);
    }
    buf_add_byte(&q->body, ']');
}

static void add_provisioned_changes(admin_request *q, const history *h) {
    provisioned_step *steps = arena_array(q->op.arena, provisioned_step, PROVISIONED_CHANGES_MAX);
    size_t n = report_provisioned_steps(h->container, h->from_s, steps);
    buf_add_lit(&q->body, ",\"provisionedChanges\":[");
    for (size_t i = 0; i < n; i++) {
        buf_addf(&q->body, "%s{\"second\":%ld,\"before\":%.0f,\"after\":%.0f}", i > 0 ? "," : "", (long)steps[i].second, steps[i].before,
                 steps[i].after);
    }
    buf_add_byte(&q->body, ']');
}

static void write_history(admin_request *q, const history *h) {
    buf *out = &q->body;
    add_names(out, h->container);
    if (h->position != REPORT_ALL_RANGES) {
        admin_add_id(out, "range", h->range);
    } else {
        buf_add_lit(out, ",\"range\":null");
    }
    admin_add(out, "stepSeconds", h->by_minute ? 60 : 1);
    admin_add(out, "from", (uint64_t)h->from_s);
    admin_add(out, "count", h->n);
    add_column(out, h, "ru", add_ru);
    add_column(out, h, "requests", add_requests);
    add_column(out, h, "throttled", add_throttled);
    add_column(out, h, "normalizedPercent", add_normalized);
    add_column(out, h, "latencyAverageUs", add_latency);
    add_column(out, h, "latencyMaxUs", add_latency_max);
    add_works(out, h);
    if (h->position == REPORT_ALL_RANGES) {
        add_provisioned(q, h);
        add_provisioned_changes(q, h);
    }
    buf_add_lit(out, "}\n");
}

/* The last `n` completed seconds or minutes: the current one may be incomplete. */
static err read_history(admin_request *q, history *h) {
    slice range;
    uint64_t seconds = 0, minutes = 0, id = 0;
    TRY(admin_param_number(q, "seconds", 1, SECONDS_MAX, &seconds));
    TRY(admin_param_number(q, "minutes", 1, MINUTES_MAX, &minutes));
    TRY(admin_param(q, "range", &range));
    if (seconds && minutes) {
        return op_fail(&q->op, E_BAD_REQUEST, "Ask for 'seconds' or for 'minutes', not both.");
    }
    if (range.n) {
        TRY(admin_param_number(q, "range", 0, UINT32_MAX, &id));
        TRY(admin_range(q, h->container, (int64_t)id, &h->position));
        h->range = (uint32_t)id;
    }
    int64_t step = minutes ? 60 : 1;
    h->by_minute = minutes > 0;
    h->n = minutes ? minutes : seconds ? seconds : 60;
    h->from_s = (now_ms(q) / 1000 / step - (int64_t)h->n) * step;
    h->samples = arena_array(q->op.arena, meter_sample, h->n);
    return OK;
}

err admin_history(admin_request *q) {
    slice database, container;
    history h = {.position = REPORT_ALL_RANGES};
    TRY(admin_param(q, "database", &database));
    TRY(admin_param(q, "container", &container));
    TRY(admin_container(q, database, container, &h.container));
    err code = read_history(q, &h);
    if (code == OK) {
        report_history(h.container, h.position, h.by_minute, h.from_s, h.samples, h.n);
        write_history(q, &h);
    }
    container_give(h.container);
    return code;
}
