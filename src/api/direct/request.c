#include "api/direct/request.h"

#include "base/percent.h"

/* ---- the table ---- */

/* What becomes of a token's value. */
typedef enum use {
    UNKNOWN, /* ids that the table does not have: skipped by their type */
    TEXT,    /* a field, as it is */
    ESCAPED, /* a field, percent-encoded by us: see answer.c */
    FLAG,    /* a field: "true" or "false" */
    NUMBER,  /* a field, decimal, with its sign */
    WORD,    /* a field: a number means a word */
    NAME,
    RID,
    MATCH,
    PAYLOAD_PRESENT,
    REQUEST_ID,
    START_EPK,
    END_EPK,
    FEED_KEY,
} use;

typedef struct words {
    const char *word[5]; /* NULL: the number means nothing, and is ignored */
} words;

static const words indexing = {{"Default", "Include", "Exclude"}};
static const words consistency = {{"Strong", "BoundedStaleness", "Session", "Eventual", "ConsistentPrefix"}};
static const words preference = {{NULL, "return=minimal"}};
static const words priority = {{NULL, "High", "Low"}};

typedef struct rule {
    const char *name; /* the protocol's own */
    uint8_t type, use;
    uint8_t to; /* sql_field, direct_name */
    const words *words;
} rule;

/* By the token's id. */
static const rule rules[] = {
    [0x00] = {"ResourceId", DIRECT_BYTES16, RID, 0, NULL},
    [0x01] = {"AuthorizationToken", DIRECT_TEXT16, TEXT, FIELD_AUTHORIZATION, NULL},
    [0x02] = {"PayloadPresent", DIRECT_BYTE, PAYLOAD_PRESENT, 0, NULL},
    [0x03] = {"Date", DIRECT_TEXT8, TEXT, FIELD_X_MS_DATE, NULL},
    [0x04] = {"PageSize", DIRECT_U32, NUMBER, FIELD_MAX_ITEM_COUNT, NULL},
    [0x05] = {"SessionToken", DIRECT_TEXT16, TEXT, FIELD_SESSION_TOKEN, NULL},
    [0x06] = {"ContinuationToken", DIRECT_TEXT16, ESCAPED, FIELD_CONTINUATION, NULL},
    [0x07] = {"IndexingDirective", DIRECT_BYTE, WORD, FIELD_INDEXING_DIRECTIVE, &indexing},
    [0x08] = {"Match", DIRECT_TEXT16, MATCH, 0, NULL},
    [0x09] = {"PreTriggerInclude", DIRECT_TEXT16, TEXT, FIELD_PRE_TRIGGERS, NULL},
    [0x0A] = {"PostTriggerInclude", DIRECT_TEXT16, TEXT, FIELD_POST_TRIGGERS, NULL},
    [0x0E] = {"PreTriggerExclude", DIRECT_TEXT16, TEXT, FIELD_PRE_TRIGGERS_NOT, NULL},
    [0x0F] = {"PostTriggerExclude", DIRECT_TEXT16, TEXT, FIELD_POST_TRIGGERS_NOT, NULL},
    [0x10] = {"ConsistencyLevel", DIRECT_BYTE, WORD, FIELD_CONSISTENCY, &consistency},
    [0x14] = {"ResourceTokenExpiry", DIRECT_U32, NUMBER, FIELD_TOKEN_EXPIRY, NULL},
    [0x15] = {"DatabaseName", DIRECT_TEXT16, NAME, DIRECT_DATABASE, NULL},
    [0x16] = {"CollectionName", DIRECT_TEXT16, NAME, DIRECT_CONTAINER, NULL},
    [0x17] = {"DocumentName", DIRECT_TEXT16, NAME, DIRECT_ITEM, NULL},
    [0x18] = {"AttachmentName", DIRECT_TEXT16, NAME, DIRECT_ATTACHMENT, NULL},
    [0x19] = {"UserName", DIRECT_TEXT16, NAME, DIRECT_USER, NULL},
    [0x1A] = {"PermissionName", DIRECT_TEXT16, NAME, DIRECT_PERMISSION, NULL},
    [0x1B] = {"StoredProcedureName", DIRECT_TEXT16, NAME, DIRECT_PROCEDURE, NULL},
    [0x1C] = {"UserDefinedFunctionName", DIRECT_TEXT16, NAME, DIRECT_FUNCTION, NULL},
    [0x1D] = {"TriggerName", DIRECT_TEXT16, NAME, DIRECT_TRIGGER, NULL},
    [0x20] = {"ConflictName", DIRECT_TEXT16, NAME, DIRECT_CONFLICT, NULL},
    [0x28] = {"ClientVersion", DIRECT_TEXT8, TEXT, FIELD_VERSION, NULL},
    [0x2B] = {"PartitionKey", DIRECT_TEXT16, TEXT, FIELD_PARTITION_KEY, NULL},
    [0x2C] = {"PartitionKeyRangeId", DIRECT_TEXT16, TEXT, FIELD_RANGE_ID, NULL},
    [0x35] = {"CollectionRid", DIRECT_TEXT16, TEXT, FIELD_CACHED_RID, NULL},
    [0x36] = {"PartitionKeyRangeName", DIRECT_TEXT16, NAME, DIRECT_RANGE, NULL},
    [0x3E] = {"EnableLogging", DIRECT_BYTE, FLAG, FIELD_SCRIPT_LOGGING, NULL},
    [0x3F] = {"A_IM", DIRECT_TEXT16, TEXT, FIELD_A_IM, NULL},
    [0x42] = {"PopulateQueryMetrics", DIRECT_BYTE, FLAG, FIELD_QUERY_METRICS, NULL},
    [0x44] = {"PopulatePartitionStatistics", DIRECT_BYTE, FLAG, FIELD_STATISTICS, NULL},
    [0x47] = {"IfModifiedSince", DIRECT_TEXT16, TEXT, FIELD_IF_MODIFIED_SINCE, NULL},
    [0x4D] = {"TransportRequestID", DIRECT_U32, REQUEST_ID, 0, NULL},
    [0x62] = {"StartEpk", DIRECT_BYTES16, START_EPK, 0, NULL},
    [0x63] = {"EndEpk", DIRECT_BYTES16, END_EPK, 0, NULL},
    [0x64] = {"ReadFeedKeyType", DIRECT_BYTE, FEED_KEY, 0, NULL},
    [0x73] = {"IsBatchAtomic", DIRECT_BYTE, FLAG, FIELD_BATCH_ATOMIC, NULL},
    [0x74] = {"ShouldBatchContinueOnError", DIRECT_BYTE, FLAG, FIELD_BATCH_CONTINUE, NULL},
    [0x80] = {"ClientEncryptionKeyName", DIRECT_TEXT16, NAME, DIRECT_ENCRYPTION_KEY, NULL},
    [0x82] = {"ReturnPreference", DIRECT_BYTE, WORD, FIELD_PREFER, &preference},
    [0x9D] = {"IntendedCollectionRid", DIRECT_TEXT16, TEXT, FIELD_INTENDED_RID, NULL},
    [0xA9] = {"PopulateIndexMetrics", DIRECT_BYTE, FLAG, FIELD_INDEX_METRICS, NULL},
    [0xBF] = {"PriorityLevel", DIRECT_BYTE, WORD, FIELD_PRIORITY, &priority},
    [0xC2] = {"PopulateIndexMetricsV2", DIRECT_BYTE, FLAG, FIELD_INDEX_METRICS_V2, NULL},
    [0xDB] = {"ThroughputBucket", DIRECT_BYTE, NUMBER, FIELD_THROUGHPUT_BUCKET, NULL},
};

