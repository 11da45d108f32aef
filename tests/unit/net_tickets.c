/* Session tickets: sessions resume with the current key and the previous one, but not with older ones. In memory, with a manual clock. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include <openssl/err.h>
#include <openssl/x509.h>

#include "net/tickets.h"

static clock_manual now;
static SSL_CTX *server, *client;

/* Sets a certificate, which the client does not verify. */
static void give_certificate(SSL_CTX *context) {
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    assert_true(key && cert);
    X509_set_version(cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    assert_true(X509_sign(cert, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(context, cert), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static int set_up(void **state) {
    (void)state;
    clock_manual_init(&now, 1800000000000);
    server = SSL_CTX_new(TLS_server_method());
    client = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(server, SSL_SESS_CACHE_OFF);
    give_certificate(server);
    return !net_tickets_use(server, &now.source);
}

static int tear_down(void **state) {
    (void)state;
    SSL_CTX_free(server);
    SSL_CTX_free(client);
    return 0;
}

/* Makes a handshake, and sends a byte from the server so that the client reads its tickets. The caller frees the session. */
static SSL_SESSION *connect_with(SSL_SESSION *session, int version, bool *reused_out) {
    SSL *s = SSL_new(server), *c = SSL_new(client);
    BIO *near, *far;
    char byte = 'x';
    assert_int_equal(BIO_new_bio_pair(&near, 0, &far, 0), 1);
    SSL_set_bio(s, near, near);
    SSL_set_bio(c, far, far);
    SSL_set_accept_state(s);
    SSL_set_connect_state(c);
    SSL_set_min_proto_version(c, version);
    SSL_set_max_proto_version(c, version);
    if (session) {
        SSL_set_session(c, session);
    }
    for (int i = 0; i < 20 && !(SSL_is_init_finished(s) && SSL_is_init_finished(c)); i++) {
        SSL_do_handshake(c);
        SSL_do_handshake(s);
    }
    assert_true(SSL_is_init_finished(s) && SSL_is_init_finished(c));
    assert_int_equal(SSL_write(s, &byte, 1), 1);
    assert_int_equal(SSL_read(c, &byte, 1), 1);
    *reused_out = SSL_session_reused(c);
    SSL_SESSION *made = SSL_get1_session(c);
    SSL_shutdown(c);
    SSL_shutdown(s);
    SSL_free(s);
    SSL_free(c);
    return made;
}

static bool resumes(SSL_SESSION *session, int version) {
    bool reused;
    SSL_SESSION_free(connect_with(session, version, &reused));
    return reused;
}

static void check_version(int version) {
    bool reused;
    SSL_SESSION *session = connect_with(NULL, version, &reused);
    assert_false(reused);
    assert_true(resumes(session, version));
    clock_manual_advance(&now, (NET_TICKETS_CHANGE_S - 1) * (int64_t)1000);
    assert_true(resumes(session, version));
    clock_manual_advance(&now, 1000);
    SSL_SESSION *exchanged = connect_with(session, version, &reused); /* sealed with the previous key */
    assert_true(reused);
    clock_manual_advance(&now, NET_TICKETS_CHANGE_S * (int64_t)1000);
    assert_false(resumes(session, version));
    assert_true(resumes(exchanged, version));
    clock_manual_advance(&now, 2 * NET_TICKETS_CHANGE_S * (int64_t)1000); /* no connections meanwhile */
    assert_false(resumes(exchanged, version));
    SSL_SESSION_free(session);
    SSL_SESSION_free(exchanged);
}

static void keys_change_for_tls_1_3(void **state) {
    (void)state;
    check_version(TLS1_3_VERSION);
}

static void keys_change_for_tls_1_2(void **state) {
    (void)state;
    check_version(TLS1_2_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_change_for_tls_1_3, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keys_change_for_tls_1_2, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("net_tickets", tests, NULL, NULL);
}
