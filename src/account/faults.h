/* faults.h — fault injection, for testing how clients handle errors and delays.
 *
 * A fault says which item requests it applies to and what happens to them: an error as the service returns it, a delay, or an error after a
 * delay. Every item request is checked after authentication and before admission; while there are no faults, the check costs one memory
 * load. A fault ends with the process, or when it has hit `count` times. Any thread. */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "base/slice.h"

typedef enum fault_operation { FAULT_ANY, FAULT_READ, FAULT_WRITE } fault_operation;

enum { FAULTS_MAX = 100, FAULT_WAIT_MS_MAX = 10 * 60 * 1000 };

typedef struct fault {
    /* which requests; an empty or negative member matches all */
    char database[LIMIT_NAME_BYTES + 1], container[LIMIT_NAME_BYTES + 1];
    int64_t range;
    fault_operation operation;
    double percent; /* percentage of matching requests that are hit; above 0, 100: all */
    uint64_t seed;  /* seed of the generator that selects that percentage */
    uint64_t count; /* maximum number of hits; 0: no limit */

    /* what happens to the request */
    err code;                /* OK: only the delay */
    uint16_t substatus;      /* 0: the error's default */
    uint32_t retry_after_ms; /* sent with the error */
    uint32_t delay_ms;

    /* private to faults.c */
    uint32_t id;
    uint64_t hits;
    uint64_t random[2];
} fault;

typedef struct faults faults;

faults *faults_new(void);
void faults_free(faults *f);

/* E_BAD_REQUEST: there are already FAULTS_MAX faults. */
MUST_CHECK err faults_add(faults *f, const fault *made, uint32_t *id_out);
bool faults_remove(faults *f, uint32_t id);                   /* false: no such fault (any more) */
size_t faults_clear(faults *f);                               /* returns the number removed */
size_t faults_list(faults *f, fault list[static FAULTS_MAX]); /* in the order they were added */
uint64_t faults_hits(const faults *f);                        /* total of all faults since the start */
bool fault_status_read(unsigned status, err *code_out);       /* the error that a fault with this HTTP status returns; false: none */

/* ---- matching ---- */

typedef struct fault_request {
    slice database, container;
    int64_t range; /* -1: unknown, or more than one; faults for one range do not match */
    bool writes;
} fault_request;

/* Whether any fault exists. Check this before building a fault_request. */
bool faults_any(const faults *f);

/* Finds the first fault, in the order they were added, that hits this request; counts the hit and copies the fault to *hit_out. */
bool faults_hit(faults *f, const fault_request *request, fault *hit_out);
