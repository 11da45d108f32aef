/* socket.h — reads and writes frames (script/protocol.h) on the worker's only socket. Blocking.
 *
 * When the server is gone, the process ends at once, whatever it is doing. (PR_SET_PDEATHSIG would end it with the thread that started it,
 * and a server's threads come and go.) */
#pragma once

#include "base/buf.h"
#include "script/protocol.h"

/* Call it once: starts a thread that ends the process when the server closes its end of the socket, or dies. */
void frames_watch(void);

/* Reads the next frame and returns its kind. *text is valid until the next call, and followed by a zero byte. */
script_frame frames_read(slice *text);

/* Writes a frame by one system call: `frame` has room for the length, then the kind, then the text. */
enum { FRAMES_LENGTH_BYTES = SCRIPT_HEADER_BYTES - 1 };
void frames_write(buf *frame);

/* For signal handlers: sends a prepared frame that says why the running script ends, then ends the process. Sends nothing if no script is
 * running or a frame is being written. */
_Noreturn void frames_end_with(const void *frame, size_t n);
