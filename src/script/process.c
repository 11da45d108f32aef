#include "script/process.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { READ_AT_ONCE = 64 * 1024, NICENESS = 5 /* requests without scripts take precedence */ };

int64_t script_now_us(void) {
    return clock_monotonic_us(&clock_system);
}

/* ---- starting ---- */

/* The worker gets standard error only at debug level, since an engine that runs out of memory writes pages to it. */
static int describe_files(posix_spawn_file_actions_t *files, int theirs) {
    int failed = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    failed = failed ? failed : posix_spawn_file_actions_addopen(files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (log_get_level() < LOG_DEBUG) {
        failed = failed ? failed : posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    failed = failed ? failed : posix_spawn_file_actions_adddup2(files, theirs, SCRIPT_FD);
    return failed ? failed : posix_spawn_file_actions_addclosefrom_np(files, SCRIPT_FD + 1);
}

/* The worker has its own process group, so that Ctrl-C reaches only the server, which ends its workers itself. No signal is blocked or
 * ignored. */
static int describe_process(posix_spawnattr_t *attributes) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int failed = posix_spawnattr_setsigmask(attributes, &none);
    failed = failed ? failed : posix_spawnattr_setsigdefault(attributes, &all);
    failed = failed ? failed : posix_spawnattr_setpgroup(attributes, 0);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    return failed ? failed : posix_spawnattr_setflags(attributes, flags);
}

static int spawn(const char *program, int theirs, pid_t *pid_out) {
    static char name[] = "tesela-script";
    char *arguments[] = {name, NULL};
    static const char *const environment[] = {SCRIPT_ENVIRONMENT, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    int failed = describe_files(&files, theirs);
    failed = failed ? failed : describe_process(&attributes);
    failed = failed ? failed : posix_spawn(pid_out, program, &files, &attributes, arguments, (char **)(uintptr_t)environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

bool script_process_start(const char *program, script_process *process_out) {
    int ends[2];
    *process_out = (script_process){.socket = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    int failed = spawn(program, ends[1], &process_out->pid);
    close(ends[1]);
    if (failed) {
        close(ends[0]);
        *process_out = (script_process){.socket = -1};
        errno = failed;
        return false;
    }
    process_out->socket = ends[0];
    setpriority(PRIO_PROCESS, (id_t)process_out->pid, NICENESS);
    return true;
}

int script_process_end(script_process *p) {
    int status = 0;
    if (p->pid > 0) {
        kill(p->pid, SIGKILL);
        while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) {
        }
        close(p->socket);
    }
    *p = (script_process){.socket = -1};
    return status;
}

/* ---- frames ---- */

/* Waits until the socket is ready for `events`. */
static script_sign wait_for(const script_process *p, short events, int64_t until_us) {
    struct pollfd fd = {.fd = p->socket, .events = events};
    for (;;) {
        int64_t left_us = until_us - script_now_us();
        if (left_us <= 0) {
            return SCRIPT_LATE;
        }
        int ready = poll(&fd, 1, left_us > 60000000 ? 60000 : (int)(left_us / 1000) + 1);
        if (ready > 0) {
            return SCRIPT_FINE;
        }
        if (ready < 0 && errno != EINTR) {
            return SCRIPT_DEAD;
        }
    }
}

static bool would_block(void) {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

static script_sign send_all(script_process *p, slice bytes, int64_t until_us) {
    while (bytes.n) {
        ssize_t n = send(p->socket, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && !would_block()) {
            return SCRIPT_DEAD;
        }
        bytes = slice_skip(bytes, n > 0 ? (size_t)n : 0);
        script_sign sign = bytes.n ? wait_for(p, POLLOUT, until_us) : SCRIPT_FINE;
        if (sign != SCRIPT_FINE) {
            return sign;
        }
    }
    return SCRIPT_FINE;
}

script_sign script_process_send(script_process *p, script_frame kind, slice text, int64_t until_us) {
    char header[SCRIPT_HEADER_BYTES];
    if (text.n >= SCRIPT_FRAME_BYTES_MAX) {
        return SCRIPT_MALFORMED;
    }
    uint32_t length = htole32((uint32_t)text.n + 1); /* the length includes the kind */
    memcpy(header, &length, sizeof length);
    header[4] = (char)kind;
    script_sign sign = send_all(p, slice_of(header, sizeof header), until_us);
    return sign == SCRIPT_FINE ? send_all(p, text, until_us) : sign;
}

/* Receives at least one byte and at most `most`. */
static script_sign receive_some(script_process *p, void *into, size_t most, size_t *n_out, int64_t until_us) {
    for (;;) {
        ssize_t n = recv(p->socket, into, most, MSG_DONTWAIT);
        if (n > 0) {
            *n_out = (size_t)n;
            return SCRIPT_FINE;
        }
        if (n == 0 || !would_block()) {
            return SCRIPT_DEAD;
        }
        script_sign sign = wait_for(p, POLLIN, until_us);
        if (sign != SCRIPT_FINE) {
            return sign;
        }
    }
}

static script_sign receive_exactly(script_process *p, buf *into, size_t wanted, int64_t until_us) {
    while (wanted) {
        size_t n = 0;
        if (!buf_reserve(into, wanted < READ_AT_ONCE ? wanted : READ_AT_ONCE)) {
            return SCRIPT_MALFORMED;
        }
        size_t room = into->cap - into->n;
        script_sign sign = receive_some(p, into->p + into->n, room < wanted ? room : wanted, &n, until_us);
        if (sign != SCRIPT_FINE) {
            return sign;
        }
        into->n += n;
        wanted -= n;
    }
    return SCRIPT_FINE;
}

script_sign script_process_receive(script_process *p, script_frame *kind_out, buf *into, int64_t until_us) {
    char room[SCRIPT_HEADER_BYTES];
    uint32_t length;
    buf header = {.p = room, .cap = sizeof room, .max = sizeof room};
    script_sign sign = receive_exactly(p, &header, sizeof room, until_us);
    if (sign != SCRIPT_FINE) {
        return sign;
    }
    memcpy(&length, room, sizeof length);
    length = le32toh(length);
    *kind_out = (script_frame)room[4];
    buf_clear(into);
    if (length == 0 || length > SCRIPT_FRAME_BYTES_MAX) {
        return SCRIPT_MALFORMED;
    }
    return receive_exactly(p, into, length - 1, until_us);
}

int64_t script_process_cpu_us(const script_process *p) {
    clockid_t clock;
    struct timespec used;
    if (p->pid <= 0 || clock_getcpuclockid(p->pid, &clock) != 0 || clock_gettime(clock, &used) != 0) {
        return 0;
    }
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}
