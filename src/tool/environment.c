#include "tool/environment.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/slice.h"

#define OURS "TESELA_"
#define EMULATORS "AZURE_COSMOS_EMULATOR_"

/* Variables of the other commands and of ./dev, which a shell may have exported. */
static const char *const others[] = {"ENDPOINT", "CA", "BIN", "VERBOSE", "SCHEMES"};

/* Variables of the emulator's images. */
static const struct {
    const char *name, *hint;
} emulators[] = {
    {"PARTITION_COUNT", "not needed: containers have as many physical partitions as their throughput and data ask for"},
    {"ENABLE_DATA_PERSISTENCE", "not needed: data is always kept in --data; a new folder begins anew"},
    {"IP_ADDRESS_OVERRIDE", "not needed: clients are told the address that they called; --host says where to listen"},
    {"KEY", "use TESELA_KEY or --key-file"},
    {"ENABLE_MONGODB_ENDPOINT", "this version has the SQL API only"},
};

static slice name_of(const char *variable) {
    const char *equals = strchr(variable, '=');
    return equals ? slice_of(variable, (size_t)(equals - variable)) : slice_str(variable);
}

/* Whether the variable names the option: SQL_PORT is sql-port. */
static bool is_named(slice name, const char *option) {
    bool same = name.n == strlen(option);
    for (size_t i = 0; same && i < name.n; i++) {
        char c = option[i] == '-' ? '_' : (char)toupper((unsigned char)option[i]);
        same = name.p[i] == c;
    }
    return same;
}

variable_kind tool_variable_kind(const tool_option *options, size_t n, const char *variable) {
    slice name = name_of(variable);
    if (slice_starts(name, SLICE_LIT(EMULATORS))) {
        return VARIABLE_EMULATOR;
    }
    if (!slice_starts(name, SLICE_LIT(OURS))) {
        return VARIABLE_OTHER;
    }
    name = slice_skip(name, sizeof OURS - 1);
    for (size_t i = 0; i < n; i++) {
        if (is_named(name, options[i].name)) {
            return VARIABLE_SETTING;
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (slice_eq(name, slice_str(others[i]))) {
            return VARIABLE_SETTING;
        }
    }
    return VARIABLE_UNKNOWN;
}

const char *tool_emulator_hint(const char *variable) {
    slice name = slice_skip(name_of(variable), sizeof EMULATORS - 1);
    for (size_t i = 0; i < sizeof emulators / sizeof *emulators; i++) {
        if (slice_eq(name, slice_str(emulators[i].name))) {
            return emulators[i].hint;
        }
    }
    return "tesela has no such setting";
}

void tool_environment_check(const tool_option *options, size_t n) {
    for (char **each = environ; *each; each++) {
        variable_kind kind = tool_variable_kind(options, n, *each);
        slice name = name_of(*each);
        char shown[128];
        if (kind == VARIABLE_UNKNOWN) {
            log_warn("serve", "a variable is no setting of tesela serve and is ignored; --help lists the settings", "variable=%s",
                     log_value(shown, sizeof shown, name.p, name.n));
        } else if (kind == VARIABLE_EMULATOR) {
            log_warn("serve", "a variable of the emulator is ignored", "variable=%s hint=\"%s\"",
                     log_value(shown, sizeof shown, name.p, name.n), tool_emulator_hint(*each));
        }
    }
}
