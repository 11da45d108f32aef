/* work.h — within api/mongo: parts of a command that may be long, such as parsing a large filter or evaluating expressions.
 *
 * A loop must not be held up by one client. So such a part is a function of its own, the *work*, which evaluates with q->steps. It is
 * tried on the loop with few steps; if these do not suffice (E_QUERY_TOO_LONG), or if the request is large, a worker does it from the
 * beginning. Work therefore can be repeated, and submits no calls. */
#pragma once

#include "api/mongo/mongo_int.h"

enum {
    MONGO_LARGE_BYTES = 64 * 1024,  /* parsing more than this is left to a worker */
    MONGO_LOOP_STEPS = 20000,       /* some 200 microseconds */
    MONGO_WORKER_STEPS = 100000000, /* some second */
};

/* `then` runs on the loop, with the result of the work. `long_work`: do not try it on the loop. */
void mongo_work(mongo_request *q, bool long_work, mongo_handler work, void (*then)(mongo_request *q, err code));
