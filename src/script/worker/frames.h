/* frames.h — frames in and out of the one socket that a worker has (script/protocol.h says what they hold). Blocking.
 *
 * When the server is gone the process ends at once, whatever it is doing: there is nobody to work for. (PR_SET_PDEATHSIG would end it with
 * the thread that started it, and a server's threads come and go.) */
#pragma once

#include "base/buf.h"
#include "script/protocol.h"

/* Once: a thread that ends the process when the server closes its end, or dies. */
void frames_watch(void);

/* The next frame's kind; its text, valid until the next call and followed by a zero byte, in *text. */
script_frame frames_read(slice *text);

/* A frame made in place, so that it takes one system call: `frame` has room for the length, then the kind, then the text. */
enum { FRAMES_LENGTH_BYTES = SCRIPT_HEADER_BYTES - 1 };
void frames_write(buf *frame);

/* For signal handlers: what ends the script that is running is said in a frame made beforehand, then the process ends. Says nothing when
 * no script runs, or when a frame was being written. */
_Noreturn void frames_end_with(const void *frame, size_t n);
