#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/admin/admin_int.h"

static uint64_t resident_bytes(void) {
    unsigned long all, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file) {
        if (fscanf(file, "%lu %lu", &all, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t open_files(void) {
    DIR *dir = opendir("/proc/self/fd");
    uint64_t n = 0;
    if (dir) {
        for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
            n += entry->d_name[0] != '.';
        }
        closedir(dir);
        n--; /* do not count the directory handle itself */
    }
    return n;
}

static double seconds(struct timeval t) {
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

admin_process admin_process_read(void) {
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    return (admin_process){resident_bytes(), open_files(), seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}
