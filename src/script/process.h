/* process.h — one script worker: a child process that the server talks to in frames (protocol.h) over a socket.
 *
 * A worker is not trusted. Every exchange has a deadline, frames have a maximum size, and memory is allocated as bytes arrive, not by the
 * announced length. After a missed deadline, its death or a malformed frame a worker is unusable: call script_process_end, which kills and
 * reaps it. A worker inherits only the socket and a few environment variables. One thread at a time. */
#pragma once

#include <sys/types.h>

#include "script/protocol.h"

typedef struct script_process {
    pid_t pid;
    int socket;
} script_process;

/* Starts the program. It is ready once it has sent its first frame. False: it cannot be started; errno says why. */
bool script_process_start(const char *program, script_process *process_out);

/* Kills the process if it still runs, and reaps it. Returns the status from waitpid. */
int script_process_end(script_process *p);

typedef enum script_sign {
    SCRIPT_FINE,
    SCRIPT_LATE,      /* the deadline has passed */
    SCRIPT_DEAD,      /* the worker closed its end of the socket */
    SCRIPT_MALFORMED, /* malformed frame, or one larger than SCRIPT_FRAME_BYTES_MAX or than the buffer's limit */
} script_sign;

/* Deadlines are microseconds of the monotonic clock (script_now_us). */
MUST_CHECK script_sign script_process_send(script_process *p, script_frame kind, slice text, int64_t until_us);

/* Clears `into` and stores the frame's text in it. The text is not checked: it may be invalid UTF-8 or JSON. */
MUST_CHECK script_sign script_process_receive(script_process *p, script_frame *kind_out, buf *into, int64_t until_us);

/* Processor time used so far; 0 if the process has ended. */
int64_t script_process_cpu_us(const script_process *p);

int64_t script_now_us(void); /* the clock of the deadlines */
