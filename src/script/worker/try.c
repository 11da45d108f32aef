/* try.c — see try.h. */
#include "script/worker/try.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool open_file(void) {
    return open("/etc/passwd", O_RDONLY) >= 0;
}

static bool create_file(void) {
    return open("/tmp/tesela-script-try", O_CREAT | O_WRONLY, 0600) >= 0;
}

static bool open_proc(void) {
    return open("/proc/self/mem", O_RDWR) >= 0;
}

static bool list_folder(void) {
    return syscall(SYS_getdents64, 0, NULL, 0) >= 0;
}

static bool remove_file(void) {
    return unlink("/tmp/tesela-script-try") == 0 || errno != EPERM;
}

static bool make_socket(void) {
    return socket(AF_INET, SOCK_STREAM, 0) >= 0;
}

static bool make_local_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static bool pass_descriptor(void) { /* sendmsg could pass a descriptor */
    struct msghdr message = {0};
    return sendmsg(3, &message, 0) >= 0 || errno != EPERM;
}

static bool fork_process(void) {
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    return child > 0;
}

static bool clone_process(void) {
    return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) >= 0;
}

static bool kill_parent(void) {
    return kill(getppid(), 0) == 0 || errno != EPERM;
}

static bool kill_all(void) {
    return kill(-1, 0) == 0;
}

static bool signal_thread_of_parent(void) {
    return syscall(SYS_tgkill, 1, 1, 0) == 0 || errno != EPERM;
}

static bool raise_limit(void) {
    struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};
    return setrlimit(RLIMIT_AS, &more) == 0;
}

static bool become_root(void) {
    return setuid(0) == 0 && geteuid() == 0 && open("/etc/shadow", O_RDONLY) >= 0;
}

static bool take_memory(void) {
    return mmap(NULL, (size_t)1 << 30, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static bool control_process(void) {
    return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

static bool trace_process(void) {
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

static bool execute(void) {
    char *arguments[] = {(char[]){"sh"}, NULL};
    return execve("/bin/sh", arguments, NULL) == 0;
}

static bool read_other_process(void) {
    return syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0) >= 0;
}

static const struct {
    const char *name;
    bool (*attempt)(void);
} attempts[] = {
    {"open", open_file},
    {"create", create_file},
    {"proc", open_proc},
    {"list", list_folder},
    {"unlink", remove_file},
    {"socket", make_socket},
    {"local-socket", make_local_socket},
    {"pass-descriptor", pass_descriptor},
    {"fork", fork_process},
    {"clone", clone_process},
    {"kill-parent", kill_parent},
    {"kill-all", kill_all},
    {"tgkill", signal_thread_of_parent},
    {"raise-limit", raise_limit},
    {"root", become_root},
    {"memory", take_memory},
    {"prctl", control_process},
    {"ptrace", trace_process},
    {"exec", execute},
    {"read-process", read_other_process},
};

int try_name(const char *name) {
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        if (strcmp(attempts[i].name, name) == 0) {
            return attempts[i].attempt() ? 1 : 0;
        }
    }
    return 2;
}
