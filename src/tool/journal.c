#include "tool/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "doc/json.h"
#include "doc/path.h"

static bool tell(const journal *j, const char *what) {
    fprintf(stderr, "tesela: the journal %s cannot be %s: %s.\n", j->path, what, strerror(errno));
    return false;
}

static slice text_in(slice bson, const char *name) {
    doc_element e;
    return doc_find_member(bson, slice_str(name), &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

static uint64_t number_in(slice bson, const char *name) {
    doc_element e;
    bool there = doc_find_member(bson, slice_str(name), &e) && (e.type == BSON_TYPE_INT32 || e.type == BSON_TYPE_INT64);
    int64_t n = !there ? 0 : e.type == BSON_TYPE_INT32 ? doc_load_i32(e.value.p) : doc_load_i64(e.value.p);
    return n > 0 ? (uint64_t)n : 0;
}

static bool take(journal *j, slice bson) {
    if (!slice_eq(text_in(bson, "source"), slice_str(j->source)) || !slice_eq(text_in(bson, "target"), slice_str(j->target))) {
        fprintf(stderr, "tesela: the journal %s is of another transfer. --restart begins anew, --journal names another file.\n", j->path);
        return false;
    }
    j->offset = number_in(bson, "offset");
    j->line = number_in(bson, "line");
    j->items = number_in(bson, "items");
    j->failed = number_in(bson, "failed");
    j->bytes = number_in(bson, "bytes");
    buf_clear(&j->continuation);
    buf_add_slice(&j->continuation, text_in(bson, "continuation"));
    j->found = true;
    return true;
}

static bool read_file(journal *j, FILE *file) {
    buf text = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    char *room = mem_alloc(JOURNAL_TEXT_BYTES);
    json_root root;
    buf_add(&text, room, fread(room, 1, JOURNAL_TEXT_BYTES, file));
    bool good = json_to_bson(buf_view(&text), NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT;
    if (!good) {
        fprintf(stderr, "tesela: %s is not a journal. --restart replaces it.\n", j->path);
    }
    good = good && take(j, buf_view(&bson));
    free(room);
    buf_free(&text);
    buf_free(&bson);
    return good;
}

static void hold(journal *j, int fd) {
    if (j->held) {
        close(j->held - 1);
    }
    j->held = fd + 1;
}

/* Opens and locks the file, unless there is none. A save puts another file in its place: then that one is tried. */
static bool lock_file(journal *j) {
    for (;;) {
        struct stat opened, there;
        int fd = open(j->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return errno == ENOENT || tell(j, "opened");
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
            fprintf(stderr, "tesela: the journal %s is in use: the same command runs already.\n", j->path);
            close(fd);
            return false;
        }
        if (fstat(fd, &opened) == 0 && stat(j->path, &there) == 0 && opened.st_dev == there.st_dev && opened.st_ino == there.st_ino) {
            hold(j, fd);
            return true;
        }
        close(fd);
    }
}

bool journal_open(journal *j, const char *path, const char *source, const char *target, bool restart) {
    *j = (journal){
        .path = path ? strdup(path) : NULL, .source = strdup(source), .target = strdup(target), .continuation = buf_init(BUF_NO_LIMIT)};
    if (path && !lock_file(j)) {
        return false;
    }
    if (restart || !j->held) {
        return true;
    }
    FILE *file = fopen(path, "rb");
    bool good = file ? read_file(j, file) : tell(j, "opened");
    if (file) {
        fclose(file);
    }
    return good;
}

static void add_text(buf *out, const char *name, slice text) {
    buf_addf(out, "\"%s\":", name);
    json_add_string(out, text);
    buf_add_byte(out, ',');
}

bool journal_save(journal *j) {
    if (!j->path) {
        return true;
    }
    buf text = buf_init(BUF_NO_LIMIT), beside = buf_init(BUF_NO_LIMIT);
    buf_addf(&beside, "%s.new", j->path);
    buf_add_byte(&beside, '\0');
    buf_add_byte(&text, '{');
    add_text(&text, "source", slice_str(j->source));
    add_text(&text, "target", slice_str(j->target));
    add_text(&text, "continuation", buf_view(&j->continuation));
    buf_addf(&text, "\"offset\":%lu,\"line\":%lu,\"items\":%lu,\"failed\":%lu,\"bytes\":%lu}\n", (unsigned long)j->offset,
             (unsigned long)j->line, (unsigned long)j->items, (unsigned long)j->failed, (unsigned long)j->bytes);
    int fd = open(beside.p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n && fsync(fd) == 0;
    if (good) {
        (void)flock(fd, LOCK_EX | LOCK_NB); /* before others can open it by the journal's name */
        good = rename(beside.p, j->path) == 0;
    }
    if (good) {
        hold(j, fd);
    } else if (fd >= 0) {
        int why = errno;
        close(fd);
        errno = why;
    }
    buf_free(&text);
    buf_free(&beside);
    return good || tell(j, "written");
}

void journal_remove(journal *j) {
    if (j->path) {
        unlink(j->path);
    }
}

void journal_close(journal *j) {
    hold(j, -1);
    free(j->path);
    free(j->source);
    free(j->target);
    buf_free(&j->continuation);
}
