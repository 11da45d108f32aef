#include "access/attempts.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"

enum { WAYS = 4, SETS = ATTEMPTS_ADDRESSES / WAYS };

/* Failures of one address since it was last logged. */
typedef struct seen {
    bool used;
    uint8_t address[16]; /* for IPv6 only the network */
    int64_t since_s;
    uint64_t counts[ATTEMPT_COUNT];
} seen;

struct access_attempts {
    const clock_source *clock;
    uint64_t seed; /* keeps clients from choosing addresses that collide in one set */
    atomic_uint_fast64_t totals[ATTEMPT_COUNT];
    pthread_mutex_t lock;
    int64_t ticked_s;
    seen addresses[SETS][WAYS];
    seen others;
};

const char *const access_attempt_names[ATTEMPT_COUNT] = {"missing", "malformed", "wrong"};

static bool kind_of(err code, access_attempt *kind_out) {
    *kind_out = code == E_NO_AUTHORIZATION ? ATTEMPT_MISSING : code == E_BAD_AUTHORIZATION ? ATTEMPT_MALFORMED : ATTEMPT_WRONG;
    return code == E_NO_AUTHORIZATION || code == E_BAD_AUTHORIZATION || code == E_UNAUTHORIZED;
}

/* ---- logging ---- */

static void address_text(const seen *s, const access_attempts *a, char text[static INET6_ADDRSTRLEN + 4]) {
    struct in6_addr address;
    memcpy(address.s6_addr, s->address, 16);
    if (s == &a->others) {
        snprintf(text, INET6_ADDRSTRLEN + 4, "others");
    } else if (IN6_IS_ADDR_V4MAPPED(&address)) {
        inet_ntop(AF_INET, s->address + 12, text, INET6_ADDRSTRLEN);
    } else {
        inet_ntop(AF_INET6, s->address, text, INET6_ADDRSTRLEN);
        size_t n = strlen(text);
        snprintf(text + n, INET6_ADDRSTRLEN + 4 - n, IN6_IS_ADDR_LOOPBACK(&address) ? "" : "/64");
    }
}

static void tell(const access_attempts *a, const seen *s, int64_t now_s) {
    char text[INET6_ADDRSTRLEN + 4];
    address_text(s, a, text);
    uint64_t missing = s->counts[ATTEMPT_MISSING], malformed = s->counts[ATTEMPT_MALFORMED], wrong = s->counts[ATTEMPT_WRONG];
    log_warn("auth", "requests refused (401)", "address=%s count=%lu missing=%lu malformed=%lu wrong=%lu seconds=%ld", text,
             (unsigned long)(missing + malformed + wrong), (unsigned long)missing, (unsigned long)malformed, (unsigned long)wrong,
             (long)(now_s - s->since_s));
}

static bool counted(const seen *s) {
    return s->counts[ATTEMPT_MISSING] || s->counts[ATTEMPT_MALFORMED] || s->counts[ATTEMPT_WRONG];
}

static void begin_again(seen *s, int64_t now_s) {
    memset(s->counts, 0, sizeof s->counts);
    s->since_s = now_s;
}

/* Logs the interval's count. An address without failures in a whole interval frees its entry. */
static void end_interval(const access_attempts *a, seen *s, int64_t now_s) {
    if (s->used && now_s - s->since_s >= ATTEMPTS_INTERVAL_S) {
        s->used = counted(s);
        if (s->used) {
            tell(a, s, now_s);
        }
        begin_again(s, now_s);
    }
}

/* ---- counting ---- */

static uint64_t mix(const access_attempts *a, const uint8_t address[static 16]) {
    uint64_t halves[2];
    memcpy(halves, address, sizeof halves);
    uint64_t h = (a->seed ^ halves[0]) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 32 ^ halves[1]) * 0xD6E8FEB86659FD93u;
    return h ^ h >> 32;
}

/* The address's entry, a free entry, or the shared entry for all others. */
static seen *find(access_attempts *a, const uint8_t address[static 16]) {
    seen *set = a->addresses[mix(a, address) % SETS], *unused = NULL;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].used && memcmp(set[i].address, address, 16) == 0) {
            return &set[i];
        }
        unused = set[i].used ? unused : &set[i];
    }
    return unused ? unused : &a->others;
}

static void network_of(const uint8_t address[static 16], uint8_t network[static 16]) {
    struct in6_addr whole;
    memcpy(whole.s6_addr, address, 16);
    memcpy(network, address, 16);
    if (!IN6_IS_ADDR_V4MAPPED(&whole) && !IN6_IS_ADDR_LOOPBACK(&whole)) {
        memset(network + 8, 0, 8);
    }
}

void access_attempts_note(access_attempts *a, const uint8_t address[static 16], err code) {
    access_attempt kind;
    uint8_t network[16];
    if (!kind_of(code, &kind)) {
        return;
    }
    atomic_fetch_add_explicit(&a->totals[kind], 1, memory_order_relaxed);
    network_of(address, network);
    int64_t now_s = clock_wall_ms(a->clock) / 1000;
    pthread_mutex_lock(&a->lock);
    seen *s = find(a, network);
    bool first = !s->used;
    if (first) {
        *s = (seen){.used = true, .since_s = now_s};
        memcpy(s->address, network, 16);
    }
    s->counts[kind]++;
    if (first) {
        tell(a, s, now_s);
        begin_again(s, now_s);
    }
    pthread_mutex_unlock(&a->lock);
}

uint64_t access_attempts_total(const access_attempts *a, access_attempt kind) {
    return atomic_load_explicit(&a->totals[kind], memory_order_relaxed);
}

/* ---- life ---- */

static void for_each(access_attempts *a, int64_t now_s, void (*each)(const access_attempts *, seen *, int64_t)) {
    for (unsigned i = 0; i < SETS * WAYS; i++) {
        each(a, &a->addresses[i / WAYS][i % WAYS], now_s);
    }
    each(a, &a->others, now_s);
}

void access_attempts_tick(access_attempts *a) {
    int64_t now_s = clock_wall_ms(a->clock) / 1000;
    if (now_s == a->ticked_s) {
        return;
    }
    a->ticked_s = now_s;
    pthread_mutex_lock(&a->lock);
    for_each(a, now_s, end_interval);
    pthread_mutex_unlock(&a->lock);
}

static void tell_last(const access_attempts *a, seen *s, int64_t now_s) {
    if (s->used && counted(s)) {
        tell(a, s, now_s);
    }
}

access_attempts *access_attempts_new(const clock_source *clock) {
    access_attempts *a = mem_zero(sizeof *a);
    random_source system;
    random_seed_system(&system);
    a->clock = clock;
    a->seed = random_u64(&system);
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

void access_attempts_free(access_attempts *a) {
    if (a) {
        for_each(a, clock_wall_ms(a->clock) / 1000, tell_last);
        pthread_mutex_destroy(&a->lock);
        free(a);
    }
}
