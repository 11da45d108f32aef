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

enum { PATH_BYTES = 4096 };

/* *made_out is the length of the shortest prefix of the path that had to be created; 0: none. */
static err make_parents(const char *dir, size_t *made_out, char *why, size_t why_n) {
    char *path = mem_text(dir, strlen(dir));
    err code = OK;
    *made_out = 0;
    for (char *at = path + 1; code == OK; at++) {
        char c = *at;
        if (c != '/' && c != 0) {
            continue;
        }
        *at = 0;
        if (mkdir(path, 0700) == 0) {
            *made_out = *made_out ? *made_out : strlen(path);
        } else if (errno != EEXIST) {
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

/* Ignores lost+found, and the file that a first start leaves if it is killed. */
static bool is_empty(const char *dir) {
    static const char *const nothing[] = {".", "..", "lost+found", "FORMAT.new"};
    DIR *d = opendir(dir);
    if (!d) {
        return false;
    }
    bool empty = true;
    for (struct dirent *entry; empty && (entry = readdir(d));) {
        empty = false;
        for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
            empty = empty || strcmp(entry->d_name, nothing[i]) == 0;
        }
    }
    closedir(d);
    return empty;
}

/* Writes a temporary file, syncs and renames it, so that a FORMAT file is either complete or missing. */
static err mark_folder(const char *dir, char *why, size_t why_n) {
    char temporary[PATH_BYTES], path[PATH_BYTES], line[64];
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
    int version = 0, end = 0;
    ssize_t n = pread(folder->lock_fd, line, sizeof line - 1, 0);
    if (n <= 0 || sscanf(line, FORMAT_WORDS "%d%n", &version, &end) != 1 || strcmp(line + end, "\n") != 0) {
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

/* Whether only a database with data has this file. A first start that was killed may leave MANIFEST-000001, but nothing else. */
static bool is_of_database(const char *name) {
    const char *dot = strrchr(name, '.');
    bool manifest = strncmp(name, "MANIFEST-", 9) == 0 && strcmp(name, "MANIFEST-000001") != 0;
    return manifest || (dot && (strcmp(dot, ".sst") == 0 || strcmp(dot, ".log") == 0));
}

/* If CURRENT is missing, RocksDB ignores the other files and creates a new database over them. So refuse if there are any. */
static err check_database(const store_folder *folder, char *why, size_t why_n) {
    char path[PATH_BYTES];
    bool data = false;
    snprintf(path, sizeof path, "%s/db/CURRENT", folder->dir);
    if (access(path, F_OK) == 0 || errno != ENOENT) {
        return OK;
    }
    path[strlen(path) - strlen("/CURRENT")] = 0;
    DIR *d = opendir(path);
    for (struct dirent *entry; d && !data && (entry = readdir(d));) {
        data = is_of_database(entry->d_name);
    }
    if (d) {
        closedir(d);
    }
    if (data) {
        snprintf(why, why_n, "the data in %s cannot be opened: db/CURRENT is missing, other files are there. Nothing was touched",
                 folder->dir);
        return E_STORE_CORRUPT;
    }
    return OK;
}

/* Takes the lock on the folder, which lasts until it is closed. Readers share it. */
static err take_lock(store_folder *folder, char *why, size_t why_n) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/FORMAT", folder->dir);
    folder->read_only = folder->read_only || access(folder->dir, W_OK) < 0;
    folder->lock_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (folder->lock_fd < 0) {
        snprintf(why, why_n, "cannot open %s: %s", path, strerror(errno));
        return E_STORE_IO;
    }
    if (flock(folder->lock_fd, (folder->read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) < 0) {
        snprintf(why, why_n, "another tesela already serves %s: stop it, or choose another folder with --data DIR", folder->dir);
        return E_STORE_IO;
    }
    return OK;
}

static err lock_folder(store_folder *folder, char *why, size_t why_n) {
    TRY(take_lock(folder, why, why_n));
    TRY(check_version(folder, why, why_n));
    return check_database(folder, why, why_n);
}

static err check_is_folder(const char *dir, char *why, size_t why_n) {
    struct stat is;
    if (stat(dir, &is) == 0 && !S_ISDIR(is.st_mode)) {
        snprintf(why, why_n, "--data %s is a file, not a folder. Choose an empty or new folder", dir);
        return E_STORE_IO;
    }
    return OK;
}

/* Marks a folder as ours, if it is empty. */
static err make_ours(const char *dir, store_folder_new *made, char *why, size_t why_n) {
    if (errno == EACCES) {
        snprintf(why, why_n, "cannot look into the data folder %s: %s", dir, strerror(errno));
        return E_STORE_IO;
    }
    TRY(check_is_folder(dir, why, why_n));
    TRY(make_parents(dir, &made->path_n, why, why_n));
    if (!is_empty(dir)) {
        snprintf(why, why_n,
                 "%s is not a tesela data folder (it has files but no FORMAT file): nothing was touched. Choose an empty or new folder "
                 "with --data DIR",
                 dir);
        return E_STORE_IO;
    }
    made->marked = true;
    return mark_folder(dir, why, why_n);
}

static err path_of(char path[static PATH_BYTES], const char *dir, const char *name, char *why, size_t why_n) {
    if (!*dir || (size_t)snprintf(path, PATH_BYTES, "%s/%s", dir, name) >= PATH_BYTES - 32) {
        snprintf(why, why_n, "the data folder's name is empty or too long");
        return E_STORE_IO;
    }
    return OK;
}

err store_folder_open(store_folder *folder_out, const char *dir, store_folder_new *made_out, char *why, size_t why_n) {
    char path[PATH_BYTES];
    store_folder_new made = {0};
    *folder_out = (store_folder){.lock_fd = -1};
    err code = path_of(path, dir, "FORMAT", why, why_n);
    if (code == OK && access(path, F_OK) < 0) {
        code = make_ours(dir, &made, why, why_n);
    }
    if (made_out) {
        *made_out = made;
    }
    TRY(code);
    folder_out->dir = mem_text(dir, strlen(dir));
    code = lock_folder(folder_out, why, why_n);
    if (code != OK) {
        store_folder_close(folder_out);
    }
    return code;
}

err store_folder_open_to_read(store_folder *folder_out, const char *dir, char *why, size_t why_n) {
    char path[PATH_BYTES];
    *folder_out = (store_folder){.lock_fd = -1};
    TRY(path_of(path, dir, "FORMAT", why, why_n));
    if (access(path, F_OK) < 0) {
        snprintf(why, why_n, "%s is not a tesela data folder: it has no FORMAT file that can be read", dir);
        return E_STORE_IO;
    }
    folder_out->dir = mem_text(dir, strlen(dir));
    folder_out->read_only = true;
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

/* ---- deleting ---- */

/* Removes a folder and the files in it. If it has subfolders, they stay, and so does it. */
static bool remove_files(const char *dir) {
    DIR *d = opendir(dir);
    for (struct dirent *entry; d && (entry = readdir(d));) {
        unlinkat(dirfd(d), entry->d_name, 0);
    }
    if (d) {
        closedir(d);
    }
    return rmdir(dir) == 0 || errno == ENOENT;
}

/* Removes the created parts of the path, innermost first; stops at a folder that is not empty. */
static void remove_parents(const char *dir, size_t shortest) {
    char *path = mem_text(dir, strlen(dir));
    for (size_t n = strlen(path); shortest && n >= shortest; n--) {
        bool end = path[n] == 0 || path[n] == '/';
        path[n] = 0;
        if (end && rmdir(path) != 0) {
            break;
        }
    }
    free(path);
}

void store_folder_discard(const char *dir, const store_folder_new *made) {
    static const char *const ours[] = {"tls-cert.pem", "tls-key.pem", "FORMAT.new", "FORMAT"};
    char why[256], path[PATH_BYTES];
    store_folder folder = {.lock_fd = -1, .dir = mem_text(dir, strlen(dir))};
    if (made->marked && take_lock(&folder, why, sizeof why) == OK && path_of(path, dir, "db", why, sizeof why) == OK &&
        remove_files(path)) {
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) {
            snprintf(path, sizeof path, "%s/%s", dir, ours[i]);
            unlink(path);
        }
    }
    store_folder_close(&folder);
    remove_parents(dir, made->path_n);
}

static err reset_locked(const char *dir, char *why, size_t why_n) {
    char db[PATH_BYTES], aside[PATH_BYTES];
    TRY(path_of(db, dir, "db", why, why_n));
    TRY(path_of(aside, dir, "db.deleted", why, why_n));
    if (!remove_files(aside) || (rename(db, aside) != 0 && errno != ENOENT) || !remove_files(aside)) {
        snprintf(why, why_n, "cannot delete the data in %s: %s", dir, strerror(errno));
        return E_STORE_IO;
    }
    return OK;
}

err store_folder_reset(const char *dir, char *why, size_t why_n) {
    char path[PATH_BYTES];
    TRY(path_of(path, dir, "FORMAT", why, why_n));
    if (access(path, F_OK) != 0) {
        snprintf(why, why_n, "%s is not a tesela data folder (it has no FORMAT file): nothing was touched", dir);
        return E_STORE_IO;
    }
    store_folder folder = {.lock_fd = -1, .dir = mem_text(dir, strlen(dir))};
    err code = take_lock(&folder, why, why_n);
    code = code != OK ? code : check_version(&folder, why, why_n);
    code = code != OK ? code : reset_locked(dir, why, why_n);
    store_folder_close(&folder);
    return code;
}
