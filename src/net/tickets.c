#include "net/tickets.h"

#include <openssl/core_names.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { NAME_BYTES = 16, IV_BYTES = 16 };

typedef struct ticket_key {
    unsigned char name[NAME_BYTES], cipher[32], mac[32];
} ticket_key;

typedef struct tickets {
    const clock_source *clock;
    pthread_mutex_t lock;
    int64_t changed_us;
    ticket_key now, before; /* `before` is random too until the first change, so no ticket matches it */
} tickets;

static int slot = -1; /* index of our data in an SSL_CTX */

static bool make_key(ticket_key *key) {
    return RAND_bytes(key->name, sizeof key->name) == 1 && RAND_priv_bytes(key->cipher, sizeof key->cipher) == 1 &&
           RAND_priv_bytes(key->mac, sizeof key->mac) == 1;
}

/* Call with the lock held. After a long silence both keys have expired, and both are replaced. */
static bool change_if_due(tickets *t) {
    int64_t now_us = clock_monotonic_us(t->clock), age_s = (now_us - t->changed_us) / 1000000;
    ticket_key made;
    if (age_s < NET_TICKETS_CHANGE_S) {
        return true;
    }
    if (!make_key(&made) || (age_s >= 2 * NET_TICKETS_CHANGE_S && !make_key(&t->now))) {
        return false;
    }
    t->before = t->now;
    t->now = made;
    t->changed_us = now_us;
    OPENSSL_cleanse(&made, sizeof made);
    return true;
}

/* Finds the key to seal with, or the one that a ticket was sealed with. 1: the current one; 2: the previous one, so that a new ticket is
 * due; 0: not one of ours; -1: an error. */
static int find_key(tickets *t, bool seals, const unsigned char *name, ticket_key *key_out) {
    int found = -1;
    pthread_mutex_lock(&t->lock);
    if (change_if_due(t)) {
        bool is_now = seals || memcmp(name, t->now.name, NAME_BYTES) == 0;
        found = is_now ? 1 : memcmp(name, t->before.name, NAME_BYTES) == 0 ? 2 : 0;
        *key_out = is_now ? t->now : t->before;
    }
    pthread_mutex_unlock(&t->lock);
    return found;
}

static bool start_mac(EVP_MAC_CTX *mac, ticket_key *key) {
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac, sizeof key->mac),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

static bool start_cipher(EVP_CIPHER_CTX *cipher, const ticket_key *key, unsigned char *name, unsigned char *iv, bool seals) {
    if (!seals) {
        return EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv) == 1;
    }
    memcpy(name, key->name, NAME_BYTES);
    return RAND_bytes(iv, IV_BYTES) == 1 && EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), NULL, key->cipher, iv) == 1;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int seals) {
    tickets *t = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), slot);
    ticket_key key;
    int found = t ? find_key(t, seals, name, &key) : -1;
    if (found <= 0) {
        return found;
    }
    bool good = start_mac(mac, &key) && start_cipher(cipher, &key, name, iv, seals);
    OPENSSL_cleanse(&key, sizeof key);
    return good ? found : -1;
}

static void free_tickets(void *parent, void *data, CRYPTO_EX_DATA *all, int index, long number, void *pointer) {
    (void)parent, (void)all, (void)index, (void)number, (void)pointer;
    tickets *t = data;
    if (t) {
        pthread_mutex_destroy(&t->lock);
        OPENSSL_cleanse(t, sizeof *t);
        free(t);
    }
}

static void make_slot(void) {
    slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_tickets);
}

bool net_tickets_use(SSL_CTX *context, const clock_source *clock) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_slot);
    tickets *t = mem_zero(sizeof *t);
    t->clock = clock;
    t->changed_us = clock_monotonic_us(clock);
    pthread_mutex_init(&t->lock, NULL);
    if (slot < 0 || !make_key(&t->now) || !make_key(&t->before) || SSL_CTX_set_ex_data(context, slot, t) != 1) {
        free_tickets(NULL, t, NULL, 0, 0, NULL);
        return false;
    }
    SSL_CTX_set_timeout(context, NET_TICKETS_CHANGE_S);
    return SSL_CTX_set_tlsext_ticket_key_evp_cb(context, on_ticket) == 1;
}
