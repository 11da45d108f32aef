#include "access/keys.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/log.h"
#include "base/memory.h"

enum { FILE_BYTES_MAX = 4096, NEW_KEY_BYTES = 64, SHORT_KEY_CHARS = 40 /* 30 bytes */, PATH_BYTES = 4096, PLACE_BYTES = 400 };

/* The texts of the four keys. Empty: not set. */
typedef struct key_texts {
    char text[ACCESS_KEY_COUNT][ACCESS_KEY_TEXT_BYTES];
    unsigned line[ACCESS_KEY_COUNT]; /* line in the key file, from 1; 0: not from a file */
} key_texts;

struct access_keys {
    _Atomic(access_ring *) ring;
    _Atomic uint64_t changes;
    atomic_bool asked; /* a reload of the file was requested */
    net_server *server;
    bool exposed, allow_well_known; /* as in access_keys_options */
    access_key_source source;
    char *file;
    char *scram_user;
    access_scram_setup scram; /* user NULL: none */

    pthread_mutex_t lock; /* guards the texts and serialises changes */
    key_texts texts;
};

const char *const access_key_names[ACCESS_KEY_COUNT] = {"primary", "secondary", "primaryReadonly", "secondaryReadonly"};

bool access_key_parse(slice name, access_key *key_out) {
    char plain[32];
    size_t n = 0;
    for (size_t i = 0; i < name.n && n < sizeof plain; i++) {
        if (name.p[i] != '-') {
            plain[n++] = name.p[i];
        }
    }
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        if (slice_eq_nocase(slice_of(plain, n), slice_str(access_key_names[key]))) {
            *key_out = key;
            return true;
        }
    }
    return false;
}

/* ---- rings ---- */

/* " (line 3 of /etc/tesela/keys)", or empty. */
static const char *place_of(const access_keys *k, const key_texts *texts, access_key key, char place[static PLACE_BYTES]) {
    place[0] = '\0';
    if (k->file && texts->line[key]) {
        snprintf(place, PLACE_BYTES, " (line %u of %.300s)", texts->line[key], k->file);
    }
    return place;
}

/* On error NULL, with the reason in `why`: a text is not a key, or two are the same (a read-only key equal to a full key would grant full
 * access). */
static access_ring *make_ring(const access_keys *k, const key_texts *texts, char why[static ACCESS_KEYS_WHY_BYTES]) {
    char place[PLACE_BYTES];
    access_ring *ring = access_ring_new();
    bool good = texts->text[ACCESS_KEY_PRIMARY][0] != '\0';
    if (!good) {
        snprintf(why, ACCESS_KEYS_WHY_BYTES, "there must be a primary key");
    }
    for (access_key key = ACCESS_KEY_PRIMARY; good && key < ACCESS_KEY_COUNT; key++) {
        slice text = slice_str(texts->text[key]);
        access_key other;
        if (text.n && access_ring_signs_alike(ring, text, &other)) {
            snprintf(why, ACCESS_KEYS_WHY_BYTES, "the %s key%s is the same as the %s key", access_key_names[key],
                     place_of(k, texts, key, place), access_key_names[other]);
            good = false;
        } else if (text.n && !access_ring_set(ring, key, text)) {
            snprintf(why, ACCESS_KEYS_WHY_BYTES, "the %s key%s is not a base64 text. 'openssl rand -base64 64' makes a good one",
                     access_key_names[key], place_of(k, texts, key, place));
            good = false;
        }
    }
    if (!good) {
        access_ring_free(ring);
        return NULL;
    }
    return ring;
}

static bool has_well_known(const access_ring *ring, access_key *key_out) {
    return access_ring_signs_alike(ring, slice_str(access_key_emulator), key_out);
}

/* Keys whose text has not changed are not derived again. */
static void derive_scram(const access_keys *k, const key_texts *texts, access_ring *ring, const access_ring *before) {
    if (!k->scram.user) {
        return;
    }
    access_scram_secrets *secrets = access_scram_secrets_new(&k->scram);
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        slice text = slice_str(texts->text[key]);
        if (text.n && before && slice_eq(text, slice_str(k->texts.text[key]))) {
            access_scram_secrets_copy(secrets, access_ring_scram(before), key);
        } else if (text.n) {
            access_scram_secrets_add(secrets, key, text);
        }
    }
    access_ring_give_scram(ring, secrets);
}

