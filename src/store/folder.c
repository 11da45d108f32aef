#include "store/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define FORMAT_WORDS "tesela data "

static err make_parents(const char *dir, char *why, size_t why_n) {
    char *path = mem_text(dir, strlen(dir));
    err code = OK;
    for (char *at = path + 1; code == OK; at++) {
        char c = *at;
        if (c != '/' && c != 0) {
            continue;
        }
        *at = 0;
        if (mkdir(path, 0700) < 0 && errno != EEXIST) {
            snprintf(why, why_n, "cannot make the data folder %s: %s. Choose another with --data DIR", path, strerror(errno));
            code = E_STORE_IO;
        }
        *at = c;
        if (c == 0) {
            break;
        }
    }
    free(path);
    return code;
}

static bool is_empty(const char *dir) {
    DIR *d = opendir(dir);
    if (!d) {
        return false;
    }
    bool empty = true;
    for (struct dirent *entry; empty && (entry = readdir(d));) {
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || strcmp(entry->d_name, "lost+found") == 0;
    }
    closedir(d);
    return empty;
}

/* Written under another name, synced and renamed: a FORMAT file is whole or not there. */
static err mark_folder(const char *dir, char *why, size_t why_n) {
    char temporary[4096], path[4096], line[64];
    snprintf(temporary, sizeof temporary, "%s/FORMAT.new", dir);
    snprintf(path, sizeof path, "%s/FORMAT", dir);
    int n = snprintf(line, sizeof line, FORMAT_WORDS "%d\n", STORE_FORMAT_VERSION);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write(fd, line, (size_t)n) == n && fsync(fd) == 0 && rename(temporary, path) == 0;
    if (!done) {
        snprintf(why, why_n, "cannot write to the data folder %s: %s", dir, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd >= 0) {
        done = fsync(dir_fd) == 0 && done;
        close(dir_fd);
    }
    return done ? OK : E_STORE_IO;
}

static err check_version(const store_folder *folder, char *why, size_t why_n) {
    char line[64] = {0};
    int version = 0;
    ssize_t n = pread(folder->lock_fd, line, sizeof line - 1, 0);
    if (n <= 0 || sscanf(line, FORMAT_WORDS "%d", &version) != 1) {
        snprintf(why, why_n, "%s/FORMAT is damaged: it should say '" FORMAT_WORDS "%d'. Nothing was touched", folder->dir,
                 STORE_FORMAT_VERSION);
        return E_STORE_CORRUPT;
    }
    if (version != STORE_FORMAT_VERSION) {
        snprintf(why, why_n, "the data in %s has format %d, this tesela reads format %d: use the version that wrote it", folder->dir,
                 version, STORE_FORMAT_VERSION);
        return E_STORE_IO;
    }
    return OK;
}

static err lock_folder(store_folder *folder, char *why, size_t why_n) {
    char path[4096];
    snprintf(path, sizeof path, "%s/FORMAT", folder->dir);
    folder->read_only = access(folder->dir, W_OK) < 0;
    folder->lock_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (folder->lock_fd < 0) {
        snprintf(why, why_n, "cannot open %s: %s", path, strerror(errno));
        return E_STORE_IO;
    }
    if (flock(folder->lock_fd, (folder->read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) < 0) {
        snprintf(why, why_n, "another tesela already serves %s: stop it, or choose another folder with --data DIR", folder->dir);
        return E_STORE_IO;
    }
    return check_version(folder, why, why_n);
}

err store_folder_open(store_folder *folder_out, const char *dir, char *why, size_t why_n) {
    char path[4096];
    *folder_out = (store_folder){.lock_fd = -1};
    if ((size_t)snprintf(path, sizeof path, "%s/FORMAT.new", dir) >= sizeof path || !*dir) {
        snprintf(why, why_n, "the data folder's name is empty or too long");
        return E_STORE_IO;
    }
    path[strlen(path) - 4] = 0;
    if (access(path, F_OK) < 0) {
        TRY(make_parents(dir, why, why_n));
        if (!is_empty(dir)) {
            snprintf(why, why_n,
                     "%s is not a tesela data folder (it has files but no FORMAT file): nothing was touched. Choose an empty or new folder "
                     "with --data DIR",
                     dir);
            return E_STORE_IO;
        }
        TRY(mark_folder(dir, why, why_n));
    }
    folder_out->dir = mem_text(dir, strlen(dir));
    err code = lock_folder(folder_out, why, why_n);
    if (code != OK) {
        store_folder_close(folder_out);
    }
    return code;
}

void store_folder_close(store_folder *folder) {
    if (folder->lock_fd >= 0) {
        close(folder->lock_fd);
    }
    free(folder->dir);
    *folder = (store_folder){.lock_fd = -1};
}
