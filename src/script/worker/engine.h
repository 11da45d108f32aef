/* engine.h — JavaScriptCore with the server-side API: one engine for the life of the worker, a fresh global for each script.
 *
 * A script has two time limits. The soft one is the engine's own: CPU time of the thread that runs scripts, checked at loops and calls.
 * Code that escapes it (regular expressions, promises that create promises) meets the hard one, a timer on the same clock, which sends the
 * same FAULT and ends the process. Waiting for the server's answers counts for neither. */
#pragma once

#include "base/slice.h"
#include "script/protocol.h"

/* Call it once: creates the engine and warms it up, threads included. `memory_bytes` is the memory that the sandbox allows beyond that. */
void engine_open(uint64_t limit_ms, size_t memory_bytes);

/* Each of these sends one frame as its answer (socket.h). When the process has used so much memory or CPU time that it should be replaced,
 * a run's last frame says so and the process ends. */
void engine_run(slice text);
void engine_define(slice text);
void engine_rows(slice text);

/* The files of api/, concatenated by the build. */
extern const char engine_api_source[];
