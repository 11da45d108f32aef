/* GET /metrics: for every counter and gauge its help and type, then a line for each range or container. */
#include "api/admin/metrics.h"

#include <stdlib.h>

#include "api/admin/admin_int.h"
#include "base/memory.h"
#include "doc/json.h"

enum { RANGES_MAX = 10000 };

/* ---- the format ---- */

void metrics_add_head(buf *out, const char *name, const char *type, const char *help) {
    buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* In a label's value, backslash, quote and line feed are escaped. */
static void add_escaped(buf *out, slice value) {
    for (size_t i = 0; i < value.n; i++) {
        char c = value.p[i];
        if (c == '\n') {
            buf_add_lit(out, "\\n");
        } else {
            buf_add(out, "\\", c == '\\' || c == '"');
            buf_add_byte(out, c);
        }
    }
}

static void add_labels(buf *out, slice database, slice container) {
    buf_add_lit(out, "database=\"");
    add_escaped(out, database);
    buf_add_lit(out, "\",container=\"");
    add_escaped(out, container);
    buf_add_byte(out, '"');
}

void metrics_add_value(buf *out, double value) {
    buf_add_byte(out, ' ');
    json_add_double(out, value);
    buf_add_byte(out, '\n');
}

static void add_single(buf *out, const char *name, const char *type, const char *help, double value) {
    metrics_add_head(out, name, type, help);
    buf_addf(out, "%s", name);
    metrics_add_value(out, value);
}

/* ---- ranges ---- */

#define RANGE_METRICS(X)                                                                                                                   \
    X(items, "gauge", "Items of the range.", (double)r->items)                                                                             \
    X(data_bytes, "gauge", "Bytes of the range's items as stored.", (double)r->bytes)                                                      \
    X(index_bytes, "gauge", "Bytes of the index entries that lead to them.", (double)r->index_bytes)                                       \
    X(logical_partitions, "gauge", "Logical partitions of the range.", (double)r->partitions)                                              \
    X(share_ru, "gauge", "Request units a second that the range may spend; 0 is no limit.", r->share)                                      \
    X(normalized_ru_ratio, "gauge", "Part of its share that the range spent in the last second, 0 to 1.", r->last.normalized / 1000.0)     \
    X(latency_max_seconds, "gauge", "The longest time a request of the last second took.", r->last.latency_max_us / 1e6)                   \
    X(lsn, "gauge", "Log sequence number of the range's newest write.", (double)r->lsn)                                                    \
    X(request_units_total, "counter", "Request units charged.", r->ru)                                                                     \
    X(requests_total, "counter", "Requests, throttled ones included.", (double)r->requests)                                                \
    X(throttled_requests_total, "counter", "Requests refused with 429 because the share was spent.", (double)r->throttled)                 \
    X(failed_requests_total, "counter", "Requests that ended with another error.", (double)r->failed)                                      \
    X(latency_seconds_total, "counter", "Time that all requests took together.", r->latency_s)

#define RANGE_VALUE(name, type, help, value)                                                                                               \
    static double range_##name(const report_range *r) {                                                                                    \
        return value;                                                                                                                      \
    }
RANGE_METRICS(RANGE_VALUE)

static const struct {
    const char *name, *type, *help;
    double (*value)(const report_range *r);
} range_metrics[] = {
#define RANGE_ROW(name, type, help, value) {"tesela_range_" #name, type, help, range_##name},
    RANGE_METRICS(RANGE_ROW)};

static void add_ranges(buf *out, const metrics *m) {
    for (size_t i = 0; i < sizeof range_metrics / sizeof *range_metrics; i++) {
        metrics_add_head(out, range_metrics[i].name, range_metrics[i].type, range_metrics[i].help);
        for (size_t j = 0; j < m->ranges_n; j++) {
            const metrics_range *range = &m->ranges[j];
            buf_addf(out, "%s{", range_metrics[i].name);
            add_labels(out, range->database, range->container);
            buf_addf(out, ",range=\"%u\"}", range->id);
            metrics_add_value(out, range_metrics[i].value(&range->numbers));
        }
    }
}

/* ---- containers ---- */

