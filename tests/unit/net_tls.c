/* TLS and plain text on one port, and the certificate that a server makes for itself. */
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "net_harness.h"

#include "net/tls.h"

static char folder[64];
static SSL_CTX *trusting; /* a client that trusts the server's certificate and nothing else */

static harness *start_with(const clock_source *clock) {
    char why[256] = "";
    net_options o = harness_options();
    o.header_timeout_ms = 500;
    o.untrusted_timeout_ms = 500;
    o.clock = clock;
    harness *h = harness_open(&o);
    if (net_tls(h->server, folder, NULL, NULL, why, sizeof why) != OK) {
        fail_msg("%s", why);
    }
    return h;
}

static const char *path_of(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int setup(void **state) {
    snprintf(folder, sizeof folder, "%s", "/tmp/tesela-net-XXXXXX");
    assert_non_null(mkdtemp(folder));
    harness *h = start_with(&clock_system);
    harness_run(h);
    trusting = SSL_CTX_new(TLS_client_method());
    assert_int_equal(SSL_CTX_load_verify_file(trusting, path_of("tls-cert.pem")), 1);
    SSL_CTX_set_verify(trusting, SSL_VERIFY_PEER, NULL);
    *state = h;
    return 0;
}

static int teardown(void **state) {
    harness_close(*state);
    SSL_CTX_free(trusting);
    unlink(path_of("tls-cert.pem"));
    unlink(path_of("tls-key.pem"));
    return rmdir(folder);
}

static client tls_open(const harness *h, int family, const char *name) {
    client c = {.fd = client_socket(h, family), .in = buf_init(BUF_NO_LIMIT), .ssl = SSL_new(trusting)};
    assert_true(c.fd >= 0);
    SSL_set_fd(c.ssl, c.fd);
    X509_VERIFY_PARAM *verify = SSL_get0_param(c.ssl);
    if (strchr("0123456789:", name[0])) {
        assert_int_equal(X509_VERIFY_PARAM_set1_ip_asc(verify, name), 1);
    } else {
        assert_int_equal(SSL_set1_host(c.ssl, name), 1);
    }
    if (SSL_connect(c.ssl) != 1) {
        fail_msg("handshake: %s", ERR_error_string(ERR_peek_last_error(), NULL));
    }
    return c;
}

static void serves_tls_beside_plain_text(void **state) {
    static const struct {
        int family;
        const char *name;
    } ways[] = {{AF_INET, "localhost"}, {AF_INET, "127.0.0.1"}, {AF_INET6, "::1"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int probe = client_socket(*state, ways[i].family);
        if (probe < 0 && ways[i].family == AF_INET6) { /* the machine has no IPv6 */
            continue;
        }
        close(probe);
        client c = tls_open(*state, ways[i].family, ways[i].name);
        client plain = client_open(*state);
        for (int round = 0; round < 3; round++) {
            client_send(&c, "POST /echo?tls HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
            client_send(&plain, "GET /later?plain HTTP/1.1\r\nHost: h\r\n\r\n");
            expect_response(&c, 200, "POST /echo?tls host=h a= b= body=hi");
            expect_response(&plain, 200, "GET /later?plain host=h a= b= body=");
        }
        client_close(&c);
        client_close(&plain);
    }
}

static void pipelines_and_defers(void **state) {
    client c = tls_open(*state, AF_INET, "localhost");
    buf b = buf_init(BUF_NO_LIMIT);
    for (int i = 0; i < 100; i++) {
        buf_addf(&b, "GET %s?%d HTTP/1.1\r\nHost: h\r\n\r\n", i % 5 ? "/echo" : "/later", i);
    }
    assert_true(client_try_send(&c, b.p, b.n));
    for (int i = 0; i < 100; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "GET %s?%d host=h a= b= body=", i % 5 ? "/echo" : "/later", i);
        expect_response(&c, 200, expected);
    }
    buf_free(&b);
    client_close(&c);
}

static void large_both_ways(void **state) {
    enum { BYTES = 3 * 1000 * 1000 };
    client c = tls_open(*state, AF_INET, "localhost");
    char *body = mem_alloc(BYTES), head[128];
    for (size_t i = 0; i < BYTES; i++) {
        body[i] = (char)('a' + i % 25);
    }
    snprintf(head, sizeof head, "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", BYTES);
    for (int round = 0; round < 2; round++) {
        client_send(&c, head);
        assert_true(client_try_send(&c, body, BYTES));
        response r = client_response(&c, false);
        const char *prefix = "POST /echo? host=h a= b= body=";
        assert_int_equal(r.body.n, strlen(prefix) + BYTES);
        assert_memory_equal(r.body.p + strlen(prefix), body, BYTES);
        buf_free(&r.body);
    }
    free(body);
    client_close(&c);
}

static void says_goodbye(void **state) {
    client c = tls_open(*state, AF_INET, "localhost");
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    expect_response(&c, 200, NULL);
    char byte;
    int rc = SSL_read(c.ssl, &byte, 1);
    assert_int_equal(SSL_get_error(c.ssl, rc), SSL_ERROR_ZERO_RETURN); /* a close_notify, not a reset */
    client_close(&c);
    /* and the other way round: the client's close_notify ends the connection */
    c = tls_open(*state, AF_INET, "localhost");
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, NULL);
    SSL_shutdown(c.ssl);
    rc = SSL_read(c.ssl, &byte, 1);
    assert_int_equal(SSL_get_error(c.ssl, rc), SSL_ERROR_ZERO_RETURN);
    client_close(&c);
}

static void byte_by_byte(void **state) {
    client c = tls_open(*state, AF_INET, "localhost");
    static const char request[] = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"; /* sent as one record per byte */
    for (size_t i = 0; i < sizeof request - 1; i++) {
        assert_true(client_try_send(&c, request + i, 1));
    }
    expect_response(&c, 200, "POST /echo? host=h a= b= body=hi");
    client_close(&c);
}

static void resumes_sessions(void **state) {
    client c = tls_open(*state, AF_INET, "localhost");
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, NULL);
    SSL_SESSION *session = SSL_get1_session(c.ssl);
    SSL_shutdown(c.ssl);
    client_close(&c);
    c = (client){.fd = client_socket(*state, AF_INET), .in = buf_init(BUF_NO_LIMIT), .ssl = SSL_new(trusting)};
    SSL_set_fd(c.ssl, c.fd);
    SSL_set_session(c.ssl, session);
    assert_int_equal(SSL_connect(c.ssl), 1);
    assert_true(SSL_session_reused(c.ssl));
    client_send(&c, "GET /echo HTTP/1.1\r\nHost: h\r\n\r\n");
    expect_response(&c, 200, NULL);
    SSL_SESSION_free(session);
    client_close(&c);
}

