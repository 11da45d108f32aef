/* engine.h — JavaScriptCore with the server-side API in it: one engine for the life of the worker, one fresh global for each script.
 *
 * Two limits hold a script. The soft one is the engine's own: CPU time of the thread that runs scripts, asked at loops and calls. What
 * escapes it (a regular expression, promises that make promises) meets the hard one, a timer on the same clock: it says the same FAULT
 * and ends the process. Waiting for the server's answers counts for neither. */
#pragma once

#include "base/slice.h"
#include "script/protocol.h"

/* Once: makes the engine and warms it up, threads included. `memory_bytes` is what the sandbox will let it take beyond that. */
void engine_open(uint64_t limit_ms, size_t memory_bytes);

/* Each answers with one frame (frames.h). When the process has used so much memory or CPU that a new one should take its place, a run's
 * last frame says so and the process ends. */
void engine_run(slice text);
void engine_define(slice text);
void engine_rows(slice text);

/* The files of api/, joined (made by meson). */
extern const char engine_api_source[];
