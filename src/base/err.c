#include "base/err.h"

#include <assert.h>

static const err_entry entries[ERR_COUNT] = {
#define ERR_ENTRY(name, status, substatus, word, sentence) [name] = {#name, word, sentence, status, substatus},
    ERR_LIST(ERR_ENTRY)
#undef ERR_ENTRY
};

const err_entry *err_lookup(err code) {
    assert(code >= 0 && code < ERR_COUNT);
    return &entries[code];
}