/* Like make_ring, but fails if a key is the emulator's and that is not allowed. */
static access_ring *make_checked_ring(const access_keys *k, const key_texts *texts, char why[static ACCESS_KEYS_WHY_BYTES]) {
    access_ring *ring = make_ring(k, texts, why);
    access_key known;
    if (!ring || !k->exposed || k->allow_well_known || !has_well_known(ring, &known)) {
        return ring;
    }
    snprintf(
        why, ACCESS_KEYS_WHY_BYTES,
        "the %s key is the emulator's, which everybody knows, and other machines can reach this server. 'openssl rand -base64 64' makes "
        "a good one; --allow-well-known-key takes this one all the same",
        access_key_names[known]);
    access_ring_free(ring);
    return NULL;
}

static void warn_of_well_known(const access_keys *k, const access_ring *ring) {
    access_key known;
    if (k->exposed && has_well_known(ring, &known)) {
        log_warn("keys", "the emulator's key is taken from other machines: whoever reaches the port may use it", "kind=%s",
                 access_key_names[known]);
    }
}

static void guard_pages(const access_keys *k, bool on) {
    if (k->server) {
        net_guard_turn(k->server, on);
    }
}

static void warn_of_short_keys(const key_texts *texts) {
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        size_t n = strlen(texts->text[key]);
        if (n && n < SHORT_KEY_CHARS) {
            log_warn("keys", "a key is short enough to be guessed", "kind=%s bytes=%zu", access_key_names[key], n * 3 / 4);
        }
    }
}

/* A replaced ring. A loop that still uses it does so only until its current callback returns: once every loop has run a task of ours, the
 * ring is unused. */
typedef struct retired retired;
typedef struct passing {
    net_task task; /* must be first */
    retired *of;
} passing;
struct retired {
    access_ring *ring;
    atomic_uint left;
    passing loops[];
};

static void loop_has_passed(net_task *task) {
    retired *r = ((passing *)task)->of;
    if (atomic_fetch_sub(&r->left, 1) == 1) {
        access_ring_free(r->ring);
        free(r);
    }
}

static void retire(access_keys *k, access_ring *ring) {
    unsigned n = k->server ? net_server_loops(k->server) : 0;
    if (n == 0) {
        access_ring_free(ring);
        return;
    }
    retired *r = mem_zero(sizeof *r + n * sizeof r->loops[0]);
    r->ring = ring;
    atomic_init(&r->left, n);
    for (unsigned i = 0; i < n; i++) {
        r->loops[i].task.run = loop_has_passed;
        r->loops[i].of = r;
    }
    for (unsigned i = 0; i < n; i++) { /* r may be freed after the last post */
        net_post(net_server_loop(k->server, i), &r->loops[i].task);
    }
}

/* The caller holds the lock. */
static void publish(access_keys *k, access_ring *ring, const key_texts *texts) {
    char changed[64] = "";
    size_t n = 0;
    access_key unused;
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        if (strcmp(texts->text[key], k->texts.text[key]) != 0) {
            n += (size_t)snprintf(changed + n, sizeof changed - n, "%s%s", n ? "," : "", access_key_names[key]);
        }
    }
    k->texts = *texts;
    warn_of_well_known(k, ring);
    bool guarded = has_well_known(ring, &unused);
    if (guarded) { /* before the ring can be used */
        guard_pages(k, true);
    }
    retire(k, atomic_exchange(&k->ring, ring));
    guard_pages(k, guarded);
    if (n) {
        atomic_fetch_add(&k->changes, 1);
    }
    log_info("keys", n ? "keys changed" : "keys read again, none changed", n ? "kinds=%s" : "%s", changed);
}

const access_ring *access_keys_ring(const access_keys *k) {
    return atomic_load_explicit(&k->ring, memory_order_acquire);
}

/* ---- the file ---- */

static bool refuse_file(char why[static ACCESS_KEYS_WHY_BYTES], const char *path, const char *reason) {
    snprintf(why, ACCESS_KEYS_WHY_BYTES, "the key file %.300s %s", path, reason);
    return false;
}

static bool fail_file(char why[static ACCESS_KEYS_WHY_BYTES], const char *path, const char *doing) {
    snprintf(why, ACCESS_KEYS_WHY_BYTES, "cannot %s the key file %.300s: %s", doing, path, strerror(errno));
    return false;
}

