#include "base/recording.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"

static struct {
    pthread_mutex_t lock;
    FILE *file;
    char *path, *before;
    uint64_t bytes, bytes_max;
    unsigned one_of;
} the = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_uint_fast64_t seen, chosen_at; /* requests; those when the last line was chosen */
static atomic_int_fast64_t second;
static atomic_uint in_second;

bool recording_is_on;

static FILE *make_file(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); /* the values of keys are in it */
    return fd < 0 ? NULL : fdopen(fd, "wb");
}

bool recording_open(const char *path, uint64_t bytes_max, unsigned one_of) {
    size_t n = strlen(path) + 3;
    the.file = make_file(path);
    if (!the.file) {
        return false;
    }
    the.path = mem_text(path, n - 3);
    the.before = mem_alloc(n);
    snprintf(the.before, n, "%s.1", path);
    the.bytes_max = bytes_max;
    the.one_of = one_of;
    recording_is_on = true;
    return true;
}

void recording_close(void) {
    if (the.file) {
        fclose(the.file);
        the.file = NULL;
    }
    recording_is_on = false;
}

bool recording_choose(int64_t now_s) {
    uint64_t n = atomic_fetch_add_explicit(&seen, 1, memory_order_relaxed);
    if (n % the.one_of != 0) {
        return false;
    }
    if (atomic_exchange_explicit(&second, now_s, memory_order_relaxed) != now_s) {
        atomic_store_explicit(&in_second, 0, memory_order_relaxed);
    }
    return atomic_fetch_add_explicit(&in_second, 1, memory_order_relaxed) < RECORDING_PER_SECOND;
}

uint64_t recording_count(void) {
    uint64_t now = atomic_load_explicit(&seen, memory_order_relaxed);
    uint64_t before = atomic_exchange_explicit(&chosen_at, now, memory_order_relaxed);
    return now > before ? now - before : 1;
}

static void rotate(void) {
    fclose(the.file);
    rename(the.path, the.before);
    the.file = make_file(the.path);
    the.bytes = 0;
}

void recording_write(slice line) {
    if (line.n > RECORDING_LINE_BYTES || pthread_mutex_trylock(&the.lock) != 0) {
        return;
    }
    if (the.file && the.bytes + line.n > the.bytes_max / 2) {
        rotate();
    }
    if (the.file && fwrite(line.p, 1, line.n, the.file) == line.n) {
        the.bytes += line.n;
    }
    pthread_mutex_unlock(&the.lock);
}
