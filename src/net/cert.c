/* The certificate that a server makes for itself at its first start: self-signed, EC P-256, for the names of a developer's machine. It is
 * not a CA (CA:FALSE): clients trust this one certificate, and nothing that its key might sign. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/tls.h"

enum { DAY_S = 24 * 60 * 60, VALID_DAYS = 825 /* the longest validity that all clients accept */, RENEW_DAYS = 30 };

static bool add_extension(X509 *cert, X509V3_CTX *ctx, int nid, const char *value) {
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, ctx, nid, value);
    bool ok = extension && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

static bool is_dns_name(const char *s) {
    return *s && strlen(s) == strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");
}

static bool is_address(const char *s) {
    struct in6_addr unused;
    return inet_pton(AF_INET, s, &unused) == 1 || inet_pton(AF_INET6, s, &unused) == 1;
}

/* Calls `use` for each of the comma-separated names, until it returns false. */
static bool each_name(const char *names, bool (*use)(void *context, const char *name), void *context) {
    slice rest = names ? slice_str(names) : SLICE_EMPTY;
    bool good = true;
    while (good && rest.n) {
        char name[256];
        const char *comma = memchr(rest.p, ',', rest.n);
        slice one = slice_of(rest.p, comma ? (size_t)(comma - rest.p) : rest.n);
        rest = slice_skip(rest, one.n + (comma != NULL));
        one = slice_trim(one);
        good = one.n == 0 || (one.n < sizeof name && (snprintf(name, sizeof name, "%.*s", (int)one.n, one.p), use(context, name)));
    }
    return good;
}

static bool add_name(void *list, const char *name) {
    bool address = is_address(name);
    buf_addf(list, ",%s:%s", address ? "IP" : "DNS", name);
    return address || is_dns_name(name);
}

static bool add_extensions(X509 *cert, const char *further) {
    char host[256] = "";
    buf names = buf_init(BUF_NO_LIMIT);
    gethostname(host, sizeof host - 1);
    bool extra = is_dns_name(host) && strcmp(host, "localhost") != 0;
    buf_addf(&names, "DNS:localhost,IP:127.0.0.1,IP:::1%s%s", extra ? ",DNS:" : "", extra ? host : "");
    bool good = each_name(further, add_name, &names);
    buf_add_byte(&names, 0);
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
    good = good && add_extension(cert, &ctx, NID_subject_alt_name, names.p) &&
           add_extension(cert, &ctx, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(cert, &ctx, NID_key_usage, "critical,digitalSignature") &&
           add_extension(cert, &ctx, NID_ext_key_usage, "serverAuth") && add_extension(cert, &ctx, NID_subject_key_identifier, "hash");
    buf_free(&names);
    return good;
}

static bool set_serial(X509 *cert) {
    unsigned char bytes[16];
    BIGNUM *number = RAND_bytes(bytes, sizeof bytes) == 1 ? BN_bin2bn(bytes, sizeof bytes, NULL) : NULL;
    bool ok = number && BN_clear_bit(number, 127) == 1 && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return ok;
}

static X509 *make_certificate(EVP_PKEY *key, const char *names, int64_t now_s) {
    X509 *cert = X509_new();
    time_t now = (time_t)now_s;
    X509_NAME *name = cert ? X509_get_subject_name(cert) : NULL;
    bool ok = cert && X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
              X509_time_adj_ex(X509_getm_notBefore(cert), -1, 0, &now) && /* backdated by a day: clocks differ */
              X509_time_adj_ex(X509_getm_notAfter(cert), VALID_DAYS - 1, 0, &now) && X509_set_pubkey(cert, key) == 1 &&
              X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"tesela", -1, -1, 0) == 1 &&
              X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0) == 1 &&
              X509_set_issuer_name(cert, name) == 1 && add_extensions(cert, names) && X509_sign(cert, key, EVP_sha256()) > 0;
    if (!ok) {
        X509_free(cert);
        return NULL;
    }
    return cert;
}

/* ---- files ---- */

/* Writes a temporary file, then renames it. Not synced: a file lost in a power cut is made again at the next start. */
static bool write_pem(const char *path, BIO *pem) {
    char beside[4096];
    char *bytes;
    long n = BIO_get_mem_data(pem, &bytes);
    if (n <= 0 || (size_t)snprintf(beside, sizeof beside, "%s.new", path) >= sizeof beside) {
        errno = ENAMETOOLONG;
        return false;
    }
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return false;
    }
    bool ok = fchmod(fd, 0600) == 0 && write(fd, bytes, (size_t)n) == n;
    ok = close(fd) == 0 && ok && rename(beside, path) == 0;
    if (!ok) {
        unlink(beside);
    }
    return ok;
}

static bool write_pair(const char *cert_path, const char *key_path, X509 *cert, EVP_PKEY *key) {
    BIO *cert_pem = BIO_new(BIO_s_mem()), *key_pem = BIO_new(BIO_s_secmem());
    bool ok = cert_pem && key_pem && PEM_write_bio_X509(cert_pem, cert) == 1 &&
              PEM_write_bio_PrivateKey(key_pem, key, NULL, NULL, 0, NULL, NULL) == 1 && write_pem(key_path, key_pem) &&
              write_pem(cert_path, cert_pem);
    BIO_free(cert_pem);
    BIO_free(key_pem);
    return ok;
}

static int no_password(char *into, int n, int writing, void *unused) {
    (void)into, (void)n, (void)writing, (void)unused;
    return -1;
}

static bool is_for(void *cert, const char *name) {
    return is_address(name) ? X509_check_ip_asc(cert, name, 0) == 1 : X509_check_host(cert, name, 0, 0, NULL) == 1;
}

static bool pair_is_good(const net_certificate *wanted, int64_t now_s) {
    FILE *cert_file = fopen(wanted->cert_path, "re"), *key_file = fopen(wanted->key_path, "re");
    X509 *cert = cert_file ? PEM_read_X509(cert_file, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = key_file ? PEM_read_PrivateKey(key_file, NULL, no_password, NULL) : NULL;
    time_t soon = (time_t)(now_s + RENEW_DAYS * DAY_S);
    bool good = cert && key && X509_check_private_key(cert, key) == 1 && X509_cmp_time(X509_get0_notAfter(cert), &soon) > 0 &&
                each_name(wanted->names, is_for, cert);
    X509_free(cert);
    EVP_PKEY_free(key);
    if (cert_file) {
        fclose(cert_file);
    }
    if (key_file) {
        fclose(key_file);
    }
    return good;
}

err net_tls_make_certificate(const net_certificate *wanted, int64_t now_s, char *why, size_t why_n) {
    if (pair_is_good(wanted, now_s)) {
        return OK;
    }
    ERR_clear_error();
    errno = 0;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = key ? make_certificate(key, wanted->names, now_s) : NULL;
    bool ok = cert && write_pair(wanted->cert_path, wanted->key_path, cert, key);
    if (!ok) {
        const char *reason = cert ? strerror(errno) : ERR_reason_error_string(ERR_peek_last_error());
        snprintf(why, why_n, "cannot make the TLS certificate %s: %s", wanted->cert_path, reason ? reason : "unknown");
    }
    X509_free(cert);
    EVP_PKEY_free(key);
    return ok ? OK : E_INTERNAL;
}
