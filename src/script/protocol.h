/* protocol.h — what the server and a script worker say to each other, over one socket.
 *
 * A frame is a length (u32, little-endian, of the kind and the text: one at least), a kind (one byte) and JSON text. The server speaks
 * first when it gives work; while a script runs the worker calls and the server answers, one call at a time. The server trusts nothing that
 * a worker says, since a script may have taken it over: it can do what its calls can do, and no more. */

/* clang-format off */
/*
 *   worker  READY    {}                                                      sandboxed, the engine is warm
 *
 *   server  RUN      {"kind":"sproc"|"pre"|"post", "id":…, "body":"function …", "args":[…], "logging":true|false,
 *                     "collection":{"self":"dbs/…/colls/…/","alt":"dbs/d/colls/c"},
 *                     "request":{"body":…,"operation":"Create"|"Upsert"|"Replace"|"Delete"}, "response":{"body":…}}
 *   worker  CALL     {"op":"create"|"upsert"|"replace"|"delete"|"read"|"list"|"query", "link":…, "body":…, "query":…, "options":{…}}
 *   server  ANSWER   {"status":200,"body":…,"continuation":"…"}              the callback's arguments are made of it
 *                    {"status":404,"message":"…"}                            the callback's error: {number, body}
 *                    {"accepted":false}                                      the budget is spent: the call returns false, no callback
 *   worker  DONE     {"body":…, "log":"…"}         the body that the script has set: of the response, of a pre-trigger the request's; absent: none
 *   worker  FAULT    {"compile":true|false, "message":"…", "number":…, "log":"…"}      what it threw: nothing is written
 *
 * A call's link is the container's, or the item's for read, replace and delete; its body is the item; its query is {"query":"…","parameters":
 * […]}; its options, each absent when not given: etag, ifNoneMatch, indexAction; pageSize (100 unless given, -1: all there is room for),
 * continuation, enableScan. The body of an answer to list and query is an array of items; that of read with status 304 is absent. An answer may have
 * "options":{…}, which the callback sees beside statusCode and continuation; a request and a response may have "headers":{…}, which getValue reads,
 * a post-trigger's response "usage" and "quota". The message of an error is the body that the script sees, so it is in the service's form.
 *
 * A fault's message is the service's whole sentence ("Encountered exception while executing function. Exception = …"); its number is that of
 * `new Error(number, message)` or of the call that failed, 408 for a script that took too long, 413 for a result that is too
 * large; one that took too much memory has none. DONE and FAULT may have "last":true: the worker ends now, and another has to take its place.
 * One that ends without a word has been killed by what it ran.
 *
 *   server  DEFINE   {"functions":[{"id":…,"body":"function …"},…]}          user-defined functions of one query, in a fresh global
 *   worker  READY or FAULT
 *   server  ROWS     [[function, argument, …], …]      calls: function is its place among those defined
 *   worker  RESULTS  [value, …]                        as many as it has done, one at least: after some 50 ms it stops, and is asked again for
 *                                                      the others; {"threw":"…"} stands for the value of one that threw. Or FAULT
 *
 * Arguments and values of calls: null, booleans, numbers and strings stand for themselves; [value] is that value, whatever it is, and must be
 * used for arrays and objects; [] is undefined. So a receiver takes Array.isArray(x) ? x[0] : x.
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

enum { SCRIPT_FRAME_BYTES_MAX = 32 * 1024 * 1024, SCRIPT_HEADER_BYTES = 5, SCRIPT_FD = 3 /* of the socket, in the worker */ };

/* The whole environment of a worker: the engine reads these when it starts. A worker that was given another starts itself again. */
#define SCRIPT_ENVIRONMENT                                                                                                                 \
    "GIGACAGE_ENABLED=0", /* or the engine reserves more address space than any bound on it could allow */                                 \
        "MALLOC_ARENA_MAX=1", "TZ=UTC", "LC_ALL=en_US.UTF-8", "PATH=/nonexistent"
