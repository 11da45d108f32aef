#include "rest.h"

#include <ctype.h>
#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <time.h>

#include "harness.h"

static void lower(char *text) {
    for (; *text; text++) {
        *text = (char)tolower((unsigned char)*text);
    }
}

/* The field's value: type=master&ver=1.0&sig=…, percent-encoded. */
static void sign(CURL *easy, const char *verb, const char *type, const char *link, const char *date, char out[512]) {
    unsigned char secret[128], mac[32];
    char text[1024], small_verb[16], small_date[64], base64[64], plain[128];
    unsigned n = 0;
    int secret_n = EVP_DecodeBlock(secret, (const unsigned char *)KEY, (int)strlen(KEY)) - 2; /* the key ends with == */
    snprintf(small_verb, sizeof small_verb, "%s", verb);
    snprintf(small_date, sizeof small_date, "%s", date);
    lower(small_verb);
    lower(small_date);
    snprintf(text, sizeof text, "%s\n%s\n%s\n%s\n\n", small_verb, type, link, small_date);
    HMAC(EVP_sha256(), secret, secret_n, (const unsigned char *)text, strlen(text), mac, &n);
    EVP_EncodeBlock((unsigned char *)base64, mac, (int)n);
    snprintf(plain, sizeof plain, "type=master&ver=1.0&sig=%s", base64);
    char *escaped = curl_easy_escape(easy, plain, 0);
    snprintf(out, 512, "authorization: %s", escaped);
    curl_free(escaped);
}

static size_t collect(char *p, size_t size, size_t n, void *file) {
    return fwrite(p, size, n, file);
}

char *rest(const char *verb, const char *path, const char *type, const char *link, const char *body) {
    char url[512], date[64], date_field[96], authorization[512], *answer = NULL;
    size_t answer_n;
    long status = 0;
    time_t now = time(NULL);
    CURL *easy = curl_easy_init();
    FILE *file = open_memstream(&answer, &answer_n);
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime(&now));
    sign(easy, verb, type, link, date, authorization);
    snprintf(date_field, sizeof date_field, "x-ms-date: %s", date);
    snprintf(url, sizeof url, "%s%s", endpoint, path);
    struct curl_slist *fields = curl_slist_append(NULL, date_field);
    fields = curl_slist_append(fields, authorization);
    fields = curl_slist_append(fields, "x-ms-version: 2020-07-15");
    fields = curl_slist_append(fields, "Content-Type: application/json");
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, verb);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, file);
    CURLcode how = curl_easy_perform(easy);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    fclose(file);
    curl_slist_free_all(fields);
    curl_easy_cleanup(easy);
    if (how != CURLE_OK || status / 100 != 2) {
        fail_msg("%s %s: %s, %ld %s", verb, path, curl_easy_strerror(how), status, answer);
    }
    return answer;
}