static void negotiates(void **state) {
    static const struct {
        int version;
        bool ok;
    } versions[] = {{TLS1_1_VERSION, false}, {TLS1_2_VERSION, true}, {TLS1_3_VERSION, true}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        client c = {.fd = client_socket(*state, AF_INET), .in = buf_init(BUF_NO_LIMIT), .ssl = SSL_new(trusting)};
        SSL_set_security_level(c.ssl, 0);
        SSL_set_min_proto_version(c.ssl, versions[i].version);
        SSL_set_max_proto_version(c.ssl, versions[i].version);
        SSL_set_alpn_protos(c.ssl, (const unsigned char *)"\x02h2\x08http/1.1", 12);
        SSL_set_fd(c.ssl, c.fd);
        assert_int_equal(SSL_connect(c.ssl) == 1, versions[i].ok);
        if (versions[i].ok) {
            const unsigned char *chosen;
            unsigned n;
            SSL_get0_alpn_selected(c.ssl, &chosen, &n);
            assert_int_equal(n, 2);
            assert_memory_equal(chosen, "h2", 2);
        }
        client_close(&c);
    }
}

static void broken_and_silent_handshakes_end(void **state) {
    harness *h = *state;
    client garbage = client_open(h), silent = client_open(h), torn = client_open(h);
    assert_true(client_try_send(&garbage, "\x16\x03\x01\x00\x05hello GET / HTTP/1.1\r\n\r\n", 30));
    assert_true(client_try_send(&silent, "\x16\x03\x01", 3));
    assert_true(client_try_send(&torn, "\x16\x03", 2));
    shutdown(torn.fd, SHUT_WR);
    while (client_more(&garbage)) { /* there may be an alert */
    }
    while (client_more(&torn)) {
    }
    int64_t begin = now_ms();
    assert_true(client_ended(&silent));
    assert_true(now_ms() - begin < 3000);
    client_close(&garbage);
    client_close(&silent);
    client_close(&torn);
    AWAIT(net_server_connections(h->server) == 0);
    expect_alive(h);
}

