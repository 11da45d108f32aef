/* store_harness.h — for tests of stores and of layers above them: a temporary folder, a dump of a store, and commits that a test waits
 * for. */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/random.h"
#include "store/committer.h"
#include "store/failing_store.h"
#include "store/folder.h"
#include "store/store.h"

/* ---- folders ---- */

static inline int remove_entry(const char *path, const struct stat *s, int kind, struct FTW *at) {
    (void)s, (void)kind, (void)at;
    return remove(path);
}

static inline void remove_folder(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes an empty folder in $TMPDIR or /tmp; the caller frees the path. */
static inline char *make_folder(void) {
    const char *base = getenv("TMPDIR");
    char *path = malloc(4096);
    assert_non_null(path);
    snprintf(path, 4096, "%s/tesela-unit-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

/* Opens a store with a tail of this size: a small one is flushed all the time. 0: the default. */
static inline store *open_rocks_tail(const char *dir, size_t tail_bytes) {
    store *s;
    char why[512] = "";
    store_options options = {.dir = dir, .cache_bytes = 8 << 20, .tail_bytes = tail_bytes};
    err code = store_open_rocks(&options, &s, why, sizeof why);
    if (code != OK) {
        fail_msg("store does not open: %s", why);
    }
    return s;
}

static inline store *open_rocks(const char *dir) {
    return open_rocks_tail(dir, 0);
}

/* ---- the kernel's page cache ---- */

typedef void (*each_table)(int fd);

static inline void drop_table(int fd) {
    assert_int_equal(fdatasync(fd), 0); /* dirty pages cannot be dropped */
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

static inline void read_table(int fd) {
    char bytes[65536];
    while (read(fd, bytes, sizeof bytes) > 0) {
    }
}

static inline DIR *open_tables(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/db", folder);
    DIR *d = opendir(path);
    assert_non_null(d);
    return d;
}

static inline bool is_table(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".sst") == 0;
}

/* The sum of the tables' numbers: a merge that ends changes it. */
static inline uint64_t sum_of_tables(const char *folder) {
    uint64_t sum = 0;
    DIR *d = open_tables(folder);
    for (struct dirent *entry; (entry = readdir(d));) {
        sum += is_table(entry) ? strtoull(entry->d_name, NULL, 10) : 0;
    }
    closedir(d);
    return sum;
}

/* Waits until merges, which an open may start, have been done for a while. */
static inline void wait_for_merges(const char *folder) {
    enum { CALM = 5, TRIES = 200 };
    uint64_t sum = sum_of_tables(folder);
    for (int calm = 0, tries = 0; calm < CALM && tries < TRIES; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        uint64_t now = sum_of_tables(folder);
        calm = now == sum ? calm + 1 : 0;
        sum = now;
    }
}

static inline void with_tables(const char *folder, each_table each) {
    wait_for_merges(folder);
    DIR *d = open_tables(folder);
    for (struct dirent *entry; (entry = readdir(d));) {
        if (is_table(entry)) {
            int fd = openat(dirfd(d), entry->d_name, O_RDONLY);
            assert_true(fd >= 0);
            each(fd);
            close(fd);
        }
    }
    closedir(d);
}

/* False: the folder is in memory, so nothing can be dropped. */
static inline bool drop_pages(const char *folder) {
    struct statfs is;
    assert_int_equal(statfs(folder, &is), 0);
    if (is.f_type == TMPFS_MAGIC) {
        return false;
    }
    with_tables(folder, drop_table);
    return true;
}

/* ---- dumping a store ---- */

/* Dumps all entries of a family, current or as of a snapshot, to compare two stores or two moments. */
static inline void dump_family(store *s, store_family family, const store_snapshot *at, slice from, slice to, bool backward, buf *out) {
    slice key, value;
    store_scan *scan = store_scan_open(s, family, at, from, to, backward);
    while (store_scan_next(scan, &key, &value)) {
        buf_add_be32(out, (uint32_t)key.n);
        buf_add_slice(out, key);
        buf_add_be32(out, (uint32_t)value.n);
        buf_add_slice(out, value);
    }
    assert_false(store_scan_next(scan, &key, &value)); /* it stays at its end */
    assert_int_equal(store_scan_close(scan), OK);
}

static inline buf dump_store(store *s, const store_snapshot *at) {
    buf out = buf_init(BUF_NO_LIMIT);
    for (int f = 0; f < STORE_FAMILIES; f++) {
        buf_add_byte(&out, (char)('0' + f));
        dump_family(s, (store_family)f, at, SLICE_EMPTY, SLICE_EMPTY, false, &out);
    }
    return out;
}

static inline bool get_equals(store *s, store_family family, const store_snapshot *at, slice key, slice expected) {
    store_value value;
    err code = store_get(s, family, at, key, &value);
    if (code != OK) {
        return code == E_NOT_FOUND && expected.p == NULL && value.bytes.n == 0;
    }
    bool same = expected.p && slice_eq(value.bytes, expected);
    store_give(&value);
    return same;
}

/* ---- waiting for commits ---- */

typedef struct waiter {
    sem_t done;
} waiter;

static inline void waiter_init(waiter *w) {
    assert_int_equal(sem_init(&w->done, 0, 0), 0);
}

static inline void waiter_wait(waiter *w) {
    while (sem_wait(&w->done) != 0) {
    }
    sem_destroy(&w->done);
}