enum { RULES = sizeof rules / sizeof *rules, PAYLOAD_ID = 0x02, REQUEST_ID_ID = 0x4D };

/* ---- one token ---- */

/* As fields of HTTP are: no line breaks. */
static bool is_line(slice text) {
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '\0' || text.p[i] == '\r' || text.p[i] == '\n') {
            return false;
        }
    }
    return true;
}

/* Short and long texts are taken for each other: SDKs do not agree about every id. */
static bool is_of_type(const rule *r, uint8_t type) {
    bool text = r->type == DIRECT_TEXT8 || r->type == DIRECT_TEXT16;
    return type == r->type || (text && (type == DIRECT_TEXT8 || type == DIRECT_TEXT16));
}

static bool take_word(direct_request *q, const rule *r, uint64_t number) {
    if (number >= sizeof r->words->word / sizeof *r->words->word) {
        return false;
    }
    const char *word = r->words->word[number];
    if (word) {
        q->field[r->to] = slice_str(word);
    }
    return true;
}

/* A PageSize of FFFFFFFF is -1. */
static slice number_text(arena *a, const direct_token *t) {
    return arena_printf(a, "%d", (int)(int32_t)t->number);
}

static slice unescaped(arena *a, slice text) {
    char *plain = arena_alloc_aligned(a, text.n + 1, 1);
    size_t n = 0;
    return percent_decode(text, plain, &n) ? slice_of(plain, n) : text;
}