/* A ClientHello that comes byte by byte, and never completely, does not extend its deadline with each byte. */
static void dribbled_handshakes_end(void **state) {
    harness *h = *state;
    client slow = client_open(h);
    static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03 a long random value that is never to be sent whole";
    int64_t begin = now_ms();
    size_t sent = 0;
    while (sent < sizeof hello - 1 && client_try_send(&slow, hello + sent, 1)) {
        sent++;
        usleep(50 * 1000);
    }
    assert_true(sent < sizeof hello - 1); /* the server closed the connection */
    assert_true(now_ms() - begin < 3000);
    client_close(&slow);
    AWAIT(net_server_connections(h->server) == 0);
    expect_alive(h);
}

/* ---- the certificate ---- */

static void load(const char *name, struct stat *is, char serial[static 100]) {
    FILE *file = fopen(path_of(name), "r");
    assert_non_null(file);
    fstat(fileno(file), is);
    X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
    serial[0] = 0;
    if (cert) {
        char *hex = i2s_ASN1_INTEGER(NULL, X509_get_serialNumber(cert));
        snprintf(serial, 100, "%s", hex);
        OPENSSL_free(hex);
    }
    X509_free(cert);
    fclose(file);
}

static void the_certificate_is_kept_and_renewed(void **state) {
    struct stat is;
    char first[100], again[100], renewed[100];
    load("tls-cert.pem", &is, first);
    assert_int_equal(is.st_mode & 0777, 0600);
    load("tls-key.pem", &is, again);
    assert_int_equal(is.st_mode & 0777, 0600);
    slice pem = net_tls_certificate(((harness *)*state)->server);
    assert_true(slice_starts(pem, SLICE_LIT("-----BEGIN CERTIFICATE-----")));
    assert_null(memmem(pem.p, pem.n, "PRIVATE", 7));

    clock_manual later;
    clock_manual_init(&later, clock_wall_ms(&clock_system) + (int64_t)700 * 24 * 3600 * 1000);
    harness_close(start_with(&later.source));
    load("tls-cert.pem", &is, again);
    assert_string_equal(again, first);
    clock_manual_advance(&later, (int64_t)100 * 24 * 3600 * 1000); /* it expires in 25 days */
    harness_close(start_with(&later.source));
    load("tls-cert.pem", &is, renewed);
    assert_string_not_equal(renewed, first);

    FILE *file = fopen(path_of("tls-key.pem"), "w"); /* a torn key file does not prevent a start */
    fputs("-----BEGIN PRIVATE KEY-----\nAAAA", file);
    fclose(file);
    harness_close(start_with(&clock_system));
    load("tls-cert.pem", &is, again);
    assert_string_not_equal(again, renewed);
}

static bool certificate_is_for(const char *names, const char *host, const char *address) {
    char why[256] = "";
    net_options o = harness_options();
    o.certificate_names = names;
    harness *h = harness_open(&o);
    assert_int_equal(net_tls(h->server, folder, NULL, NULL, why, sizeof why), OK);
    harness_close(h);
    FILE *file = fopen(path_of("tls-cert.pem"), "r");
    X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    bool is = X509_check_host(cert, host, 0, 0, NULL) == 1 && X509_check_ip_asc(cert, address, 0) == 1 &&
              X509_check_host(cert, "localhost", 0, 0, NULL) == 1;
    X509_free(cert);
    return is;
}

static void the_certificate_is_for_further_names(void **state) {
    (void)state;
    struct stat is;
    char made[100], again[100];
    assert_false(certificate_is_for(NULL, "db.example", "10.0.0.7"));
    assert_true(certificate_is_for("db.example, 10.0.0.7,2001:db8::7", "db.example", "2001:db8::7"));
    load("tls-cert.pem", &is, made);
    assert_true(certificate_is_for("10.0.0.7", "db.example", "10.0.0.7")); /* the certificate has these names already, and is kept */
    load("tls-cert.pem", &is, again);
    assert_string_equal(again, made);
    assert_true(certificate_is_for("other.example,10.0.0.8", "other.example", "10.0.0.8"));
}

