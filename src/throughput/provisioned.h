/* provisioned.h — the history of a container's provisioned throughput: its changes over the last day.
 *
 * The balancer's thread notes the current value once a second, which allocates only when the value differs from the last one. Any thread
 * may read. The history is in memory: it begins when the server starts, or when the container is made. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { PROVISIONED_CHANGES_MAX = 512 }; /* if a day has more, the earliest are forgotten */

typedef struct provisioned_change {
    int64_t second; /* wall clock: from this second on */
    double ru;      /* RU/s */
} provisioned_change;

typedef struct provisioned {
    pthread_mutex_t lock;
    provisioned_change *list; /* by time */
    size_t n, cap;
} provisioned;

void provisioned_init(provisioned *p);
void provisioned_free(provisioned *p);
void provisioned_note(provisioned *p, int64_t second, double ru);

/* The highest value in each of `n` steps of `step` seconds from the second `from` on; -1: unknown. */
void provisioned_read(provisioned *p, int64_t from, int64_t step, double *ru_out, size_t n);
