/* From a request to a file: checks, then the file in the form that the browser accepts. */
#include "api/portal/portal.h"

#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "api/portal/files.h"

#define FOLDER "/_explorer/"

/* The pages load nothing from elsewhere and run no inline script. `data:` images are the marks of form fields. */
static const char security_fields[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Permissions-Policy: camera=(), geolocation=(), microphone=()\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n";

static bool holds(slice field, slice word) {
    return field.n && memmem(field.p, field.n, word.p, word.n) != NULL;
}

/* ---- answers ---- */

/* In the form of the other APIs on this port. */
static void answer_error(http_request *http, unsigned status, const char *code, const char *message) {
    http_reply_start(http, status);
    buf_add_lit(http_reply_fields(http), security_fields);
    buf_add_lit(http_reply_fields(http), "Content-Type: application/json\r\nCache-Control: no-store\r\n");
    if (status == 405) {
        buf_add_lit(http_reply_fields(http), "Allow: GET, HEAD\r\n");
    }
    buf_addf(http_reply_body(http), "{\"code\":\"%s\",\"message\":\"%s\"}\n", code, message);
    http_reply_end(http);
}

static void redirect(http_request *http) {
    http_reply_start(http, 302);
    buf_add_lit(http_reply_fields(http), "Location: " FOLDER "\r\nVary: Accept\r\nCache-Control: no-store\r\n");
    http_reply_end(http);
}

/* For the rare client that does not accept gzip. */
static void add_plain(buf *out, const portal_file *file) {
    z_stream z = {.next_in = (Bytef *)(uintptr_t)file->gzip, .avail_in = (uInt)file->gzip_n};
    enum { GZIP_WINDOW = 15 + 16 }; /* of zlib: the largest window, in gzip's format */
    if (!buf_reserve(out, file->plain_n) || inflateInit2(&z, GZIP_WINDOW) != Z_OK) {
        return;
    }
    z.next_out = (Bytef *)(out->p + out->n);
    z.avail_out = (uInt)file->plain_n;
    int end = inflate(&z, Z_FINISH);
    assert(end == Z_STREAM_END && z.avail_out == 0);
    inflateEnd(&z);
    out->n += file->plain_n;
}

static void answer_file(http_request *http, const portal_options *options, const portal_file *file) {
    bool known = slice_eq(options->field(http, "if-none-match"), slice_str(file->etag));
    bool gzip = holds(options->field(http, "accept-encoding"), SLICE_LIT("gzip"));
    http_reply_start(http, known ? 304 : 200);
    buf *fields = http_reply_fields(http);
    buf_add_lit(fields, security_fields);
    buf_addf(fields, "ETag: %s\r\nCache-Control: %s\r\nVary: Accept-Encoding\r\n", file->etag,
             file->lasting ? "public, max-age=31536000, immutable" : "no-cache");
    if (known) {
        http_reply_end(http);
        return;
    }
    buf_addf(fields, "Content-Type: %s\r\n%s", file->type, gzip ? "Content-Encoding: gzip\r\n" : "");
    if (gzip) {
        buf_add(http_reply_body(http), (const char *)file->gzip, file->gzip_n);
    } else {
        add_plain(http_reply_body(http), file);
    }
    http_reply_end(http);
}

/* ---- checks ---- */

/* A link on another site may lead here; anything else that another site makes a browser send is refused. */
static bool is_foreign(const http_request *http, const portal_options *options) {
    slice site = options->field(http, "sec-fetch-site"), mode = options->field(http, "sec-fetch-mode");
    bool cross = slice_eq(site, SLICE_LIT("cross-site")) || slice_eq(site, SLICE_LIT("same-site"));
    return cross && !slice_eq(mode, SLICE_LIT("navigate"));
}

static const portal_file *find(slice path) {
    for (size_t i = 0; i < portal_files_n; i++) {
        if (slice_eq(path, slice_str(portal_files[i].path))) {
            return &portal_files[i];
        }
    }
    return NULL;
}

static bool reads(const http_request *http) {
    return http->method == VERB_GET || http->method == VERB_HEAD;
}

static void answer(http_request *http, const portal_options *options) {
    const portal_file *file = find(slice_skip(http->path, sizeof FOLDER - 1));
    if (!reads(http)) {
        answer_error(http, 405, "MethodNotAllowed", "The portal's files are read with GET.");
    } else if (is_foreign(http, options)) {
        answer_error(http, 403, "Forbidden", "The portal's files are not for other sites.");
    } else if (!http->tls && !http_peer_is_local(http)) {
        answer_error(http, 403, "Forbidden", "You would send a key over the network: open the portal with https:// instead of http://.");
    } else if (!portal_files_n) {
        answer_error(http, 404, "NotFound", "This server was built without the portal. './dev build' includes it.");
    } else if (!file) {
        answer_error(http, 404, "NotFound", "The portal has no such page. It begins at " FOLDER);
    } else {
        answer_file(http, options, file);
    }
}

bool portal_handle(const portal_options *options, http_request *http) {
    bool home = slice_eq(http->path, SLICE_LIT("/")) && reads(http) && holds(options->field(http, "accept"), SLICE_LIT("text/html"));
    if (home || slice_eq(http->path, slice_of(FOLDER, sizeof FOLDER - 2))) {
        redirect(http);
        return true;
    }
    if (!slice_starts(http->path, SLICE_LIT(FOLDER))) {
        return false;
    }
    answer(http, options);
    return true;
}
