/* protocol.h — the protocol between the server and a script worker, over one socket.
 *
 * A frame is a length (u32, little-endian, of kind and text together, so at least one), a kind (one byte) and JSON text. The server starts
 * an exchange by sending work. While a script runs, the worker sends calls and the server answers them, one call at a time. The server does
 * not trust a worker, since a script may have taken it over: a compromised worker can do no more than its calls allow. */

/* clang-format off */
/*
 *   worker  READY    {}                                                      sandboxed, the engine is warm
 *
 *   server  RUN      {"kind":"sproc"|"pre"|"post", "id":…, "body":"function …", "args":[…], "logging":true|false,
 *                     "collection":{"self":"dbs/…/colls/…/","alt":"dbs/d/colls/c"},
 *                     "request":{"body":…,"operation":"Create"|"Upsert"|"Replace"|"Delete"}, "response":{"body":…}}
 *   worker  CALL     {"op":"create"|"upsert"|"replace"|"delete"|"read"|"list"|"query", "link":…, "body":…, "query":…, "options":{…}}
 *   server  ANSWER   {"status":200,"body":…,"continuation":"…"}              the source of the callback's arguments
 *                    {"status":404,"message":"…"}                            the callback's error: {number, body}
 *                    {"accepted":false}                                      time or charge is spent: the call returns false, no callback
 *   worker  DONE     {"body":…, "log":"…"}         the body that the script set: the request's in a pre-trigger, else the response's
 *   worker  FAULT    {"compile":true|false, "message":"…", "number":…, "log":"…"}      the exception; nothing is written
 *
 * In a CALL, "link" is the container's link, or the item's for read, replace and delete; "body" is the item; "query" is
 * {"query":"…","parameters":[…]}. All members of "options" are optional: etag, ifNoneMatch, indexAction; pageSize (default 100; -1: as many
 * as fit), continuation, enableScan. In an ANSWER to list and query, "body" is an array of items; for a read with status 304 it is absent.
 * An ANSWER may have "options":{…}, which the callback gets in addition to statusCode and continuation. A request and a response may have
 * "headers":{…}, which getValue reads; a post-trigger's response may have "usage" and "quota". The message of an error is the body that the
 * script sees, in the service's form.
 *
 * A FAULT's message is the service's full message ("Encountered exception while executing function. Exception = …"). Its number is that of
 * `new Error(number, message)` or of the failed call, 408 for a script that took too long, 413 for a result that is too large; it is absent
 * if the script took too much memory. DONE and FAULT may have "last":true: the worker ends now, and must be replaced. A worker that ends
 * without such a frame was killed by the script that it ran.
 *
 *   server  DEFINE   {"functions":[{"id":…,"body":"function …"},…]}          user-defined functions of one query, in a fresh global
 *   worker  READY or FAULT
 *   server  ROWS     [[function, argument, …], …]      calls; "function" is an index into the defined functions
 *   worker  RESULTS  [value, …]                        results of the first calls, at least one: the worker stops after some 50 ms, and
 *                                                      the server sends the rest again. {"threw":"…"}: the call threw. Or FAULT
 *
 * Encoding of arguments and results: null, booleans, numbers and strings as they are; [value] is any value, and required for arrays and
 * objects; [] is undefined. So the receiver decodes by Array.isArray(x) ? x[0] : x.
 */
/* clang-format on */
#pragma once

#include "base/buf.h"
#include "base/err.h"

typedef enum script_frame {
    SCRIPT_READY = 'r',
    SCRIPT_RUN = 'R',
    SCRIPT_CALL = 'c',
    SCRIPT_ANSWER = 'A',
    SCRIPT_DONE = 'd',
    SCRIPT_FAULT = 'f',
    SCRIPT_DEFINE = 'D',
    SCRIPT_ROWS = 'W',
    SCRIPT_RESULTS = 's',
} script_frame;

enum { SCRIPT_FRAME_BYTES_MAX = 32 * 1024 * 1024, SCRIPT_HEADER_BYTES = 5, SCRIPT_FD = 3 /* the socket's descriptor in the worker */ };

/* The whole environment of a worker; the engine reads these variables when it starts. A worker with another environment re-executes
 * itself. */
#define SCRIPT_ENVIRONMENT                                                                                                                 \
    "GIGACAGE_ENABLED=0", /* otherwise the engine reserves more address space than RLIMIT_AS can allow */                                  \
        "MALLOC_ARENA_MAX=1", "TZ=UTC", "LC_ALL=en_US.UTF-8", "PATH=/nonexistent"
