#include "tool/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* UINT64_MAX: no such file, or it says "max". */
static uint64_t read_limit(const char *path) {
    unsigned long long bytes;
    FILE *file = fopen(path, "re");
    bool found = file && fscanf(file, "%llu", &bytes) == 1;
    if (file) {
        fclose(file);
    }
    return found ? bytes : UINT64_MAX;
}

/* The lowest limit of the process's control group and its ancestors; for cgroups v1 the container's limit. */
static uint64_t group_limit(void) {
    char line[512] = "", path[640];
    FILE *file = fopen("/proc/self/cgroup", "re");
    bool found = file && fgets(line, sizeof line, file) && strncmp(line, "0::/", 4) == 0;
    uint64_t limit = read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    if (file) {
        fclose(file);
    }
    char *group = line + 3;
    group[strcspn(group, "\n")] = 0;
    for (char *end = found ? group + strlen(group) : NULL; end; end = strrchr(group, '/')) {
        *end = 0;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
        limit = least(limit, read_limit(path));
    }
    return limit;
}

uint64_t machine_memory_bytes(void) {
    struct sysinfo info;
    struct rlimit space;
    uint64_t bytes = sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
        bytes = least(bytes, space.rlim_cur);
    }
    return least(bytes, group_limit());
}