static void add_container_lines(buf *out, const metrics *m, const char *name, const char *help, bool throughput) {
    metrics_add_head(out, name, "gauge", help);
    for (size_t i = 0; i < m->containers_n; i++) {
        const metrics_container *c = &m->containers[i];
        buf_addf(out, "%s{", name);
        add_labels(out, c->database, c->container);
        buf_add_byte(out, '}');
        metrics_add_value(out, throughput ? c->throughput : (double)c->ranges);
    }
}

static void add_refused(buf *out, const metrics *m) {
    metrics_add_head(out, "tesela_unauthorized_requests_total", "counter",
                     "Requests refused with 401, by what was wrong with their authorization.");
    for (unsigned i = 0; i < ATTEMPT_COUNT; i++) {
        buf_addf(out, "tesela_unauthorized_requests_total{authorization=\"%s\"}", access_attempt_names[i]);
        metrics_add_value(out, (double)m->refused[i]);
    }
}

static void add_refused_connections(buf *out, const net_stats *n) {
    const char *name = "tesela_connections_refused_total";
    metrics_add_head(out, name, "counter", "Connections refused: there were as many as there may be, in all or of their address.");
    buf_addf(out, "%s{limit=\"all\"}", name);
    metrics_add_value(out, (double)n->refused_full);
    buf_addf(out, "%s{limit=\"address\"}", name);
    metrics_add_value(out, (double)n->refused_address);
}

static void add_net(buf *out, const net_stats *n) {
    add_single(out, "tesela_connections", "gauge", "Open connections of clients.", n->connections);
    add_single(out, "tesela_connections_authenticated", "gauge", "Those of them that have authenticated.", n->authenticated);
    add_refused_connections(out, n);
    add_single(out, "tesela_connections_displaced_total", "counter", "Unauthenticated connections closed to make room for newer ones.",
               (double)n->displaced);
    add_single(out, "tesela_slow_clients_total", "counter",
               "Connections ended because the client sent a body or read an answer too slowly.", (double)n->slow_clients);
    add_single(out, "tesela_answer_waiting_bytes", "gauge", "Memory of answers that clients have not taken yet.", (double)n->waiting_bytes);
    add_single(out, "tesela_request_memory_bytes", "gauge", "Memory of requests that are being served.", (double)n->request_bytes);
    add_single(out, "tesela_buffer_memory_bytes", "gauge", "Memory of requests being read and of answers, those that wait included.",
               (double)n->buffer_bytes);
    add_single(out, "tesela_request_memory_max_bytes", "gauge", "What both may be at most, half of it each.", (double)n->memory_max);
    add_single(out, "tesela_memory_refused_total", "counter", "Requests refused with 503 because that memory was used up.",
               (double)n->starved);
}

static void add_lane(buf *out, const char *name, unsigned lane, const char *state, uint64_t value) {
    buf_addf(out, "%s{lane=\"%s\"%s%s%s}", name, net_lane_names[lane], state ? ",state=\"" : "", state ? state : "", state ? "\"" : "");
    metrics_add_value(out, (double)value);
}

static void add_work(buf *out, const metrics *m) {
    metrics_add_head(out, "tesela_work", "gauge",
                     "Requests that workers serve: running, set aside while others have their turn, waiting to begin.");
    for (unsigned i = 0; i < NET_LANES; i++) {
        add_lane(out, "tesela_work", i, "running", m->work[i].running);
        add_lane(out, "tesela_work", i, "aside", m->work[i].aside);
        add_lane(out, "tesela_work", i, "waiting", m->work[i].waiting);
    }
    metrics_add_head(out, "tesela_work_refused_total", "counter", "Requests refused because too many waited for a worker.");
    for (unsigned i = 0; i < NET_LANES; i++) {
        add_lane(out, "tesela_work_refused_total", i, NULL, m->work[i].refused);
    }
    metrics_add_head(out, "tesela_work_cancelled_total", "counter", "Requests whose client left while a worker had them, or before.");
    for (unsigned i = 0; i < NET_LANES; i++) {
        add_lane(out, "tesela_work_cancelled_total", i, NULL, m->work[i].cancelled);
    }
}

