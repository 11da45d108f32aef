/* run.h — one run of a script in a worker: what it is given, its calls served, how it ended. On a script thread.
 *
 * The deadline is hard: a worker that has not ended by then is killed by whoever gives it back as unfit, wherever its script is. */
#pragma once

#include "base/op.h"
#include "script/process.h"

enum {
    SCRIPT_RUN_US = 5000000,  /* what a script may take in all, from its first start to its commit */
    SCRIPT_SOFT_US = 4000000, /* from then on its calls are not accepted */
    SCRIPT_GRACE_US = 250000, /* past its time, a worker may still tell that it has stopped the script */
};

typedef struct script_run {
    /* what is asked; JSON texts where it says so, empty: not there */
    const char *kind; /* "sproc", "pre", "post" */
    slice id, source;
    slice arguments; /* a JSON array */
    bool logging;
    slice self, alt;       /* of the collection */
    slice request_body;    /* JSON: a trigger's */
    const char *operation; /* a trigger's: "Create", … */
    slice response_body;   /* JSON: a post-trigger's */
    int64_t until_us;

    /* Serves a call: a BSON document, hostile. Fills `answer` with JSON. Not OK: the run ends with that. */
    err (*call)(void *context, slice call, buf *answer);
    void *context;

    /* how it went; in the arena */
    arena *arena;
    slice body; /* JSON; empty: undefined */
    slice log;
    int64_t cpu_us; /* processor time that it took */
    int64_t number; /* of what was thrown; 0: none */
    bool fit;       /* the worker may be used again */
    bool spoke;     /* it has said something */
    bool retired;   /* it ended before it had done anything, and not for what the script did: ask another */
} script_run;

/* E_SCRIPT_FAILED, E_SCRIPT_COMPILE with what it threw; E_SCRIPT_TIMEOUT; E_TOO_LARGE: of its result; E_UNAVAILABLE: the worker was
 * killed by somebody else; what `call` returned. */
MUST_CHECK err script_run_in(script_process *p, op *o, script_run *run);