static bool take_field(arena *a, direct_request *q, const rule *r, const direct_token *t) {
    switch (r->use) {
    case FLAG:
        q->field[r->to] = t->number ? SLICE_LIT("true") : SLICE_LIT("false");
        return true;
    case NUMBER:
        q->field[r->to] = number_text(a, t);
        return true;
    case WORD:
        return take_word(q, r, t->number);
    case ESCAPED:
        q->field[r->to] = unescaped(a, t->value);
        return is_line(q->field[r->to]);
    default:
        q->field[r->to] = t->value;
        return is_line(t->value);
    }
}

static bool take_token(arena *a, direct_request *q, const direct_token *t) {
    const rule *r = &rules[t->id];
    if (!is_of_type(r, t->type)) {
        return false;
    }
    switch (r->use) {
    case NAME:
        q->name[r->to] = t->value;
        return t->value.n > 0;
    case RID:
        q->rid = t->value;
        return true;
    case MATCH:
        q->match = t->value;
        return is_line(t->value);
    case START_EPK:
        q->start_epk = t->value;
        return true;
    case END_EPK:
        q->end_epk = t->value;
        return true;
    case FEED_KEY:
        q->feed_key = (uint8_t)t->number;
        return true;
    case PAYLOAD_PRESENT:
        return true; /* direct_request_read looks for it */
    case REQUEST_ID:
        q->identified = true;
        q->id = (uint32_t)t->number;
        return true;
    default:
        return take_field(a, q, r, t);
    }
}

/* ---- frames ---- */

static slice tokens_of(slice frame) {
    size_t length = frame.n >= DIRECT_HEADER_BYTES ? (size_t)direct_load(frame.p, 4) : 0;
    return slice_skip(slice_of(frame.p, length < frame.n ? length : frame.n), DIRECT_HEADER_BYTES);
}

static bool find(slice rest, uint16_t id, uint8_t type, uint64_t *number_out) {
    direct_token t;
    while (rest.n && direct_token_take(&rest, &t)) {
        if (t.id == id) {
            *number_out = t.number;
            return t.type == type;
        }
    }
    return false;
}

bool direct_request_find_id(slice begun, uint32_t *id_out) {
    uint64_t number = 0;
    bool found = find(tokens_of(begun), REQUEST_ID_ID, DIRECT_U32, &number);
    *id_out = (uint32_t)number;
    return found;
}

bool direct_request_extend(slice begun, uint64_t *bytes_out) {
    uint64_t length = direct_load(begun.p, 4), present = 0;
    if (begun.n == length) {
        bool found = find(tokens_of(begun), PAYLOAD_ID, DIRECT_BYTE, &present);
        *bytes_out = length + (present ? 4 : 0);
        return found;
    }
    if (begun.n == length + 4) {
        *bytes_out = begun.n + direct_load(begun.p + length, 4);
    }
    return true;
}

/* False: malformed, an id twice, or a value that its token cannot have. */
static bool take_tokens(arena *a, slice rest, direct_request *q) {
    uint8_t seen[(RULES + 7) / 8] = {0};
    direct_token t;
    while (rest.n) {
        if (!direct_token_take(&rest, &t)) {
            return false;
        }
        if (t.id >= RULES || rules[t.id].name == NULL) {
            continue;
        }
        uint8_t bit = (uint8_t)(1 << t.id % 8);
        if (seen[t.id / 8] & bit || !take_token(a, q, &t)) {
            return false;
        }
        seen[t.id / 8] |= bit;
    }
    return seen[PAYLOAD_ID / 8] & 1 << PAYLOAD_ID % 8;
}

err direct_request_read(arena *a, slice frame, direct_request *q) {
    *q = (direct_request){0};
    if (frame.n < DIRECT_HEADER_BYTES) {
        return E_BAD_REQUEST;
    }
    q->resource = (uint16_t)direct_load(frame.p + 4, 2);
    q->operation = (uint16_t)direct_load(frame.p + 6, 2);
    memcpy(q->activity, frame.p + 8, sizeof q->activity);
    q->identified = direct_request_find_id(frame, &q->id);
    slice tokens = tokens_of(frame);
    bool good = take_tokens(a, tokens, q);
    size_t length = DIRECT_HEADER_BYTES + tokens.n;
    q->payload = slice_skip(frame, length + 4);
    return good && q->identified ? OK : E_BAD_REQUEST;
}
