/* report.h — containers and their ranges with size and load, for the admin API and metrics.
 *
 * A report holds the account's shared lock only while it counts references; everything else is read from those references afterwards,
 * without the lock. Any thread; a report of ten thousand containers should be made on a worker. */
#pragma once

#include "account/account.h"
#include "store/figures.h"

typedef struct report_container {
    container *container; /* a reference, with the tiles of that moment */
    throughput_setting throughput;
    bool shared; /* the throughput is its database's */
} report_container;

typedef struct report {
    report_container *list; /* by database, then in creation order */
    size_t n;
    size_t databases; /* number of all databases */
} report;

/* Reports all containers, those of a database, those of this name, or one. E_NOT_FOUND: no such database or container; there is nothing to
 * free. */
MUST_CHECK err account_report(account *a, slice database, slice container, report *report_out);
void report_free(report *r);

/* The figures of the account's store number `i` (store/figures.h). False: there is no such store, or it has no files. */
bool account_store_figures(const account *a, size_t i, store_figures *figures_out);

/* Contents of a range and its load in the last second; or a sum over several ranges: shares and counts are added, latencies averaged by
 * weight, maxima are the highest of all. */
typedef struct report_range {
    uint64_t items, bytes, index_bytes, partitions;
    uint64_t lsn;
    double share; /* RU/s; 0: no limit */
    meter_sample last;
    uint64_t requests, throttled, failed; /* since the server started or the range was made */
    double ru, latency_s;                 /* likewise */
    size_t segments;                      /* segments that hold items: after a split or a merge also those of the earlier ranges */
    bool moving;                          /* items are being moved out of the earlier segments (item/move.c) */
} report_range;

/* The range at `position` of the container (item/range_info.h), which must exist; and the sum over all ranges. */
report_range report_range_at(const container *c, size_t position);
report_range report_sum(const container *c);

/* Copies `n` samples, of a second or (`by_minute`) of a minute, from `from_s` on: the history of one range, or with REPORT_ALL_RANGES that
 * of the container, including ranges it had before splits and merges. */
#define REPORT_ALL_RANGES SIZE_MAX
void report_history(const container *c, size_t position, bool by_minute, int64_t from_s, meter_sample *samples, size_t n);

/* The RU/s that were provisioned then for the container, or for its database if that is shared; -1: unknown. */
void report_provisioned(const container *c, bool by_minute, int64_t from_s, double *ru, size_t n);
/* Its changes since then, at most PROVISIONED_CHANGES_MAX. */
size_t report_provisioned_steps(const container *c, int64_t from_s, provisioned_step *steps_out);
