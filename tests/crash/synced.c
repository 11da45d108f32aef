/* synced.c — preloaded into the server: notes how much of each file has been synced, as lines "inode size" in $SYNCED_LOG.
 *
 * After a SIGKILL the crash test cuts every file back to the last size noted: what a loss of power would leave. The size is taken before
 * the sync, so that bytes written meanwhile do not count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int log_fd = -1;

__attribute__((constructor)) static void open_log(void) {
    const char *path = getenv("SYNCED_LOG");
    log_fd = path ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
}

static int sync_noting(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    char line[64];
    int known = log_fd >= 0 && fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
    int result = real(fd);
    if (known && result == 0) {
        int n = snprintf(line, sizeof line, "%lu %lu\n", (unsigned long)before.st_ino, (unsigned long)before.st_size);
        if (write(log_fd, line, (size_t)n) != n) {
            abort();
        }
    }
    return result;
}

int fsync(int fd) {
    return sync_noting("fsync", fd);
}

int fdatasync(int fd) {
    return sync_noting("fdatasync", fd);
}
