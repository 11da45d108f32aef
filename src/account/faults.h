/* faults.h — answers that go wrong on purpose, for testing what clients do about them.
 *
 * A fault says which item requests it is for and what becomes of them: an error as the service gives it, a delay, or an error after a
 * delay. Front ends ask for each item request, once it is authenticated and before it is admitted; while there are no faults that costs
 * one load of memory. Faults are gone with the process, or once they have hit as often as they were to. Any thread. */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "base/slice.h"

typedef enum fault_operation { FAULT_ANY, FAULT_READ, FAULT_WRITE } fault_operation;

enum { FAULTS_MAX = 100, FAULT_WAIT_MS_MAX = 10 * 60 * 1000 };

typedef struct fault {
    /* which requests; what is empty or negative matches all */
    char database[LIMIT_NAME_BYTES + 1], container[LIMIT_NAME_BYTES + 1];
    int64_t range;
    fault_operation operation;
    double percent; /* of those; more than 0, 100: all */
    uint64_t seed;  /* which ones these are */
    uint64_t count; /* and no more than so many; 0: no end */

    /* what becomes of them */
    err code;                /* OK: nothing but the delay */
    uint16_t substatus;      /* in place of the error's own; 0: that */
    uint32_t retry_after_ms; /* told with the error */
    uint32_t delay_ms;

    /* faults' own */
    uint32_t id;
    uint64_t hits;
    uint64_t random[2];
} fault;

typedef struct faults faults;

faults *faults_new(void);
void faults_free(faults *f);

/* E_BAD_REQUEST: as many as there may be are there already. */
MUST_CHECK err faults_add(faults *f, const fault *made, uint32_t *id_out);
bool faults_remove(faults *f, uint32_t id);                   /* false: there is none such (any more) */
size_t faults_clear(faults *f);                               /* returns how many there were */
size_t faults_list(faults *f, fault list[static FAULTS_MAX]); /* in the order they were added */
uint64_t faults_hits(const faults *f);                        /* of all faults there ever were */
bool fault_status_read(unsigned status, err *code_out);       /* the error with this HTTP status that a fault may give */

/* ---- asking ---- */

typedef struct fault_request {
    slice database, container;
    int64_t range; /* -1: not known, or more than one: faults of one range are not for it */
    bool writes;
} fault_request;

/* Is there any fault at all? Only then make a fault_request. */
bool faults_any(const faults *f);

/* The first fault, in the order they were added, that hits this request: counted, and copied to *hit_out. */
bool faults_hit(faults *f, const fault_request *request, fault *hit_out);
