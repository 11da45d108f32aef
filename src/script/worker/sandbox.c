/* sandbox.c — see sandbox.h. */
#include "script/worker/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "script/protocol.h"

enum { NOBODY = 65534, CPU_SECONDS_MAX = 1800, FILES_MAX = 64, NICER = 10 };

static const char *const environment[] = {SCRIPT_ENVIRONMENT, NULL};

static bool has_environment(void) {
    size_t n = 0;
    for (; environ && environ[n]; n++) {
        if (!environment[n] || strcmp(environ[n], environment[n]) != 0) {
            return false;
        }
    }
    return !environment[n];
}

void sandbox_prepare(char **arguments) {
    if (!has_environment()) {
        char *given[sizeof environment / sizeof *environment] = {0};
        for (size_t i = 0; environment[i]; i++) {
            given[i] = strdup(environment[i]);
        }
        execve("/proc/self/exe", arguments, given);
        _exit(2); /* the engine would not start correctly */
    }
    if (close_range(SCRIPT_FD + 1, ~0U, 0) != 0 || chdir("/") != 0) {
        _exit(2);
    }
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < SCRIPT_FD; fd++) {
        if (null < 0 || dup2(null, fd) != fd) {
            _exit(2);
        }
    }
    if (null > SCRIPT_FD) {
        close(null);
    }
}

static bool limit(int what, rlim_t value) {
    struct rlimit both = {.rlim_cur = value, .rlim_max = value};
    return setrlimit((__rlimit_resource_t)what, &both) == 0;
}

/* Bytes of address space in use; 0 on failure. */
static size_t address_space(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%lu", &pages) != 1) {
            pages = 0;
        }
        fclose(f);
    }
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static bool limit_resources(size_t memory_bytes) {
    size_t used = address_space();
    return used > 0 && limit(RLIMIT_AS, used + memory_bytes) && limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) &&
           limit(RLIMIT_NOFILE, FILES_MAX) && limit(RLIMIT_CPU, CPU_SECONDS_MAX) && limit(RLIMIT_MEMLOCK, 0) && limit(RLIMIT_MSGQUEUE, 0) &&
           limit(RLIMIT_SIGPENDING, 256);
}

/* Root becomes nobody; capabilities go with the user id. */
static bool drop_user(void) {
    if (geteuid() != 0) {
        return true;
    }
    return setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0 &&
           setresuid(0, 0, 0) != 0;
}

/* ---- system calls ---- */

/* clang-format off */
static const int allowed[] = {
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(close), SCMP_SYS(futex), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mprotect),
    SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(brk), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigsuspend), SCMP_SYS(sigaltstack), SCMP_SYS(sched_yield),
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_getres), SCMP_SYS(clock_nanosleep), SCMP_SYS(nanosleep), SCMP_SYS(gettimeofday),
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getrusage), SCMP_SYS(getrandom), SCMP_SYS(poll), SCMP_SYS(ppoll),
    SCMP_SYS(restart_syscall), SCMP_SYS(set_robust_list), SCMP_SYS(rseq), SCMP_SYS(membarrier), SCMP_SYS(timer_settime),
    SCMP_SYS(timer_gettime), SCMP_SYS(sched_getaffinity), SCMP_SYS(sysinfo), SCMP_SYS(getcpu),
};
/* clang-format on */

/* Calls that no engine makes but an attacker would: they kill the process. */
/* clang-format off */
static const int deadly[] = {
    SCMP_SYS(execve), SCMP_SYS(execveat), SCMP_SYS(ptrace), SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev), SCMP_SYS(mount),
    SCMP_SYS(umount2), SCMP_SYS(bpf), SCMP_SYS(init_module), SCMP_SYS(finit_module), SCMP_SYS(kexec_load), SCMP_SYS(pivot_root),
    SCMP_SYS(chroot), SCMP_SYS(setns), SCMP_SYS(unshare), SCMP_SYS(io_uring_setup), SCMP_SYS(userfaultfd), SCMP_SYS(perf_event_open),
    SCMP_SYS(keyctl), SCMP_SYS(add_key),
};
/* clang-format on */

static bool add_lists(scmp_filter_ctx filter) {
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0) != 0) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        if (seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, deadly[i], 0) != 0) {
            return false;
        }
    }
    return true;
}

/* Allows new threads but not processes, signals to itself only (the engine stops its threads by signals), and naming its threads and
 * reading its limits. */
static bool add_conditions(scmp_filter_ctx filter) {
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0)) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0)) == 0 &&
           seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2, SCMP_A0(SCMP_CMP_EQ, 0, 0), SCMP_A2(SCMP_CMP_EQ, 0, 0)) == 0;
}

static bool filter_calls(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    bool ok = filter && seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1) == 0 &&
              seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0 && add_lists(filter) &&
              add_conditions(filter) && seccomp_load(filter) == 0;
    if (filter) {
        seccomp_release(filter);
    }
    return ok;
}

#define REFUSED(what) "{\"compile\":false,\"message\":\"The sandbox cannot be entered: " what "\"}"

bool sandbox_enter(size_t memory_bytes, const char **why) {
    (void)!setpriority(PRIO_PROCESS, 0, NICER); /* the server's loops take precedence; failure does not matter */
    *why = REFUSED("limits");
    if (!limit_resources(memory_bytes)) {
        return false;
    }
    *why = REFUSED("user");
    if (!drop_user()) {
        return false;
    }
    *why = REFUSED("privileges");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return false;
    }
    *why = REFUSED("system calls");
    return filter_calls();
}
