#include "tool/failures.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "doc/json.h"
#include "doc/path.h"
#include "tool/lines.h"

static bool tell(const failures *f) {
    fprintf(stderr, "tesela: %s cannot be written: %s.\n", f->path, strerror(errno));
    return false;
}

static uint64_t line_of(slice json) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    doc_element e;
    uint64_t line = UINT64_MAX;
    if (json_to_bson(json, NULL, &bson, &root, NULL) == OK && doc_find_member(buf_view(&bson), SLICE_LIT("line"), &e)) {
        line = e.type == BSON_TYPE_INT32   ? (uint64_t)doc_load_i32(e.value.p)
               : e.type == BSON_TYPE_INT64 ? (uint64_t)doc_load_i64(e.value.p)
                                           : line;
    }
    buf_free(&bson);
    return line;
}

/* Keeps the failures before `line`. A line that a crash has cut goes too. */
static bool keep(failures *f, uint64_t line) {
    lines l;
    buf kept = buf_init(BUF_NO_LIMIT);
    if (access(f->path, F_OK) != 0) {
        return true;
    }
    if (!lines_open(&l, f->path, (size_t)3 * LIMIT_ITEM_BYTES)) {
        return false;
    }
    buf_addf(&kept, "%s.new", f->path);
    buf_add_byte(&kept, '\0');
    FILE *out = fopen(kept.p, "wb");
    while (out && lines_next(&l)) {
        if (line_of(buf_view(&l.line)) < line) {
            fwrite(l.line.p, 1, l.line.n, out);
            fputc('\n', out);
        }
    }
    lines_close(&l);
    bool good = out && fclose(out) == 0 && rename(kept.p, f->path) == 0;
    buf_free(&kept);
    return good || tell(f);
}

bool failures_open(failures *f, const char *path, uint64_t line) {
    *f = (failures){.path = strdup(path)};
    if (line == 0) {
        unlink(path);
        return true;
    }
    return keep(f, line);
}

void failures_add(failures *f, uint64_t line, int status, int substatus, const char *reason, slice item) {
    buf text = buf_init(BUF_NO_LIMIT);
    f->wanted = true;
    if (!f->file) {
        f->file = fopen(f->path, "ab");
    }
    buf_addf(&text, "{\"line\":%lu,\"status\":%d,\"subStatus\":%d,\"reason\":", (unsigned long)line, status, substatus);
    json_add_string(&text, slice_str(reason));
    buf_add_lit(&text, ",\"item\":");
    json_add_string(&text, bson_utf8_validate(item.p, item.n, true) ? item : SLICE_LIT("not UTF-8"));
    buf_add_lit(&text, "}\n");
    if (f->file) {
        fwrite(text.p, 1, text.n, f->file);
    }
    buf_free(&text);
}

bool failures_sync(failures *f) {
    bool good = !f->wanted || (f->file && fflush(f->file) == 0 && fsync(fileno(f->file)) == 0 && !ferror(f->file));
    return good || tell(f);
}

void failures_close(failures *f) {
    if (f->file) {
        fclose(f->file);
    }
    free(f->path);
}
