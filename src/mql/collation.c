#include "mql/collation.h"

#include <pthread.h>
#include <stdlib.h>
#include <unicode/ucol.h>
#include <unicode/uloc.h>
#include <unicode/ustring.h>

#include "base/memory.h"

struct mql_collation {
    UCollator *collator;
};

enum { LOCALE_BYTES_MAX = 64 };

/* ---- options ---- */

typedef struct choice {
    const char *name;
    UColAttributeValue value;
} choice;

typedef enum option_type { OPTION_STRENGTH, OPTION_BOOL, OPTION_CHOICE, OPTION_MAX_VARIABLE, OPTION_IGNORED } option_type;

static const choice case_first[] = {{"upper", UCOL_UPPER_FIRST}, {"lower", UCOL_LOWER_FIRST}, {"off", UCOL_OFF}, {NULL, 0}};
static const choice alternate[] = {{"non-ignorable", UCOL_NON_IGNORABLE}, {"shifted", UCOL_SHIFTED}, {NULL, 0}};

static const struct option {
    const char *name;
    option_type type;
    UColAttribute attribute;
    const choice *choices;
} options[] = {
    {"locale", OPTION_IGNORED, 0, NULL}, /* read first */
    {"strength", OPTION_STRENGTH, UCOL_STRENGTH, NULL},
    {"caseLevel", OPTION_BOOL, UCOL_CASE_LEVEL, NULL},
    {"caseFirst", OPTION_CHOICE, UCOL_CASE_FIRST, case_first},
    {"numericOrdering", OPTION_BOOL, UCOL_NUMERIC_COLLATION, NULL},
    {"alternate", OPTION_CHOICE, UCOL_ALTERNATE_HANDLING, alternate},
    {"maxVariable", OPTION_MAX_VARIABLE, 0, NULL},
    {"backwards", OPTION_BOOL, UCOL_FRENCH_COLLATION, NULL},
    {"normalization", OPTION_BOOL, UCOL_NORMALIZATION_MODE, NULL},
    {"version", OPTION_IGNORED, 0, NULL},
};

static err wrong_type(op *o, const doc_element *e, const char *expected) {
    return mql_fail(o, 14, "BSON field 'collation.%.*s' is the wrong type '%s', expected %s", slice_shown(e->key), e->key.p,
                    mql_type_name(e->type), expected);
}

static err wrong_value(op *o, const doc_element *e, slice value) {
    return mql_fail(o, 2, "Enumeration value '%.*s' for field 'collation.%.*s' is not a valid value.", slice_shown(value), value.p,
                    slice_shown(e->key), e->key.p);
}

static err strength_of(op *o, const doc_element *e, UColAttributeValue *value_out) {
    static const UColAttributeValue strengths[] = {UCOL_PRIMARY, UCOL_SECONDARY, UCOL_TERTIARY, UCOL_QUATERNARY, UCOL_IDENTICAL};
    int64_t strength;
    if (!mql_is_number(mql_of(e))) {
        return wrong_type(o, e, "types '[long, int, decimal, double]'");
    }
    if (!mql_as_integer(mql_of(e), &strength) || strength < 1 || strength > 5) {
        return mql_fail(o, 2, "BSON field 'collation.strength' must be an integer from 1 to 5");
    }
    *value_out = strengths[strength - 1];
    return OK;
}

static err choice_of(op *o, const doc_element *e, const choice *choices, UColAttributeValue *value_out) {
    if (e->type != BSON_TYPE_UTF8) {
        return wrong_type(o, e, "type 'string'");
    }
    for (; choices->name; choices++) {
        if (slice_eq(doc_element_text(e), slice_str(choices->name))) {
            *value_out = choices->value;
            return OK;
        }
    }
    return wrong_value(o, e, doc_element_text(e));
}

static err set_max_variable(op *o, UCollator *collator, const doc_element *e) {
    static const choice groups[] = {{"punct", 0}, {"space", 1}, {NULL, 0}};
    UColAttributeValue value;
    UErrorCode status = U_ZERO_ERROR;
    TRY(choice_of(o, e, groups, &value));
    ucol_setMaxVariable(collator, value == 0 ? UCOL_REORDER_CODE_PUNCTUATION : UCOL_REORDER_CODE_SPACE, &status);
    return U_SUCCESS(status) ? OK : wrong_value(o, e, doc_element_text(e));
}

static err set_option(op *o, UCollator *collator, const struct option *option, const doc_element *e) {
    UColAttributeValue value = UCOL_DEFAULT;
    UErrorCode status = U_ZERO_ERROR;
    switch (option->type) {
    case OPTION_IGNORED:
        return OK;
    case OPTION_MAX_VARIABLE:
        return set_max_variable(o, collator, e);
    case OPTION_STRENGTH:
        TRY(strength_of(o, e, &value));
        break;
    case OPTION_CHOICE:
        TRY(choice_of(o, e, option->choices, &value));
        break;
    case OPTION_BOOL:
        if (e->type != BSON_TYPE_BOOL) {
            return wrong_type(o, e, "type 'bool'");
        }
        value = mql_as_bool(mql_of(e)) ? UCOL_ON : UCOL_OFF;
        break;
    }
    ucol_setAttribute(collator, option->attribute, value, &status);
    return U_SUCCESS(status) ? OK : wrong_value(o, e, SLICE_LIT("?"));
}

