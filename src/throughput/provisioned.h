/* provisioned.h — the history of a container's provisioned throughput: its changes over the last day.
 *
 * A value is noted when it is set, so that none is missed, however short its time. The balancer notes the current one once a second too,
 * for a clock that was set back. Only a value that differs from the last one allocates. Any thread may read. The history is in memory: it
 * begins when the server starts, or when the container is made. */
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
void provisioned_note(provisioned *p, int64_t second, double ru); /* one thread at a time */

/* The highest value in each of `n` steps of `step` seconds from the second `from` on; -1: unknown. */
void provisioned_read(provisioned *p, int64_t from, int64_t step, double *ru_out, size_t n);

/* The changes since the second `from`, in their order, several in a second too: at most PROVISIONED_CHANGES_MAX. The first value that is
 * known is not a change. */
typedef struct provisioned_step {
    int64_t second;
    double before, after;
} provisioned_step;
size_t provisioned_steps(provisioned *p, int64_t from, provisioned_step *steps_out);
