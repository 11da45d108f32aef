/* RocksDB's log format (db/log_format.h): blocks of 32 KB, with records that do not cross block borders:
 *
 *   offset 0  u32  CRC-32C of type and payload, rotated right by 15 and 0xA282EAD8 added
 *          4  u16  length of the payload; all numbers are little-endian
 *          6  u8   type: 1 a whole batch, 2 the first, 3 a middle, 4 the last piece of one
 *          7       payload
 *
 * If less than 7 bytes are left at a block's end, they are zero. */
#include "store/wal.h"

#include <ctype.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compare.h"
#include "base/crc32c.h"
#include "base/memory.h"

enum { BLOCK = 32 * 1024, HEAD = 7, TYPE_WHOLE = 1, TYPE_FIRST = 2, TYPE_LAST = 4, PATH_BYTES = 4096 };

/* ---- records ---- */

typedef struct state {
    bool damaged; /* damage was found; no whole batch may follow */
    char path[PATH_BYTES];
    uint64_t at;
} state;

/* Returns the length of the record at the start of `n` bytes, header included; 0 if there is no valid record. */
static size_t record_at(const unsigned char *p, size_t n) {
    if (n < HEAD) {
        return 0;
    }
    uint32_t stored;
    memcpy(&stored, p, sizeof stored);
    stored = le32toh(stored) - 0xA282EAD8u;
    size_t length = (size_t)p[4] | (size_t)p[5] << 8;
    if (p[6] < TYPE_WHOLE || p[6] > TYPE_LAST || length > n - HEAD ||
        crc32c(slice_of((const char *)p + 6, length + 1)) != (stored >> 17 | stored << 15)) {
        return 0;
    }
    return HEAD + length;
}

static bool begins_batch(const unsigned char *record) {
    return record[6] == TYPE_WHOLE || record[6] == TYPE_FIRST;
}

static void note_damage(state *s, const char *path, uint64_t at) {
    if (!s->damaged) {
        s->damaged = true;
        s->at = at;
        snprintf(s->path, sizeof s->path, "%s", path);
    }
}

/* Checks the records of a block. After a damaged record, it looks for the next one byte by byte. False: a whole batch follows a damaged
 * one. */
static bool check_block(state *s, const char *path, uint64_t offset, const unsigned char *p, size_t n) {
    for (size_t at = 0; n - at >= HEAD;) {
        size_t length = record_at(p + at, n - at);
        if (length == 0) {
            note_damage(s, path, offset + at);
            at++;
        } else if (s->damaged && begins_batch(p + at)) {
            return false;
        } else {
            at += length;
        }
    }
    return true;
}

static err check_log(state *s, const char *path) {
    unsigned char block[BLOCK];
    err code = OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return OK; /* RocksDB will report the error */
    }
    ssize_t n;
    for (uint64_t offset = 0; code == OK && (n = pread(fd, block, sizeof block, (off_t)offset)) > 0; offset += (uint64_t)n) {
        code = check_block(s, path, offset, block, (size_t)n) ? OK : E_STORE_CORRUPT;
    }
    close(fd);
    return code;
}

/* ---- files ---- */

/* Returns the numbers of the logs, oldest first; the caller frees the array. */
static uint64_t *list_logs(const char *dir, size_t *n_out) {
    uint64_t *numbers = NULL;
    size_t n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        char *end;
        uint64_t number = strtoull(entry->d_name, &end, 10);
        if (isdigit((unsigned char)entry->d_name[0]) && strcmp(end, ".log") == 0) {
            numbers = mem_resize(numbers, (n + 1) * sizeof *numbers);
            numbers[n++] = number;
        }
    }
    if (d) {
        closedir(d);
    }
    if (n) {
        qsort(numbers, n, sizeof *numbers, order_u64);
    }
    *n_out = n;
    return numbers;
}

err store_wal_check(const char *dir, char *why, size_t why_n) {
    state s = {0};
    size_t n;
    uint64_t *numbers = list_logs(dir, &n);
    err code = OK;
    for (size_t i = 0; i < n && code == OK; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/%06lu.log", dir, (unsigned long)numbers[i]);
        code = check_log(&s, path);
    }
    free(numbers);
    if (code != OK) {
        snprintf(why, why_n,
                 "the data cannot be opened: the log %s is damaged at byte %lu, and later writes follow. Nothing was touched. Restore the "
                 "folder "
                 "from a copy, or give up all writes from there on: truncate -s %lu %s",
                 s.path, (unsigned long)s.at, (unsigned long)s.at, s.path);
    }
    return code;
}
