#include "access/sas.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/date.h"
#include "base/limits.h"
#include "base/percent.h"

/* ---- parameters ---- */

typedef enum parameter { SV, SS, SRT, SP, ST, SE, SIP, SPR, SIG, TN, SPK, SRK, EPK, ERK, SI, SES, PARAMETERS } parameter;

static const char *const names[PARAMETERS] = {"sv",  "ss", "srt", "sp",  "st",  "se",  "sip", "spr",
                                              "sig", "tn", "spk", "srk", "epk", "erk", "si",  "ses"};

typedef struct parameters {
    slice value[PARAMETERS]; /* decoded; p NULL: absent or empty, which are signed alike */
} parameters;

static slice next_pair(slice *rest, slice *name_out) {
    const char *end = memchr(rest->p, '&', rest->n);
    slice pair = slice_of(rest->p, end ? (size_t)(end - rest->p) : rest->n);
    *rest = slice_skip(*rest, pair.n + 1);
    const char *equals = pair.n ? memchr(pair.p, '=', pair.n) : NULL;
    *name_out = slice_of(pair.p, equals ? (size_t)(equals - pair.p) : pair.n);
    return slice_skip(pair, name_out->n + 1);
}

static bool find_name(slice name, parameter *out) {
    for (parameter p = 0; p < PARAMETERS; p++) {
        if (slice_eq(name, slice_str(names[p]))) {
            *out = p;
            return true;
        }
    }
    return false;
}

/* A blank is "%20" or "+". Base64 has no blanks, and clients forget to encode its "+", so in sig a "+" stays. */
static bool decode(arena *a, slice raw, bool plus_is_blank, slice *value_out) {
    char *text = arena_alloc_aligned(a, raw.n + 1, 1);
    char *blanks = arena_alloc_aligned(a, raw.n + 1, 1);
    size_t n;
    for (size_t i = 0; i < raw.n; i++) {
        blanks[i] = raw.p[i] == '+' && plus_is_blank ? ' ' : raw.p[i];
    }
    bool good = percent_decode(slice_of(blanks, raw.n), text, &n);
    *value_out = slice_of(text, n);
    return good;
}

static err refuse_form(op *o, parameter p, const char *why) {
    return op_fail(o, E_BAD_AUTHORIZATION, "The shared access signature is malformed: its parameter %s %s.", names[p], why);
}

static err read_parameters(op *o, slice query, parameters *out) {
    bool seen[PARAMETERS] = {0};
    size_t bytes = 0;
    *out = (parameters){0};
    while (query.n) {
        parameter p;
        slice name, raw = next_pair(&query, &name);
        if (!find_name(name, &p)) {
            continue; /* another parameter of the request */
        }
        bytes += raw.n;
        if (seen[p] || bytes > LIMIT_SAS_BYTES) {
            return refuse_form(o, p, seen[p] ? "occurs twice" : "is too long");
        }
        seen[p] = true;
        if (raw.n && !decode(o->arena, raw, p != SIG, &out->value[p])) {
            return refuse_form(o, p, "is not percent-encoded");
        }
    }
    return out->value[SIG].p ? OK : E_NO_AUTHORIZATION;
}

bool access_sas_is_there(slice query) {
    slice name = SLICE_EMPTY;
    while (query.n && !slice_eq(name, SLICE_LIT("sig"))) {
        (void)next_pair(&query, &name);
    }
    return slice_eq(name, SLICE_LIT("sig"));
}

/* ---- the signed text ---- */

static bool is_version(slice v) {
    int64_t unused;
    return v.n == 10 && date_parse_iso(v, &unused) && slice_cmp(v, SLICE_LIT("2015-04-05")) >= 0;
}

static void add_line(buf *text, slice value) {
    buf_add_slice(text, value);
    buf_add_byte(text, '\n');
}

/* See "Create an account SAS" in the storage services' REST reference; version 2020-12-06 added the last line. */
static void write_account_text(buf *text, const access_sas_request *r, const parameters *p) {
    static const parameter order[] = {SP, SS, SRT, ST, SE, SIP, SPR, SV};
    add_line(text, r->account);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        add_line(text, p->value[order[i]]);
    }
    if (slice_cmp(p->value[SV], SLICE_LIT("2020-12-06")) >= 0) {
        add_line(text, p->value[SES]);
    }
}

/* See "Create a service SAS"; the table's name is signed in lower case. */
static void write_table_text(buf *text, const access_sas_request *r, const parameters *p) {
    static const parameter before[] = {SP, ST, SE}, after[] = {SI, SIP, SPR, SV, SPK, SRK, EPK};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        add_line(text, p->value[before[i]]);
    }
    buf_add_lit(text, "/table/");
    buf_add_slice(text, r->account);
    buf_add_byte(text, '/');
    for (size_t i = 0; i < p->value[TN].n; i++) {
        char c = p->value[TN].p[i];
        buf_add_byte(text, c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c);
    }
    buf_add_byte(text, '\n');
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        add_line(text, p->value[after[i]]);
    }
    buf_add_slice(text, p->value[ERK]);
}