static bool refuse_line(char why[static ACCESS_KEYS_WHY_BYTES], const char *path, unsigned line, const char *reason) {
    snprintf(why, ACCESS_KEYS_WHY_BYTES, "line %u of the key file %.300s %s", line, path, reason);
    return false;
}

static bool parse_file(const char *path, slice content, key_texts *texts, char why[static ACCESS_KEYS_WHY_BYTES]) {
    unsigned n = 0;
    for (unsigned number = 1; content.n; number++) {
        const char *end = memchr(content.p, '\n', content.n);
        slice line = slice_of(content.p, end ? (size_t)(end - content.p) : content.n);
        content = slice_skip(content, line.n + (end != NULL));
        line = slice_trim(line);
        if (line.n == 0) {
            continue;
        }
        if (n == ACCESS_KEY_COUNT) {
            return refuse_line(why, path, number, "is a fifth key: there are four at most, one a line");
        }
        if (line.n >= ACCESS_KEY_TEXT_BYTES || memchr(line.p, '\0', line.n)) {
            return refuse_line(why, path, number, "is not a base64 key");
        }
        if (!slice_eq(line, SLICE_LIT("-"))) {
            memcpy(texts->text[n], line.p, line.n);
        }
        texts->line[n++] = number;
    }
    return n ? true : refuse_file(why, path, "must hold one to four base64 keys, one a line");
}