static void given_files_are_used_or_complained_about(void **state) {
    (void)state;
    char why[256] = "", cert[128], key[128];
    snprintf(cert, sizeof cert, "%s", path_of("tls-cert.pem"));
    snprintf(key, sizeof key, "%s", path_of("tls-key.pem"));
    net_options o = harness_options();
    harness *h = harness_open(&o);
    assert_int_equal(net_tls_certificate(h->server).n, 0);
    assert_int_equal(net_tls(h->server, NULL, cert, key, why, sizeof why), OK);
    assert_int_not_equal(net_tls(h->server, NULL, cert, NULL, why, sizeof why), OK);
    assert_non_null(strstr(why, "together"));
    assert_int_not_equal(net_tls(h->server, NULL, cert, cert, why, sizeof why), OK);
    assert_non_null(strstr(why, "tls-cert.pem"));
    assert_int_not_equal(net_tls(h->server, NULL, "/nonexistent", key, why, sizeof why), OK);
    assert_non_null(strstr(why, "/nonexistent"));
    assert_int_not_equal(net_tls(h->server, "/nonexistent", NULL, NULL, why, sizeof why), OK);
    assert_non_null(strstr(why, "No such file"));
    harness_close(h);
}

/* ---- TLS or another protocol ---- */

/* The first bytes that an OpenSSL client sends, for each version that the server accepts. */
static buf hello_of(int version) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(context, version);
    SSL_CTX_set_max_proto_version(context, version);
    SSL *ssl = SSL_new(context);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL_set_bio(ssl, in, out);
    SSL_connect(ssl);
    buf hello = buf_init(BUF_NO_LIMIT);
    char *p;
    long n = BIO_get_mem_data(out, &p);
    buf_add(&hello, p, (size_t)n);
    SSL_free(ssl);
    SSL_CTX_free(context);
    return hello;
}

static void first_bytes_tell_tls(void **state) {
    (void)state;
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        buf hello = hello_of(version);
        assert_true(hello.n > NET_TLS_HELLO_BYTES);
        for (size_t n = 0; n < NET_TLS_HELLO_BYTES; n++) {
            assert_int_equal(net_tls_guess_of(hello.p, n), NET_TLS_UNSURE);
        }
        assert_int_equal(net_tls_guess_of(hello.p, NET_TLS_HELLO_BYTES), NET_TLS_YES);
        assert_int_equal(net_tls_guess_of(hello.p, hello.n), NET_TLS_YES);
        buf_free(&hello);
    }
    assert_int_equal(net_tls_guess_of("GET / HTTP/1.1", 14), NET_TLS_NO);
    assert_int_equal(net_tls_guess_of("\x04\x00\x00\x00\x05", 5), NET_TLS_NO); /* CQL's OPTIONS */
}

/* A MongoDB message begins with its length, the request's number and a zero (responseTo), all little-endian. None is mistaken for TLS,
 * whatever its length and number. */
static void no_mongo_message_is_taken_for_tls(void **state) {
    (void)state;
    static const uint32_t numbers[] = {0, 1, 0x0100, 0x01ff, 0x40010006, 0x2a0100ff, 0x2a01ff00, UINT32_MAX};
    for (uint32_t length = 0x16; length <= 48000000; length += 0x100) { /* the first byte is always 16 (hexadecimal) */
        for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
            char bytes[16] = {0};
            memcpy(bytes, &length, 4);
            memcpy(bytes + 4, &numbers[i], 4);
            assert_int_equal(net_tls_guess_of(bytes, sizeof bytes), NET_TLS_NO);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_tls_beside_plain_text),
        cmocka_unit_test(pipelines_and_defers),
        cmocka_unit_test(large_both_ways),
        cmocka_unit_test(says_goodbye),
        cmocka_unit_test(byte_by_byte),
        cmocka_unit_test(resumes_sessions),
        cmocka_unit_test(negotiates),
        cmocka_unit_test(broken_and_silent_handshakes_end),
        cmocka_unit_test(dribbled_handshakes_end),
        cmocka_unit_test(the_certificate_is_kept_and_renewed),
        cmocka_unit_test(given_files_are_used_or_complained_about),
        cmocka_unit_test(the_certificate_is_for_further_names),
        cmocka_unit_test(first_bytes_tell_tls),
        cmocka_unit_test(no_mongo_message_is_taken_for_tls),
    };
    return cmocka_run_group_tests_name("net/tls", tests, setup, teardown);
}