/* With line ends in values, different parameters could yield the same signed text. */
static err check_values(op *o, const parameters *p) {
    for (parameter i = 0; i < PARAMETERS; i++) {
        if (p->value[i].n && (memchr(p->value[i].p, '\n', p->value[i].n) || memchr(p->value[i].p, '\0', p->value[i].n))) {
            return refuse_form(o, i, "has a line end or a zero byte in it");
        }
    }
    if (!is_version(p->value[SV])) {
        return refuse_form(o, SV, "must be a version from 2015-04-05 on");
    }
    bool account = p->value[SS].p != NULL;
    return account == (p->value[TN].p != NULL) ? refuse_form(o, TN, "or ss, but not both, must be there") : OK;
}

static err check_signature(op *o, const access_ring *ring, const access_sas_request *r, const parameters *p, access_reach *reach) {
    size_t room = r->account.n + PARAMETERS + sizeof "/table//";
    for (parameter i = 0; i < PARAMETERS; i++) {
        room += p->value[i].n;
    }
    buf text = {.p = arena_alloc_aligned(o->arena, room, 1), .cap = room, .max = room};
    if (p->value[SS].p) {
        write_account_text(&text, r, p);
    } else {
        write_table_text(&text, r, p);
    }
    if (!buf_ok(&text) || access_reach_of_signature(ring, buf_view(&text), p->value[SIG], reach) != OK) {
        return op_fail(o, E_UNAUTHORIZED,
                       "The shared access signature was not made with a key of this account, or something in it was changed.");
    }
    return OK;
}

/* ---- times and addresses ---- */

static err check_times(op *o, const parameters *p, int64_t *until_out) {
    int64_t from = 0;
    if (!date_parse_iso(p->value[SE], until_out)) {
        return refuse_form(o, SE, "must be a time such as 2026-11-16T15:00:00Z");
    }
    if (p->value[ST].n && !date_parse_iso(p->value[ST], &from)) {
        return refuse_form(o, ST, "must be a time such as 2026-11-16T14:00:00Z");
    }
    if (o->now_s < from || o->now_s >= *until_out) {
        return op_fail(o, E_BAD_AUTHORIZATION, "The shared access signature is not valid at the current time: it is from %.*s to %.*s.",
                       slice_shown(p->value[ST]), p->value[ST].n ? p->value[ST].p : "", slice_shown(p->value[SE]), p->value[SE].p);
    }
    return OK;
}

static bool read_address(slice text, uint32_t *address_out) {
    char room[INET_ADDRSTRLEN];
    struct in_addr address;
    if (text.n >= sizeof room) {
        return false;
    }
    memcpy(room, text.p, text.n);
    room[text.n] = '\0';
    bool good = inet_pton(AF_INET, room, &address) == 1;
    *address_out = good ? ntohl(address.s_addr) : 0;
    return good;
}

/* "10.0.0.1" or "10.0.0.1-10.0.0.9". */
static err check_address(op *o, const parameters *p, const uint8_t address[static 16]) {
    static const uint8_t mapped[12] = {[10] = 0xFF, 0xFF};
    slice range = p->value[SIP];
    if (!range.n) {
        return OK;
    }
    const char *dash = memchr(range.p, '-', range.n);
    size_t first_n = dash ? (size_t)(dash - range.p) : range.n;
    uint32_t first, last, own;
    if (!read_address(slice_of(range.p, first_n), &first) || !read_address(dash ? slice_skip(range, first_n + 1) : range, &last)) {
        return refuse_form(o, SIP, "must be an IPv4 address, or two with a dash between them");
    }
    memcpy(&own, address + 12, 4);
    own = ntohl(own);
    if (memcmp(address, mapped, sizeof mapped) != 0 || own < first || own > last) {
        return op_fail(o, E_FORBIDDEN, "The shared access signature is for other addresses than the client's.");
    }
    return OK;
}

/* The policy and the parameters complete each other. */
static err apply_policy(op *o, const access_sas_request *r, parameters *p) {
    access_sas_policy policy = {0};
    if (!p->value[SI].n) {
        return OK;
    }
    if (!p->value[TN].p || !r->find_policy || !r->find_policy(r->context, o, p->value[TN], p->value[SI], &policy)) {
        return op_fail(o, E_BAD_AUTHORIZATION, "The shared access signature names a stored access policy that the table does not have.");
    }
    struct {
        parameter parameter;
        slice given;
    } const both[] = {{ST, policy.start}, {SE, policy.expiry}, {SP, policy.permissions}};
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        slice *value = &p->value[both[i].parameter];
        if (value->n && both[i].given.n) {
            return refuse_form(o, both[i].parameter, "is in the stored access policy too");
        }
        *value = value->n ? *value : both[i].given;
    }
    return OK;
}