/* At the start any readable path is allowed, even a pipe. Later it must be a regular file, so that reading cannot block. */
static int open_file(const char *path, bool at_start, char why[static ACCESS_KEYS_WHY_BYTES]) {
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (at_start ? 0 : O_NONBLOCK));
    if (fd < 0 || fstat(fd, &is) != 0) {
        fail_file(why, path, "read");
    } else if (S_ISDIR(is.st_mode) || (!at_start && !S_ISREG(is.st_mode))) {
        refuse_file(why, path, "is not a file that can be read again");
    } else {
        if (S_ISREG(is.st_mode) && (is.st_mode & 077)) {
            log_warn("keys", "others may read the key file: chmod 600", "file=%s", path);
        }
        return fd;
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

static bool read_file(const char *path, bool at_start, key_texts *texts, char why[static ACCESS_KEYS_WHY_BYTES]) {
    char content[FILE_BYTES_MAX];
    size_t n = 0;
    ssize_t got = 0;
    int fd = open_file(path, at_start, why);
    if (fd < 0) {
        return false;
    }
    while (n < sizeof content && ((got = read(fd, content + n, sizeof content - n)) > 0 || (got < 0 && errno == EINTR))) {
        n += got > 0 ? (size_t)got : 0;
    }
    bool good = got < 0               ? fail_file(why, path, "read")
                : n == sizeof content ? refuse_file(why, path, "is too large")
                                      : parse_file(path, slice_of(content, n), texts, why);
    close(fd);
    OPENSSL_cleanse(content, sizeof content);
    return good;
}

static void write_lines(buf *out, const key_texts *texts) {
    unsigned n = ACCESS_KEY_COUNT;
    while (n && !texts->text[n - 1][0]) {
        n--;
    }
    for (unsigned i = 0; i < n; i++) {
        buf_addf(out, "%s\n", texts->text[i][0] ? texts->text[i] : "-");
    }
}

static bool sync_folder(const char *path) {
    char copy[PATH_BYTES];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

/* Writes a temporary file, syncs it and renames it over the key file, so that a reader finds either the old keys or the new ones. `path` is
 * not a link. */
static bool replace_file(const char *path, const key_texts *texts, char why[static ACCESS_KEYS_WHY_BYTES]) {
    char beside[PATH_BYTES], room[ACCESS_KEY_COUNT * ACCESS_KEY_TEXT_BYTES + 1];
    buf lines = {.p = room, .cap = sizeof room, .max = sizeof room};
    if ((size_t)snprintf(beside, sizeof beside, "%s.XXXXXX", path) >= sizeof beside) {
        errno = ENAMETOOLONG;
        return fail_file(why, path, "write");
    }
    int fd = mkostemp(beside, O_CLOEXEC); /* mode 0600 */
    if (fd < 0) {
        return fail_file(why, path, "write");
    }
    write_lines(&lines, texts);
    bool good = write(fd, lines.p, lines.n) == (ssize_t)lines.n && fsync(fd) == 0;
    good = close(fd) == 0 && good && rename(beside, path) == 0;
    if (!good) {
        fail_file(why, path, "write");
        unlink(beside);
    } else if (!sync_folder(path)) {
        log_warn("keys", "the key file's folder could not be synced", "file=%s reason=\"%s\"", path, strerror(errno));
    }
    OPENSSL_cleanse(room, sizeof room);
    return good;
}

/* ---- changing ---- */

/* If the path is a link, replaces the link's target, not the link. */
static bool replace_target(const char *path, const key_texts *texts, char why[static ACCESS_KEYS_WHY_BYTES]) {
    char *target = realpath(path, NULL);
    bool good = target ? replace_file(target, texts, why) : fail_file(why, path, "write");
    free(target);
    return good;
}

static bool make_key(char text[static ACCESS_KEY_TEXT_BYTES], char why[static ACCESS_KEYS_WHY_BYTES]) {
    unsigned char bytes[NEW_KEY_BYTES];
    buf out = {.p = text, .cap = ACCESS_KEY_TEXT_BYTES, .max = ACCESS_KEY_TEXT_BYTES};
    if (RAND_priv_bytes(bytes, sizeof bytes) != 1) {
        snprintf(why, ACCESS_KEYS_WHY_BYTES, "the system has no randomness to make a key of");
        return false;
    }
    base64_encode(&out, slice_of(bytes, sizeof bytes));
    text[out.n] = '\0';
    OPENSSL_cleanse(bytes, sizeof bytes);
    return true;
}

static bool refuse_source(const access_keys *k, char why[static ACCESS_KEYS_WHY_BYTES]) {
    snprintf(
        why, ACCESS_KEYS_WHY_BYTES,
        "%s: they stay as they are until a restart. Start it with --key-file FILE (the keys one a line, mode 0600) to change keys while "
        "it runs",
        k->source == ACCESS_KEYS_GIVEN ? "The keys were given as flags or environment variables"
                                       : "The server's keys are the emulator's, which everybody knows");
    return false;
}

/* Reloads the file; if `key` is not ACCESS_KEY_COUNT, with a new key, which is on disk before it becomes valid. */
static bool change(access_keys *k, access_key key, char why[static ACCESS_KEYS_WHY_BYTES]) {
    key_texts texts = {0};
    bool makes = key != ACCESS_KEY_COUNT;
    access_ring *ring = NULL;
    bool good = read_file(k->file, false, &texts, why) && (!makes || make_key(texts.text[key], why));
    ring = good ? make_checked_ring(k, &texts, why) : NULL;
    if (ring && makes && !replace_target(k->file, &texts, why)) {
        access_ring_free(ring);
        ring = NULL;
    }
    if (ring) {
        const access_ring *before = atomic_load(&k->ring);
        access_ring_follow(ring, before);
        derive_scram(k, &texts, ring, before);
        publish(k, ring, &texts);
        warn_of_short_keys(&texts);
    }
    OPENSSL_cleanse(&texts, sizeof texts);
    return ring != NULL;
}

/* The caller holds the lock. */
static bool change_or_warn(access_keys *k, access_key key, char why[static ACCESS_KEYS_WHY_BYTES]) {
    why[0] = '\0';
    bool good = k->source == ACCESS_KEYS_FILE ? change(k, key, why) : refuse_source(k, why);
    if (!good) {
        log_warn("keys", "keys stay as they are", "reason=\"%s\"", why);
    }
    return good;
}

static bool change_locked(access_keys *k, access_key key, char why[static ACCESS_KEYS_WHY_BYTES]) {
    pthread_mutex_lock(&k->lock);
    bool good = change_or_warn(k, key, why);
    pthread_mutex_unlock(&k->lock);
    return good;
}

bool access_keys_reload(access_keys *k, char why[static ACCESS_KEYS_WHY_BYTES]) {
    return change_locked(k, ACCESS_KEY_COUNT, why);
}

void access_keys_reload_soon(access_keys *k) {
    atomic_store(&k->asked, true);
}

void access_keys_tick(access_keys *k) {
    char why[ACCESS_KEYS_WHY_BYTES];
    if (!atomic_load_explicit(&k->asked, memory_order_relaxed) || pthread_mutex_trylock(&k->lock) != 0) {
        return;
    }
    atomic_store(&k->asked, false);
    (void)change_or_warn(k, ACCESS_KEY_COUNT, why);
    pthread_mutex_unlock(&k->lock);
}

bool access_keys_regenerate(access_keys *k, access_key key, char why[static ACCESS_KEYS_WHY_BYTES]) {
    return change_locked(k, key, why);
}

/* ---- queries ---- */

access_key_source access_keys_source(const access_keys *k) {
    return k->source;
}

const char *access_keys_file(const access_keys *k) {
    return k->file;
}

uint64_t access_keys_changes(const access_keys *k) {
    return atomic_load_explicit(&k->changes, memory_order_relaxed);
}

bool access_keys_text(access_keys *k, access_key key, char text_out[static ACCESS_KEY_TEXT_BYTES]) {
    pthread_mutex_lock(&k->lock);
    memcpy(text_out, k->texts.text[key], ACCESS_KEY_TEXT_BYTES);
    pthread_mutex_unlock(&k->lock);
    return text_out[0] != '\0';
}

/* ---- life ---- */

static bool read_given(const access_keys_options *options, key_texts *texts, char why[static ACCESS_KEYS_WHY_BYTES]) {
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        const char *text = options->given[key];
        if (text && strlen(text) >= ACCESS_KEY_TEXT_BYTES) {
            snprintf(why, ACCESS_KEYS_WHY_BYTES, "the %s key is too long: 256 bytes are the most", access_key_names[key]);
            return false;
        }
        memcpy(texts->text[key], text ? text : "", text ? strlen(text) : 0);
    }
    if (!options->given[ACCESS_KEY_PRIMARY]) {
        memcpy(texts->text[ACCESS_KEY_PRIMARY], access_key_emulator, strlen(access_key_emulator));
    }
    return true;
}

static void set_up_scram(access_keys *k, const access_keys_options *options) {
    enum { SALT_BYTES = 28 };
    if (options->scram_user && options->scram_kinds) {
        k->scram_user = mem_text(options->scram_user, strlen(options->scram_user));
        k->scram = (access_scram_setup){.user = k->scram_user,
                                        .any_user = options->scram_any_user,
                                        .kinds = options->scram_kinds,
                                        .salt_n = SALT_BYTES,
                                        .iterations = ACCESS_SCRAM_ITERATIONS};
        int random = RAND_bytes(k->scram.salt, SALT_BYTES);
        assert(random == 1);
    }
}

access_keys *access_keys_open(const access_keys_options *options, char why[static ACCESS_KEYS_WHY_BYTES]) {
    access_keys *k = mem_zero(sizeof *k);
    k->file = options->file ? mem_text(options->file, strlen(options->file)) : NULL;
    bool good = options->file ? read_file(options->file, true, &k->texts, why) : read_given(options, &k->texts, why);
    k->exposed = options->exposed;
    k->allow_well_known = options->allow_well_known;
    access_ring *ring = good ? make_checked_ring(k, &k->texts, why) : NULL;
    if (!ring) {
        free(k->file);
        OPENSSL_cleanse(k, sizeof *k);
        free(k);
        return NULL;
    }
    set_up_scram(k, options);
    derive_scram(k, &k->texts, ring, NULL);
    atomic_init(&k->ring, ring);
    k->source = options->file ? ACCESS_KEYS_FILE : options->given[ACCESS_KEY_PRIMARY] ? ACCESS_KEYS_GIVEN : ACCESS_KEYS_WELL_KNOWN;
    pthread_mutex_init(&k->lock, NULL);
    warn_of_short_keys(&k->texts);
    warn_of_well_known(k, ring);
    return k;
}

void access_keys_serve(access_keys *k, net_server *server) {
    access_key unused;
    k->server = server;
    guard_pages(k, has_well_known(access_keys_ring(k), &unused));
}

void access_keys_close(access_keys *k) {
    if (!k) {
        return;
    }
    pthread_mutex_destroy(&k->lock);
    access_ring_free(atomic_load(&k->ring));
    free(k->file);
    free(k->scram_user);
    OPENSSL_cleanse(k, sizeof *k);
    free(k);
}
