/* report.h — what there is and how it fares, for those who show it: containers, their ranges, what each range holds and does.
 *
 * A report is taken under the account's shared lock, which it holds for as long as it takes to count references; all else is read from
 * those afterwards, without it. Any thread; a report of ten thousand containers is better made on a worker. */
#pragma once

#include "account/account.h"

typedef struct report_container {
    container *container; /* a reference; its tiles are those of the moment */
    throughput_setting throughput;
    bool shared; /* the throughput is its database's */
} report_container;

typedef struct report {
    report_container *list; /* by database, then in creation order */
    size_t n;
    size_t databases; /* all there are */
} report;

/* All containers, those of a database, those of this name, or one. E_NOT_FOUND: what is named is not there, and there is nothing to free.
 */
MUST_CHECK err account_report(account *a, slice database, slice container, report *report_out);
void report_free(report *r);

/* What a range holds, and did in the last second; or several together: then the share and the sums are added up, the latencies weighed,
 * and what is highest is the highest of all. */
typedef struct report_range {
    uint64_t items, bytes, index_bytes, partitions;
    uint64_t lsn;
    double share; /* RU/s; 0: no limit */
    meter_sample last;
    uint64_t requests, throttled, failed; /* since the server started, or the range was made */
    double ru, latency_s;                 /* likewise */
    size_t segments;                      /* that items are in: after a split or a merge also those of before … */
    bool moving;                          /* … some of which are being left (item/move.c) */
} report_range;

/* The range at `position` of the container (item/range_info.h), which must be there; and all of them together. */
report_range report_range_at(const container *c, size_t position);
report_range report_sum(const container *c);

/* The history of one range, or, with REPORT_ALL_RANGES, of the container, with that of ranges it had before splits and merges: `n` samples
 * of a second or, `by_minute`, of a minute, from `from_s` on. */
#define REPORT_ALL_RANGES SIZE_MAX
void report_history(const container *c, size_t position, bool by_minute, int64_t from_s, meter_sample *samples, size_t n);