static err check_circumstances(op *o, const access_sas_request *r, const parameters *p) {
    slice protocol = p->value[SPR];
    if (protocol.n && !slice_eq(protocol, SLICE_LIT("https")) && !slice_eq(protocol, SLICE_LIT("https,http"))) {
        return refuse_form(o, SPR, "must be https or https,http");
    }
    if (slice_eq(protocol, SLICE_LIT("https")) && !r->secure) {
        return op_fail(o, E_FORBIDDEN, "The shared access signature is for https only.");
    }
    return check_address(o, p, r->address);
}

/* ---- operations ---- */

static bool has(slice letters, char letter) {
    return letters.n && memchr(letters.p, letter, letters.n);
}

static unsigned entity_verbs(slice sp) {
    return (has(sp, 'r') ? ACCESS_READ : 0) | (has(sp, 'a') ? ACCESS_INSERT : 0) | (has(sp, 'u') ? ACCESS_UPDATE : 0) |
           (has(sp, 'd') ? ACCESS_DELETE : 0);
}

static unsigned account_verbs(const parameters *p) {
    slice sp = p->value[SP], for_what = p->value[SRT];
    unsigned service = (has(sp, 'r') ? ACCESS_DESCRIBE : 0) | (has(sp, 'w') ? ACCESS_CONFIGURE : 0);
    unsigned tables =
        (has(sp, 'l') ? ACCESS_LIST : 0) | (has(sp, 'c') || has(sp, 'w') ? ACCESS_CREATE : 0) | (has(sp, 'd') ? ACCESS_DROP : 0);
    return (has(for_what, 's') ? service : 0) | (has(for_what, 'c') ? tables : 0) | (has(for_what, 'o') ? entity_verbs(sp) : 0);
}

static err read_bounds(op *o, const parameters *p, access_sas *s) {
    s->table = p->value[TN];
    s->from_partition = p->value[SPK];
    s->from_row = p->value[SRK];
    s->to_partition = p->value[EPK];
    s->to_row = p->value[ERK];
    if (s->from_row.p && !s->from_partition.p) {
        return refuse_form(o, SRK, "needs spk");
    }
    return s->to_row.p && !s->to_partition.p ? refuse_form(o, ERK, "needs epk") : OK;
}

static err make_reach(op *o, const parameters *p, access_reach *r) {
    access_sas *s = arena_new(o->arena, access_sas);
    unsigned verbs;
    s->is_account = p->value[SS].p != NULL;
    if (s->is_account) {
        verbs = has(p->value[SS], 't') ? account_verbs(p) : 0;
    } else {
        TRY(read_bounds(o, p, s));
        verbs = entity_verbs(p->value[SP]);
    }
    r->proof = ACCESS_BY_SAS;
    r->verbs &= verbs; /* limited to the verbs of the signing key */
    r->sas = s;
    return OK;
}

static err check(op *o, const access_ring *ring, const access_sas_request *request, access_reach *r) {
    parameters p;
    int64_t until_s = 0;
    TRY(read_parameters(o, request->query, &p));
    TRY(check_values(o, &p));
    TRY(check_signature(o, ring, request, &p, r));
    TRY(apply_policy(o, request, &p));
    TRY(check_circumstances(o, request, &p));
    TRY(check_times(o, &p, &until_s));
    TRY(make_reach(o, &p, r));
    r->until_s = until_s;
    return OK;
}

err access_sas_check(op *o, const access_ring *ring, const access_sas_request *request, access_reach *r) {
    *r = (access_reach){0};
    err code = check(o, ring, request, r);
    if (code != OK) {
        *r = (access_reach){0};
    }
    return code;
}

/* ---- checking ---- */

bool access_sas_is_for(const access_sas *s, slice table) {
    return s->is_account || (table.n && slice_eq_nocase(s->table, table));
}

bool access_sas_is_bounded(const access_sas *s) {
    return s->from_partition.p || s->to_partition.p;
}

static bool is_after_start(const access_sas *s, slice partition, slice row) {
    int c = s->from_partition.p ? slice_cmp(partition, s->from_partition) : 1;
    return c > 0 || (c == 0 && (!s->from_row.p || slice_cmp(row, s->from_row) >= 0));
}

static bool is_before_end(const access_sas *s, slice partition, slice row) {
    int c = s->to_partition.p ? slice_cmp(partition, s->to_partition) : -1;
    return c < 0 || (c == 0 && (!s->to_row.p || slice_cmp(row, s->to_row) <= 0));
}

bool access_sas_covers(const access_sas *s, slice partition, slice row) {
    return is_after_start(s, partition, row) && is_before_end(s, partition, row);
}
