/* The code by which a client forms a synthetic key, in three languages. It gives the texts that form.c gives. */
#include "advise/advise_int.h"

#include "doc/json.h"

static const char hash_js[] = "// FNV-1a: readers and writers must use the same function.\n"
                              "function suffix(text) {\n"
                              "  let h = 0x811c9dc5;\n"
                              "  for (const byte of new TextEncoder().encode(text)) h = Math.imul(h ^ byte, 0x01000193) >>> 0;\n"
                              "  return 1 + (h % 400);\n"
                              "}\n";
static const char hash_python[] = "def suffix(text):  # FNV-1a: readers and writers must use the same function\n"
                                  "    h = 0x811C9DC5\n"
                                  "    for byte in text.encode():\n"
                                  "        h = ((h ^ byte) * 0x01000193) & 0xFFFFFFFF\n"
                                  "    return 1 + h % 400\n";
static const char hash_c[] = "/* FNV-1a: readers and writers must use the same function. */\n"
                             "static unsigned suffix(const char *text) {\n"
                             "    uint32_t h = 0x811c9dc5;\n"
                             "    for (; *text; text++) {\n"
                             "        h = (h ^ (unsigned char)*text) * 0x01000193;\n"
                             "    }\n"
                             "    return 1 + h % 400;\n"
                             "}\n";

/* item["a"]["b"], for the steps of a path. */
static void add_access(buf *out, slice path) {
    arena a = arena_init();
    doc_path parsed;
    buf_add_lit(out, "item");
    if (doc_path_parse(&a, path, &parsed) == OK) {
        for (size_t i = 0; i < parsed.steps_n; i++) {
            buf_add_byte(out, '[');
            json_add_string(out, parsed.steps[i]);
            buf_add_byte(out, ']');
        }
    }
    arena_free(&a);
}

static void add_javascript(buf *out, const advise_key *k) {
    buf_addf(out, "JavaScript\n%s", k->kind == ADVISE_PRECOMPUTED ? hash_js : "");
    buf_add_lit(out, "item.partitionKey = `${");
    add_access(out, k->paths[0]);
    if (k->kind == ADVISE_RANDOM) {
        buf_add_lit(out, "}.${1 + Math.floor(Math.random() * 400)}`;\n");
        return;
    }
    buf_addf(out, "%s", k->kind == ADVISE_PRECOMPUTED ? "}.${suffix(String(" : "}-${");
    add_access(out, k->paths[1]);
    buf_addf(out, "%s`;\n", k->kind == ADVISE_PRECOMPUTED ? "))}" : "}");
}

static void add_python(buf *out, const advise_key *k) {
    buf_addf(out, "\nPython\n%s", k->kind == ADVISE_PRECOMPUTED ? hash_python : k->kind == ADVISE_RANDOM ? "import random\n" : "");
    buf_add_lit(out, "item[\"partitionKey\"] = \"{}");
    buf_addf(out, "%s{}\".format(", k->kind == ADVISE_CONCATENATED ? "-" : ".");
    add_access(out, k->paths[0]);
    if (k->kind == ADVISE_RANDOM) {
        buf_add_lit(out, ", random.randint(1, 400))\n");
        return;
    }
    buf_addf(out, ", %s", k->kind == ADVISE_PRECOMPUTED ? "suffix(str(" : "");
    add_access(out, k->paths[1]);
    buf_addf(out, "%s\n", k->kind == ADVISE_PRECOMPUTED ? ")))" : ")");
}

/* In C the values are variables, since there is no one way to hold an item. */
static void add_c(buf *out, const advise_key *k) {
    buf_addf(out, "\nC\n%schar key[2048];\n", k->kind == ADVISE_PRECOMPUTED ? hash_c : "");
    buf_addf(out, "// first: %.*s", (int)k->paths[0].n, k->paths[0].p);
    if (k->n > 1) {
        buf_addf(out, ", second: %.*s", (int)k->paths[1].n, k->paths[1].p);
    }
    buf_addf(out, "\nsnprintf(key, sizeof key, \"%s\", first, %s);\n", k->kind == ADVISE_CONCATENATED ? "%s-%s" : "%s.%u",
             k->kind == ADVISE_CONCATENATED  ? "second"
             : k->kind == ADVISE_PRECOMPUTED ? "suffix(second)"
                                             : "1 + arc4random_uniform(400)");
}

void advise_add_code(buf *out, const advise_key *k) {
    if (k->kind == ADVISE_PATH || k->kind == ADVISE_HIERARCHICAL) {
        return;
    }
    add_javascript(out, k);
    add_python(out, k);
    add_c(out, k);
}