void metrics_write(buf *out, const metrics *m) {
    metrics_add_head(out, "tesela_build_info", "gauge", "Always 1; the version is its label.");
    buf_add_lit(out, "tesela_build_info{version=\"" TESELA_VERSION "\"} 1\n");
    add_single(out, "tesela_uptime_seconds", "gauge", "Time since the server started.", m->uptime_s);
    add_net(out, &m->net);
    add_single(out, "tesela_databases", "gauge", "Databases.", (double)m->databases);
    add_single(out, "tesela_ranges_left_out", "gauge", "Ranges that are not listed here because there are too many.",
               (double)m->ranges_left_out);
    add_single(out, "tesela_range_changes_total", "counter", "Splits and merges since the data folder was made.", (double)m->reshapes);
    add_single(out, "tesela_faults_injected_total", "counter", "Requests that were made to fail or to wait on purpose.",
               (double)m->faults_injected);
    add_single(out, "tesela_key_changes_total", "counter", "How often the account's keys were changed since the start.",
               (double)m->key_changes);
    add_refused(out, m);
    add_work(out, m);
    add_single(out, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", (double)m->resident_bytes);
    add_single(out, "process_open_fds", "gauge", "Number of open file descriptors.", (double)m->open_files);
    add_single(out, "process_cpu_seconds_total", "counter", "Total user and system CPU time spent in seconds.", m->cpu_s);
    add_single(out, "process_start_time_seconds", "gauge", "Start time of the process since unix epoch in seconds.", m->started_s);
    add_container_lines(out, m, "tesela_container_ranges", "Physical partitions of the container.", false);
    add_container_lines(out, m, "tesela_container_throughput_ru",
                        "Request units a second provisioned for the container, or for the database that it shares them with.", true);
    add_ranges(out, m);
    metrics_add_stores(out, m);
}

/* ---- the answer ---- */

static void collect(const report *all, metrics_range *ranges, metrics_container *containers, metrics *m) {
    for (size_t i = 0; i < all->n; i++) {
        const container *c = all->list[i].container;
        containers[i] = (metrics_container){c->database_id, c->id, range_count(c), all->list[i].throughput.value};
        range_info info;
        for (size_t j = 0; range_info_at(c, j, &info); j++) {
            if (m->ranges_n == RANGES_MAX) {
                m->ranges_left_out++;
            } else {
                ranges[m->ranges_n++] = (metrics_range){c->database_id, c->id, info.range.id, report_range_at(c, j)};
            }
        }
    }
}

err admin_metrics(admin_request *q) {
    admin *a = q->admin;
    report all;
    account_event newest;
    TRY(account_report(a->account, SLICE_EMPTY, SLICE_EMPTY, &all));
    metrics_range *ranges = mem_alloc(RANGES_MAX * sizeof *ranges);
    metrics_container *containers = mem_alloc((all.n + 1) * sizeof *containers);
    admin_process process = admin_process_read();
    metrics m = {
        .ranges = ranges,
        .containers = containers,
        .containers_n = all.n,
        .databases = all.databases,
        .net = net_server_stats(a->server),
        .faults_injected = faults_hits(a->faults),
        .reshapes = account_events(a->account, &newest, 1) ? newest.number + 1 : 0,
        .key_changes = access_keys_changes(a->keys),
        .resident_bytes = process.resident_bytes,
        .open_files = process.open_files,
        .cpu_s = process.cpu_s,
        .started_s = (double)a->started_ms / 1000,
        .uptime_s = (double)(clock_wall_ms(account_items(a->account)->clock) - a->started_ms) / 1000,
    };
    for (unsigned i = 0; i < ATTEMPT_COUNT; i++) {
        m.refused[i] = access_attempts_total(a->attempts, (access_attempt)i);
    }
    for (unsigned i = 0; i < NET_LANES; i++) {
        m.work[i] = net_server_work(a->server, (net_lane)i);
    }
    collect(&all, ranges, containers, &m);
    store_figures stores[HOMES_MAX];
    while (m.stores_n < HOMES_MAX && account_store_figures(a->account, m.stores_n, &stores[m.stores_n])) {
        m.stores_n++;
    }
    m.stores = stores;
    metrics_write(&q->body, &m);
    free(ranges);
    free(containers);
    report_free(&all);
    return OK;
}