static err set_options(op *o, UCollator *collator, slice document) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        size_t i = 0, n = sizeof options / sizeof *options;
        while (i < n && !slice_eq(e.key, slice_str(options[i].name))) {
            i++;
        }
        if (i == n) {
            return mql_fail(o, 40415, "BSON field 'collation.%.*s' is an unknown field.", slice_shown(e.key), e.key.p);
        }
        TRY(set_option(o, collator, &options[i], &e));
    }
    return OK;
}

/* ---- locales ---- */

/* ICU opens any locale, by falling back to a parent; MongoDB accepts only locales that have rules of their own or are in its list. */
static bool is_known(const char *locale) {
    char base[LOCALE_BYTES_MAX + 1];
    UErrorCode status = U_ZERO_ERROR;
    uloc_getBaseName(locale, base, sizeof base, &status);
    if (U_FAILURE(status) || status == U_STRING_NOT_TERMINATED_WARNING) {
        return false;
    }
    for (int32_t i = 0; i < ucol_countAvailable(); i++) {
        if (strcmp(ucol_getAvailable(i), base) == 0) {
            return true;
        }
    }
    return false;
}

static err locale_of(op *o, slice document, char locale[static LOCALE_BYTES_MAX + 1]) {
    mql_value v = mql_member(mql_document(document), SLICE_LIT("locale"));
    if (mql_is_missing(v)) {
        return mql_fail(o, 40414, "BSON field 'collation.locale' is missing but a required field");
    }
    if (v.type != BSON_TYPE_UTF8) {
        return mql_fail(o, 14, "BSON field 'collation.locale' is the wrong type '%s', expected type 'string'", mql_type_name(v.type));
    }
    slice text = mql_as_text(v);
    size_t n = text.n < LOCALE_BYTES_MAX ? text.n : LOCALE_BYTES_MAX;
    memcpy(locale, text.p, n);
    locale[n] = 0;
    if (strlen(locale) != text.n || (strcmp(locale, "simple") != 0 && !is_known(locale))) {
        return mql_fail(o, 2, "Field 'locale' is invalid in: { locale: \"%.*s\" }", slice_shown(text), text.p);
    }
    return OK;
}

/* ---- opening ---- */

err mql_collation_open(op *o, slice document, mql_collation **collation_out) {
    char locale[LOCALE_BYTES_MAX + 1];
    UErrorCode status = U_ZERO_ERROR;
    *collation_out = NULL;
    TRY(locale_of(o, document, locale));
    UCollator *collator = ucol_open(strcmp(locale, "simple") == 0 ? "" : locale, &status);
    if (U_FAILURE(status)) {
        return mql_fail(o, 2, "Field 'locale' is invalid in: { locale: \"%s\" }", locale);
    }
    err e = set_options(o, collator, document);
    if (e != OK || strcmp(locale, "simple") == 0) {
        ucol_close(collator);
        return e;
    }
    *collation_out = mem_alloc(sizeof **collation_out);
    (*collation_out)->collator = collator;
    return OK;
}

void mql_collation_close(mql_collation *c) {
    if (c) {
        ucol_close(c->collator);
        free(c);
    }
}

/* ---- shared ---- */

static struct {
    pthread_mutex_t lock;
    struct {
        char *document;
        size_t n;
        mql_collation *collation;
    } list[MQL_COLLATIONS_MAX];
    size_t n;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock held. */
static err shared_of(op *o, slice document, const mql_collation **collation_out) {
    mql_collation *made;
    for (size_t i = 0; i < shared.n; i++) {
        if (slice_eq(slice_of(shared.list[i].document, shared.list[i].n), document)) {
            *collation_out = shared.list[i].collation;
            return OK;
        }
    }
    TRY(mql_collation_open(o, document, &made));
    if (!made) {
        return OK;
    }
    if (shared.n == MQL_COLLATIONS_MAX) {
        mql_collation_close(made);
        return mql_fail(o, 67, "Collections and indexes have more than %d different collations.", MQL_COLLATIONS_MAX);
    }
    char *copy = mem_alloc(document.n);
    memcpy(copy, document.p, document.n);
    shared.list[shared.n].document = copy;
    shared.list[shared.n].n = document.n;
    shared.list[shared.n++].collation = made;
    *collation_out = made;
    return OK;
}

err mql_collation_shared(op *o, slice document, const mql_collation **collation_out) {
    *collation_out = NULL;
    pthread_mutex_lock(&shared.lock);
    err code = shared_of(o, document, collation_out);
    pthread_mutex_unlock(&shared.lock);
    return code;
}

/* ---- use ---- */

int mql_collation_compare(const mql_collation *c, slice a, slice b) {
    UErrorCode status = U_ZERO_ERROR;
    UCollationResult order = ucol_strcollUTF8(c->collator, a.p, (int32_t)a.n, b.p, (int32_t)b.n, &status);
    return U_SUCCESS(status) ? (int)order : slice_cmp(a, b);
}

void mql_collation_key(const mql_collation *c, slice text, buf *out) {
    UErrorCode status = U_ZERO_ERROR;
    int32_t n = 0;
    UChar *wide = mem_alloc((text.n + 1) * sizeof *wide); /* UTF-16 has no more units than UTF-8 has bytes */
    u_strFromUTF8WithSub(wide, (int32_t)text.n + 1, &n, text.p, (int32_t)text.n, 0xFFFD, NULL, &status);
    int32_t room = ucol_getSortKey(c->collator, wide, n, NULL, 0);
    if (room > 0 && buf_reserve(out, (size_t)room)) {
        ucol_getSortKey(c->collator, wide, n, (uint8_t *)out->p + out->n, room);
        out->n += (size_t)room;
    }
    free(wide);
}
