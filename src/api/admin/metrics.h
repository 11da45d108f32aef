/* metrics.h — the Prometheus text format, version 0.0.4. Pure functions, testable without a server. */
#pragma once

#include "access/attempts.h"
#include "account/report.h"
#include "net/server.h"
#include "net/work.h"

typedef struct metrics_range {
    slice database, container;
    uint32_t id;
    report_range numbers;
} metrics_range;

typedef struct metrics_container {
    slice database, container;
    size_t ranges;
    double throughput; /* RU/s provisioned; its database's if shared; 0: none */
} metrics_container;

typedef struct metrics {
    const metrics_range *ranges;
    size_t ranges_n, ranges_left_out;
    const metrics_container *containers;
    size_t containers_n;
    size_t databases;
    uint64_t faults_injected, reshapes;
    net_stats net;
    uint64_t refused[ATTEMPT_COUNT]; /* failed authentications, by reason */
    uint64_t key_changes;
    sched_counts work[NET_LANES];
    uint64_t resident_bytes, open_files;
    double cpu_s, started_s, uptime_s;
    const store_figures *stores;
    size_t stores_n;
} metrics;

void metrics_write(buf *out, const metrics *m);

/* ---- for the files of this folder that write metrics ---- */

void metrics_add_head(buf *out, const char *name, const char *type, const char *help);
void metrics_add_value(buf *out, double value); /* a space, the number, the end of the line */
void metrics_add_stores(buf *out, const metrics *m);
