/* Who may do what, and over what connection: TLS with the server's own certificate, keys that are wrong or may only read, resource tokens.
 */
#include "harness.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "rest.h"

#define READ_ONLY_KEY "cmVhZC1vbmx5LWtleS1vZi10aGUtdGVzdHMtb2YtbGlidGVzZWxhLTAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nw=="
#define WRONG_KEY "d3Jvbmcta2V5LW9mLXRoZS10ZXN0cy1vZi1saWJ0ZXNlbGEtMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYg=="

static char secure[sizeof endpoint + 8]; /* the same port by https */
static tesela_key ana, bob;

static tesela_status read_with(const tesela_client_options *options) {
    tesela_client *c;
    tesela_container *k;
    ok(tesela_client_open(options, &c, &error));
    ok(tesela_container_open(c, "d", "c", &k, &error));
    tesela_status status = tesela_item_read(k, "1", &ana, NULL, NULL, &error);
    tesela_container_close(k);
    tesela_client_close(c);
    return status;
}

/* ---- TLS ---- */

/* Writes the server's certificate, as it offers it for download. */
static const char *certificate(void) {
    static char path[200];
    char *pem = rest("GET", "/_explorer/emulator.pem", "", "", NULL);
    snprintf(path, sizeof path, "%s", server_file("server.pem"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(pem, file);
    fclose(file);
    free(pem);
    return path;
}

/* Another certificate of the same name, which has signed nothing. */
static const char *foreign_certificate(void) {
    static char path[200];
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -60);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, pair);
    assert_true(X509_sign(x, pair, EVP_sha256()) > 0);
    snprintf(path, sizeof path, "%s", server_file("foreign.pem"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(PEM_write_X509(file, x), 1);
    fclose(file);
    X509_free(x);
    EVP_PKEY_free(pair);
    return path;
}

static void trusted_certificate(void **state) {
    (void)state;
    char joined[300];
    const char *ca = certificate();
    ok(read_with(&(tesela_client_options){.endpoint = secure, .key = KEY, .ca_file = ca}));
    snprintf(joined, sizeof joined, "AccountEndpoint=%s/;AccountKey=%s;", secure, KEY);
    ok(read_with(&(tesela_client_options){.connection_string = joined, .ca_file = ca}));
}

static void queries_by_tls(void **state) {
    (void)state;
    tesela_client *c;
    tesela_container *k;
    size_t n;
    ok(tesela_client_open(&(tesela_client_options){.endpoint = secure, .key = KEY, .ca_file = certificate()}, &c, &error));
    ok(tesela_container_open(c, "d", "c", &k, &error));
    free(query_rows(k, "SELECT * FROM c ORDER BY c.id", NULL, &(tesela_query_options){.parallelism = -1}, &n));
    assert_int_equal(n, 2);
    tesela_container_close(k);
    tesela_client_close(c);
}

static void strange_certificate(void **state) {
    (void)state;
    fails(read_with(&(tesela_client_options){.endpoint = secure, .key = KEY}), TESELA_TLS);
    assert_non_null(strstr(error.message, "ca_file"));
    fails(read_with(&(tesela_client_options){.endpoint = secure, .key = KEY, .ca_file = foreign_certificate()}), TESELA_TLS);
    fails(read_with(&(tesela_client_options){.endpoint = secure, .key = KEY, .ca_file = "/nowhere.pem"}), TESELA_TLS);
}

/* ---- keys ---- */

static void wrong_keys(void **state) {
    (void)state;
    tesela_client *c;
    fails(read_with(&(tesela_client_options){.endpoint = endpoint, .key = WRONG_KEY}), TESELA_UNAUTHORIZED);
    assert_int_equal(error.http_status, 401);
    assert_true(strlen(error.message) > 20);
    fails(tesela_client_open(&(tesela_client_options){.endpoint = endpoint, .key = "no base64!"}, &c, &error), TESELA_BAD_ARGUMENT);
    assert_null(c);
}

static void read_only_key(void **state) {
    (void)state;
    tesela_client *c;
    tesela_container *k;
    ok(tesela_client_open(&(tesela_client_options){.endpoint = endpoint, .key = READ_ONLY_KEY}, &c, &error));
    ok(tesela_container_open(c, "d", "c", &k, &error));
    ok(tesela_item_read(k, "1", &ana, NULL, NULL, &error));
    fails(tesela_item_create(k, "{\"id\":\"3\",\"pk\":\"ana\"}", &ana, NULL, NULL, &error), TESELA_FORBIDDEN);
    assert_int_equal(error.http_status, 403);
    fails(tesela_item_delete(k, "1", &ana, NULL, NULL, &error), TESELA_FORBIDDEN);
    fails(tesela_database_create(c, "other", NULL, NULL, &error), TESELA_FORBIDDEN);
    tesela_container_close(k);
    tesela_client_close(c);
}

/* ---- resource tokens ---- */

/* The token of a permission on the container; `more` are further members of it. */
static char *grant(const char *id, const char *mode, const char *more) {
    char body[256], *answer;
    snprintf(body, sizeof body, "{\"id\":\"%s\",\"permissionMode\":\"%s\",\"resource\":\"dbs/d/colls/c\"%s}", id, mode, more);
    answer = rest("POST", "/dbs/d/users/u/permissions", "permissions", "dbs/d/users/u", body);
    char *from = strstr(answer, "\"_token\":\"");
    assert_non_null(from);
    char *token = strndup(from + 10, strcspn(from + 10, "\""));
    free(answer);
    return token;
}

static tesela_container *open_with(char *token, tesela_client **c) {
    tesela_container *k;
    ok(tesela_client_open(&(tesela_client_options){.endpoint = endpoint, .resource_token = token}, c, &error));
    ok(tesela_container_open(*c, "d", "c", &k, &error));
    free(token);
    return k;
}

static void token_to_read(void **state) {
    (void)state;
    tesela_client *c;
    size_t n;
    tesela_container *k = open_with(grant("reads", "Read", ""), &c);
    ok(tesela_item_read(k, "1", &ana, NULL, NULL, &error));
    free(query_rows(k, "SELECT * FROM c", NULL, NULL, &n));
    assert_int_equal(n, 2);
    fails(tesela_item_create(k, "{\"id\":\"3\",\"pk\":\"ana\"}", &ana, NULL, NULL, &error), TESELA_FORBIDDEN);
    fails(tesela_database_delete(c, "d", NULL, &error), TESELA_FORBIDDEN);
    tesela_container_close(k);
    tesela_client_close(c);
}

static void token_of_a_key(void **state) {
    (void)state;
    tesela_client *c;
    size_t n;
    tesela_container *k = open_with(grant("ana", "All", ",\"resourcePartitionKey\":[\"ana\"]"), &c);
    ok(tesela_item_upsert(k, "{\"id\":\"1\",\"pk\":\"ana\",\"again\":true}", &ana, NULL, NULL, &error));
    free(query_rows(k, "SELECT * FROM c", NULL, &(tesela_query_options){.key = &ana}, &n));
    assert_int_equal(n, 1);
    fails(tesela_item_read(k, "2", &bob, NULL, NULL, &error), TESELA_FORBIDDEN);
    tesela_container_close(k);
    tesela_client_close(c);
}

static void token_that_is_none(void **state) {
    (void)state;
    fails(read_with(&(tesela_client_options){.endpoint = endpoint, .resource_token = "type=resource&ver=1.0&sig=bm90aGluZw==;nothing"}),
          TESELA_UNAUTHORIZED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trusted_certificate), cmocka_unit_test(queries_by_tls),     cmocka_unit_test(strange_certificate),
        cmocka_unit_test(wrong_keys),          cmocka_unit_test(read_only_key),      cmocka_unit_test(token_to_read),
        cmocka_unit_test(token_of_a_key),      cmocka_unit_test(token_that_is_none),
    };
    server_start("--key", KEY, "--read-only-key", READ_ONLY_KEY, NULL);
    snprintf(secure, sizeof secure, "https%s", endpoint + 4);
    ana = tesela_key_string("ana");
    bob = tesela_key_string("bob");
    tesela_container *k = container_new("c", 400);
    free(rest("POST", "/dbs/d/users", "users", "dbs/d", "{\"id\":\"u\"}"));
    int failed = tesela_item_create(k, "{\"id\":\"1\",\"pk\":\"ana\"}", NULL, NULL, NULL, &error) ||
                 tesela_item_create(k, "{\"id\":\"2\",\"pk\":\"bob\"}", NULL, NULL, NULL, &error);
    failed = failed || cmocka_run_group_tests(tests, NULL, NULL);
    tesela_container_close(k);
    server_stop();
    return failed;
}
