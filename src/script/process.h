/* process.h — one script worker: a process of its own that the server talks to in frames (protocol.h) over a socket.
 *
 * A worker is not trusted. Whatever is asked of it has a deadline; frames are read up to a bound, and memory is taken as bytes come, not as
 * lengths promise. One that is late, dies or speaks nonsense is good for nothing more: end it, which kills and reaps. It inherits the
 * socket and nothing else: no other descriptor, an environment of a few words. One thread at a time. */
#pragma once

#include <sys/types.h>

#include "script/protocol.h"

typedef struct script_process {
    pid_t pid;
    int socket;
} script_process;

/* Starts the program; it is not ready yet: its first frame says so. False: it cannot be started, errno says why. */
bool script_process_start(const char *program, script_process *process_out);

/* Kills it if it still runs, and reaps it. Returns what waitpid tells. */
int script_process_end(script_process *p);

typedef enum script_sign {
    SCRIPT_FINE,
    SCRIPT_LATE,     /* the deadline has passed */
    SCRIPT_DEAD,     /* it has closed its end */
    SCRIPT_NONSENSE, /* no frame, or one of more than SCRIPT_FRAME_BYTES_MAX or than its buffer takes */
} script_sign;

/* Deadlines are monotonic microseconds of the system's clock. */
MUST_CHECK script_sign script_process_send(script_process *p, script_frame kind, slice text, int64_t until_us);

/* The text is put into `into`, which is cleared first; valid UTF-8 or not, JSON or not. */
MUST_CHECK script_sign script_process_receive(script_process *p, script_frame *kind_out, buf *into, int64_t until_us);

/* Processor time that it has used so far; 0 once it is gone. */
int64_t script_process_cpu_us(const script_process *p);

int64_t script_now_us(void); /* the clock of the deadlines */
