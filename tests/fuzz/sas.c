/* Shared access signatures. The first byte chooses: the input is a query string; or it has the values of parameters, one per line, which
 * are signed here, so that the code behind the signature check is reached too. The second byte chooses the time, the address and whether
 * the client uses TLS.
 *
 * The string to sign is built here independently, and signed with OpenSSL's HMAC. A signature that was not made here is never accepted. An
 * accepted one allows no more than its permissions, and only at its times; a flipped bit invalidates it. */
#include <assert.h>
#include <openssl/hmac.h>

#include "access/sas.h"
#include "base/base64.h"
#include "base/date.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { NOW = 1794839400 /* 2026-11-16T14:30:00Z */, KEY_BYTES = 24 };

static const char key[] = "a key that the fuzzer ..";

typedef enum parameter { SV, SS, SRT, SP, ST, SE, SIP, SPR, TN, SPK, SRK, EPK, ERK, SI, SES, COUNT } parameter;
static const char *const names[COUNT] = {"sv", "ss", "srt", "sp", "st", "se", "sip", "spr", "tn", "spk", "srk", "epk", "erk", "si", "ses"};

static const access_ring *the_ring(void) {
    static access_ring *ring;
    if (!ring) {
        buf text = buf_init(100);
        ring = access_ring_new();
        base64_encode(&text, slice_of(key, KEY_BYTES));
        bool set = access_ring_set(ring, ACCESS_KEY_PRIMARY, buf_view(&text));
        assert(set);
        buf_free(&text);
    }
    return ring;
}

static slice next_line(slice *input) {
    const char *end = input->n ? memchr(input->p, '\n', input->n) : NULL;
    slice line = slice_of(input->p, end ? (size_t)(end - input->p) : input->n);
    *input = slice_skip(*input, line.n + 1);
    return line;
}

static void add_escaped(buf *out, const char *name, slice value) {
    buf_addf(out, "%s%s=", out->n ? "&" : "", name);
    for (size_t i = 0; i < value.n; i++) {
        buf_addf(out, "%%%02X", (unsigned char)value.p[i]);
    }
}

static void add_lines(buf *text, const slice *values, const parameter *order, size_t n) {
    for (size_t i = 0; i < n; i++) {
        buf_add_slice(text, values[order[i]]);
        buf_add_byte(text, '\n');
    }
}

static void compose(buf *text, const slice *values) {
    static const parameter account[] = {SP, SS, SRT, ST, SE, SIP, SPR, SV}, before[] = {SP, ST, SE},
                           after[] = {SI, SIP, SPR, SV, SPK, SRK, EPK};
    if (values[SS].n) {
        buf_add_lit(text, "account\n");
        add_lines(text, values, account, 8);
        if (slice_cmp(values[SV], SLICE_LIT("2020-12-06")) >= 0) {
            buf_add_slice(text, values[SES]);
            buf_add_byte(text, '\n');
        }
        return;
    }
    add_lines(text, values, before, 3);
    buf_add_lit(text, "/table/account/");
    for (size_t i = 0; i < values[TN].n; i++) {
        char c = values[TN].p[i];
        buf_add_byte(text, c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
    }
    buf_add_byte(text, '\n');
    add_lines(text, values, after, 7);
    buf_add_slice(text, values[ERK]);
}

static bool has(slice s, char c) {
    return s.n && memchr(s.p, c, s.n);
}

static void check_accepted(const op *o, const access_reach *r, const slice *values) {
    int64_t until;
    assert(r->proof == ACCESS_BY_SAS && r->key == ACCESS_KEY_PRIMARY && r->sas);
    assert(date_parse_iso(values[SE], &until) && until == r->until_s && o->now_s < until);
    assert(!(r->verbs & (ACCESS_GRANT | ACCESS_RUN | ACCESS_ALTER)) && !values[SI].n);
    assert(!(r->verbs & ACCESS_READ) || has(values[SP], 'r'));
    assert(!(r->verbs & ACCESS_INSERT) || has(values[SP], 'a'));
    assert(!(r->verbs & ACCESS_UPDATE) || has(values[SP], 'u'));
    assert(!(r->verbs & (ACCESS_DELETE | ACCESS_DROP)) || has(values[SP], 'd'));
    assert(r->sas->is_account == (values[SS].n > 0) && r->sas->is_account != (values[TN].n > 0));
    assert(r->sas->is_account || !(r->verbs & ~(unsigned)(ACCESS_READ | ACCESS_WRITE)));
    bool covered = access_sas_covers(r->sas, SLICE_LIT("m"), SLICE_LIT("m"));
    bool outside = !r->sas->is_account && ((values[SPK].n && slice_cmp(SLICE_LIT("m"), values[SPK]) < 0) ||
                                           (values[EPK].n && slice_cmp(SLICE_LIT("m"), values[EPK]) > 0));
    assert(!(covered && outside));
}

static void check_signed(op *o, access_sas_request *request, slice input) {
    slice values[COUNT];
    unsigned char mac[32];
    buf query = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT), signature = buf_init(100);
    access_reach reach;
    for (parameter p = 0; p < COUNT; p++) {
        values[p] = next_line(&input);
        if (values[p].n) {
            add_escaped(&query, names[p], values[p]);
        }
    }
    compose(&text, values);
    const unsigned char *made = HMAC(EVP_sha256(), key, KEY_BYTES, (const unsigned char *)text.p, text.n, mac, NULL);
    assert(made);
    base64_encode(&signature, slice_of(mac, sizeof mac));
    add_escaped(&query, "sig", buf_view(&signature));
    request->query = buf_view(&query);
    if (access_sas_check(o, the_ring(), request, &reach) == OK) {
        check_accepted(o, &reach, values);
        query.p[query.n - 9] = query.p[query.n - 9] == '1' ? '2' : '1'; /* a hex digit of the third-last character */
        err code = access_sas_check(o, the_ring(), request, &reach);
        assert(code != OK && reach.proof == ACCESS_NOBODY);
    }
    buf_free(&query);
    buf_free(&text);
    buf_free(&signature);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const uint8_t address[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 1};
    if (n < 2) {
        return 0;
    }
    arena a = arena_init();
    op o;
    op_init(&o, &a, NOW + (int64_t)(data[1] >> 2) * 600);
    access_sas_request request = {
        .query = slice_of(data + 2, n - 2), .account = SLICE_LIT("account"), .address = address, .secure = data[1] & 1};
    if (data[0] & 1) {
        check_signed(&o, &request, request.query);
    } else {
        access_reach reach;
        err code = access_sas_check(&o, the_ring(), &request, &reach);
        assert(code != OK && reach.proof == ACCESS_NOBODY && (code != E_UNAUTHORIZED || access_sas_is_there(request.query)));
    }
    arena_free(&a);
    return 0;
}
