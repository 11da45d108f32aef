/* run.h — runs one script in a worker: sends it, serves its calls and takes its result. On a script thread.
 *
 * The deadline is hard: if the script has not ended by then, the worker is not `fit`, and the caller gives it back to be killed. */
#pragma once

#include "base/op.h"
#include "script/process.h"

enum {
    SCRIPT_RUN_US = 5000000,  /* time limit of a request with scripts, from its first attempt to its commit */
    SCRIPT_SOFT_US = 4000000, /* after this time, further calls are not accepted */
    SCRIPT_GRACE_US = 250000, /* extra time in which a worker may report that it stopped the script */
};

typedef struct script_run {
    /* input; empty slices are absent */
    const char *kind; /* "sproc", "pre", "post" */
    slice id, source;
    slice arguments; /* a JSON array */
    bool logging;
    slice self, alt;       /* links of the collection */
    slice request_body;    /* JSON; triggers only */
    const char *operation; /* triggers only: "Create", … */
    slice response_body;   /* JSON; post-triggers only */
    int64_t until_us;

    /* Serves a call, an untrusted BSON document, and fills `answer` with JSON. An error ends the run. */
    err (*call)(void *context, slice call, buf *answer);
    void *context;

    /* output; slices live in the arena */
    arena *arena;
    slice body; /* JSON; empty: undefined */
    slice log;
    int64_t cpu_us; /* processor time used */
    int64_t number; /* number of the exception; 0 if none */
    bool fit;       /* the worker may be used again */
    bool spoke;     /* the worker has sent a frame */
    bool retired;   /* the worker ended before the script began, and not because of it: retry with another */
} script_run;

/* E_SCRIPT_FAILED, E_SCRIPT_COMPILE: with the exception's message; E_SCRIPT_TIMEOUT; E_TOO_LARGE: its result is too large; E_UNAVAILABLE:
 * the worker was killed from outside; or the error of `call`. */
MUST_CHECK err script_run_in(script_process *p, op *o, script_run *run);
