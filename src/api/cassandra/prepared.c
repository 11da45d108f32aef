#include "api/cassandra/prepared.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "base/memory.h"

enum { BUCKETS = 4096, KEPT_MAX = 16384, BYTES_MAX = 128 * 1024 * 1024 };

struct cass_prepares {
    pthread_mutex_t lock;
    cass_prepared *buckets[BUCKETS];
    size_t n, bytes;
    uint64_t clock;
};

cass_prepares *cass_prepares_new(void) {
    cass_prepares *p = mem_zero(sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void cass_prepared_give(cass_prepared *p) {
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) {
        if (p->table) {
            cass_table_give(p->table);
        }
        arena_free(&p->arena);
        free(p);
    }
}

void cass_prepares_free(cass_prepares *p) {
    for (size_t i = 0; i < BUCKETS; i++) {
        for (cass_prepared *each = p->buckets[i], *next; each; each = next) {
            next = each->next;
            cass_prepared_give(each);
        }
    }
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Ids are MD5 sums as Cassandra's are: short, and the same on every server and after a restart. */
void cass_prepared_id(slice keyspace, slice text, uint8_t id_out[CASS_ID_BYTES]) {
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    unsigned n = CASS_ID_BYTES;
    EVP_DigestInit_ex(md, EVP_md5(), NULL);
    EVP_DigestUpdate(md, keyspace.n ? keyspace.p : "", keyspace.n);
    EVP_DigestUpdate(md, "", 1);
    EVP_DigestUpdate(md, text.n ? text.p : "", text.n);
    EVP_DigestFinal_ex(md, id_out, &n);
    EVP_MD_CTX_free(md);
}

static cass_prepared **bucket_of(cass_prepares *p, const void *id) {
    uint32_t first;
    memcpy(&first, id, sizeof first);
    return &p->buckets[first % BUCKETS];
}

cass_prepared *cass_prepared_find(cass_prepares *p, slice id) {
    cass_prepared *found = NULL;
    if (id.n != CASS_ID_BYTES) {
        return NULL;
    }
    pthread_mutex_lock(&p->lock);
    for (found = *bucket_of(p, id.p); found && memcmp(found->id, id.p, CASS_ID_BYTES) != 0;) {
        found = found->next;
    }
    if (found) {
        found->used = ++p->clock;
        atomic_fetch_add_explicit(&found->refs, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&p->lock);
    return found;
}

static void take_out(cass_prepares *p, const void *id) {
    for (cass_prepared **at = bucket_of(p, id); *at; at = &(*at)->next) {
        if (memcmp((*at)->id, id, CASS_ID_BYTES) == 0) {
            cass_prepared *old = *at;
            *at = old->next;
            p->n--;
            p->bytes -= old->arena.held;
            cass_prepared_give(old);
            return;
        }
    }
}

/* Half of the statements, those not used for longest, make room. */
static void push_out(cass_prepares *p) {
    uint64_t limit = p->clock > KEPT_MAX / 2 ? p->clock - KEPT_MAX / 2 : 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        for (cass_prepared **at = &p->buckets[i]; *at;) {
            cass_prepared *each = *at;
            if (each->used < limit || p->n >= KEPT_MAX || p->bytes >= BYTES_MAX / 2) {
                *at = each->next;
                p->n--;
                p->bytes -= each->arena.held;
                cass_prepared_give(each);
            } else {
                at = &each->next;
            }
        }
    }
}

void cass_prepared_keep(cass_prepares *p, cass_prepared *made) {
    pthread_mutex_lock(&p->lock);
    take_out(p, made->id);
    if (p->n >= KEPT_MAX || p->bytes + made->arena.held > BYTES_MAX) {
        push_out(p);
    }
    cass_prepared **b = bucket_of(p, made->id);
    atomic_fetch_add_explicit(&made->refs, 1, memory_order_relaxed);
    made->used = ++p->clock;
    made->next = *b;
    *b = made;
    p->n++;
    p->bytes += made->arena.held;
    pthread_mutex_unlock(&p->lock);
}

void cass_prepared_forget(cass_prepares *p, const cass_prepared *old) {
    pthread_mutex_lock(&p->lock);
    take_out(p, old->id);
    pthread_mutex_unlock(&p->lock);
}
