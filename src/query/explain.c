#include "query/explain.h"

#include "doc/json.h"

enum { PARTS_SHOWN = 20 };

/* ---- formatting ---- */

/* 1,234,567 */
static void add_count(buf *out, uint64_t n) {
    if (n >= 1000) {
        add_count(out, n / 1000);
        buf_addf(out, ",%03u", (unsigned)(n % 1000));
    } else {
        buf_add_u64(out, n);
    }
}

/* "no items", "1 item", "2,000 items" */
static void add_counted(buf *out, uint64_t n, const char *one, const char *many) {
    if (n == 0) {
        buf_add_lit(out, "no");
    } else {
        add_count(out, n);
    }
    buf_addf(out, " %s", n == 1 ? one : many);
}

static void add_ms(buf *out, uint64_t us) {
    buf_addf(out, "%.*f ms", us < 10000 ? 2 : us < 1000000 ? 1 : 0, (double)us / 1000);
}

/* The text of a demand's condition, if it is among those listed. */
static slice text_of(const query_trace *t, const find_demand *d) {
    for (size_t i = 0; d && i < t->where_n; i++) {
        if (t->where[i].expr == d->condition) {
            return t->where[i].text;
        }
    }
    return SLICE_LIT("a condition");
}

static const char *way_name(const query_part *part) {
    static const char *const names[] = {[WAY_SCAN] = "all",        [WAY_BY_NUMBER] = "index", [WAY_IN_ORDER] = "order",
                                        [WAY_COVERED] = "entries", [WAY_NEAREST] = "nearest", [WAY_BY_KEY] = "keys"};
    return names[part->way];
}

/* ---- one range or partition ---- */

static void add_found(buf *out, const query_trace *t, const query_part *part) {
    slice used = text_of(t, part->used);
    buf_addf(out, "the index finds what has %.*s", (int)used.n, used.p);
    for (size_t i = 0; i < part->demands_n; i++) {
        if (part->intersected & 1u << i) {
            slice other = text_of(t, &part->demands[i]);
            buf_addf(out, ", and of that only what has %.*s", (int)other.n, other.p);
        }
    }
}

/* Why all items were read. */
static query_reason_id why_all(const query_explained *e, const query_part *part) {
    const query *q = e->page->ask.query;
    return q->select->order_by_rank       ? REASON_ALL_RANK
           : e->page->ask.trace->no_index ? REASON_ALL_OFF
           : part->small                  ? REASON_ALL_SMALL
           : !part->asked                 ? REASON_ALL_NEEDED
           : part->too_many               ? REASON_ALL_TOO_MANY
           : q->select->where             ? REASON_ALL_UNANSWERED
                                          : REASON_ALL_NO_CONDITION;
}

/* Why the vector graph was not used. */
static query_reason_id why_not_nearest(const query_part *part) {
    switch (part->graph.state) {
    case NEAREST_FOUND:
        return REASON_GRAPH_TOO_FEW;
    case NEAREST_MOVING:
        return REASON_GRAPH_MOVING;
    case NEAREST_BUILDING:
        return REASON_GRAPH_BUILDING;
    case NEAREST_NO_MEMORY:
        return REASON_GRAPH_NO_MEMORY;
    case NEAREST_UNFIT:
        return REASON_GRAPH_UNFIT;
    default:
        return REASON_GRAPH_NOT_WORTH;
    }
}

static query_reason why_scanned(const query_explained *e, const query_part *part) {
    if (part->vector.n && !part->small) {
        return (query_reason){.id = why_not_nearest(part), .name = part->vector, .n = part->graph.known};
    }
    return (query_reason){.id = why_all(e, part)};
}

static void add_nearest(buf *out, const query_part *part) {
    buf_addf(out, "the nearest are found by the graph of %.*s, which has ", (int)part->vector.n, part->vector.p);
    add_counted(out, part->graph.known, "vector", "vectors");
    if (part->graph.others) {
        buf_add_lit(out, ", and ");
        add_counted(out, part->graph.others, "item that it does not have yet", "items that it does not have yet");
    }
}

static void add_way(buf *out, const query_explained *e, const query_part *part) {
    if (part->way == WAY_NEAREST) {
        add_nearest(out, part);
    } else if (part->way == WAY_BY_NUMBER) {
        add_found(out, e->page->ask.trace, part);
    } else if (part->way == WAY_IN_ORDER) {
        buf_addf(out, "the index %.*s is walked%s until the page is full", (int)part->order.n, part->order.p,
                 part->backward ? " backward" : "");
    } else if (part->way == WAY_BY_KEY) {
        buf_addf(out, "the index %.*s is walked for its values, and their items are loaded, until the page is full", (int)part->order.n,
                 part->order.p);
    } else if (part->way == WAY_COVERED) {
        buf_add_lit(out, "the index tells all that is asked, and no item is loaded");
        if (part->used) {
            buf_add_lit(out, ": ");
            add_found(out, e->page->ask.trace, part);
        }
    } else {
        query_reason why = why_scanned(e, part);
        query_reason_words(out, &why);
    }
}

static void add_part(buf *out, const query_explained *e, const query_part *part) {
    add_way(out, e, part);
    buf_add_lit(out, "; ");
    if (part->entries) {
        add_counted(out, part->entries, "entry", "entries");
        buf_add_lit(out, " of the index looked at, ");
    }
    if (part->way == WAY_COVERED) {
        add_counted(out, part->done.covered, "item", "items");
        buf_add_lit(out, " told of, ");
    }
    if (part->way != WAY_COVERED || part->done.loaded) {
        add_counted(out, part->done.loaded, "item", "items");
        buf_add_lit(out, " loaded, ");
    }
    add_count(out, part->done.matched);
    buf_addf(out, " %s", part->done.matched == 1 ? "matches" : "match");
    if (part->done.passed) {
        buf_add_lit(out, ", ");
        add_count(out, part->done.passed);
        buf_add_lit(out, " passed by");
    }
    buf_add_byte(out, '.');
}

static void add_where_it_was(buf *out, const query_explained *e, const query_part *part) {
    if (e->partition.n) {
        buf_addf(out, "partition %.*s", slice_shown(e->partition), e->partition.p);
    } else {
        buf_addf(out, "range %u", part->range_id);
    }
    if (part->items) {
        buf_add_lit(out, " (");
        add_counted(out, part->items, "item", "items");
        buf_add_byte(out, ')');
    }
}

/* ---- what would help ---- */

typedef void (*tell)(void *context, const query_reason *advice);

static void advise_index(const query_index_note *note, arena *a, tell say, void *context) {
    buf b = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < note->specs_n; i++) {
        buf_add(&b, ", ", i ? 2 : 0);
        buf_add_slice(&b, note->specs[i]);
    }
    query_reason advice = {.id = note->composite ? REASON_COMPOSITE : REASON_INCLUDE, .name = arena_copy(a, buf_view(&b))};
    buf_free(&b);
    say(context, &advice);
}

static bool calls(const query_expr *e, const char *name) {
    bool found = e->kind == EXPR_CALL && e->function && slice_eq_nocase(slice_str(e->function->name), slice_str(name));
    for (size_t i = 0; i < e->items_n && !found; i++) {
        found = calls(e->items[i], name);
    }
    return found;
}

static void advise(const query_explained *e, tell say, void *context) {
    const query_page *p = e->page;
    arena *a = p->ask.op->arena;
    if (!e->partition.n && p->ask.trace->n > 1) {
        say(context, &(query_reason){.id = REASON_NAME_KEY, .n = p->ask.trace->n});
    }
    for (size_t i = 0; i < p->outcome.indexes_n; i++) {
        if (!p->outcome.indexes[i].used) {
            advise_index(&p->outcome.indexes[i], a, say, context);
        }
    }
    for (size_t i = 0; i < p->ask.trace->where_n; i++) {
        const query_where_part *part = &p->ask.trace->where[i];
        if (!part->answered && (calls(part->expr, "UPPER") || calls(part->expr, "LOWER"))) {
            say(context, &(query_reason){.id = REASON_ONE_CASE});
            return;
        }
    }
}

/* ---- as text ---- */

static void add_head(buf *out, const query_explained *e) {
    const query_page *p = e->page;
    add_counted(out, p->outcome.rows, "row", "rows");
    buf_addf(out, " for %.2f RU in ", e->charge_ru);
    add_ms(out, p->outcome.metrics.took_us + e->compile_us);
    if (p->ask.query->udfs_n) {
        buf_add_lit(out, ", ");
        add_ms(out, p->outcome.metrics.calls_us);
        buf_add_lit(out, " of it for ");
        add_counted(out, p->outcome.metrics.calls, "call of a user-defined function", "calls of user-defined functions");
    }
    buf_addf(out, "%s\n", p->outcome.more ? "; there is more, on another page" : "");
}

/* In a partition's page, a condition on its key is answered by reading that partition. */
static bool names_partition(const query_explained *e, const query_where_part *part) {
    const pkey_definition *key = &e->page->ask.container->key;
    for (size_t i = 0; e->partition.n && part->answered && i < key->n; i++) {
        slice path = key->paths[i].text;
        if (part->path.n == path.n + 2 && slice_starts(part->path, path)) {
            return true;
        }
    }
    return false;
}

static void add_where(buf *out, const query_explained *e) {
    const query_trace *t = e->page->ask.trace;
    for (size_t i = 0; i < t->where_n; i++) {
        const query_where_part *part = &t->where[i];
        buf_addf(out, "  %.*s: ", slice_shown(part->text), part->text.p);
        if (!part->answered) {
            buf_add_lit(out, "asked of each item, since ");
            query_reason_words(out, &part->why);
            buf_add_byte(out, '\n');
            continue;
        }
        if (names_partition(e, part)) {
            buf_add_lit(out, "it names the partition\n");
            continue;
        }
        buf_add_lit(out, "the index answers it");
        if (part->path.n) {
            buf_addf(out, " by %.*s", (int)part->path.n, part->path.p);
        }
        buf_addf(out, "%s\n", part->exact ? "" : ", but for items that only may match");
    }
    if (t->where_more) {
        buf_add_lit(out, "  …\n");
    }
}

typedef struct spoken {
    buf *out;
    bool any;
} spoken;

static void say_line(void *context, const query_reason *advice) {
    spoken *s = context;
    buf_addf(s->out, "%s  ", s->any ? "" : "what would help:\n");
    query_reason_words(s->out, advice);
    buf_add_byte(s->out, '\n');
    s->any = true;
}

void query_explain_words(buf *out, const query_explained *e) {
    const query_trace *t = e->page->ask.trace;
    spoken advice = {out, false};
    add_head(out, e);
    for (size_t i = 0; i < t->n && i < PARTS_SHOWN; i++) {
        add_where_it_was(out, e, &t->parts[i]);
        buf_add_lit(out, ": ");
        add_part(out, e, &t->parts[i]);
        buf_add_byte(out, '\n');
    }
    if (t->n > PARTS_SHOWN) {
        buf_add_lit(out, "… and ");
        add_counted(out, t->n - PARTS_SHOWN, "range more\n", "ranges more\n");
    }
    if (t->n == 0) {
        buf_add_lit(out, "no items were looked at\n");
    }
    if (t->where_n) {
        buf_add_lit(out, "conditions:\n");
        add_where(out, e);
    }
    advise(e, say_line, &advice);
}

/* ---- as JSON ---- */

static void json_text(buf *out, const char *name, slice value) {
    buf_addf(out, ",\"%s\":", name);
    json_add_string(out, value);
}

static void json_count(buf *out, const char *name, uint64_t value) {
    buf_addf(out, ",\"%s\":", name);
    buf_add_u64(out, value);
}

static void json_ms(buf *out, const char *name, uint64_t us) {
    buf_addf(out, ",\"%s\":%.3f", name, (double)us / 1000);
}

static void json_found(buf *out, const query_trace *t, const query_part *part) {
    bool any = false;
    json_text(out, "condition", text_of(t, part->used));
    buf_add_lit(out, ",\"and\":[");
    for (size_t i = 0; i < part->demands_n; i++) {
        if (part->intersected & 1u << i) {
            buf_add(out, ",", any);
            json_add_string(out, text_of(t, &part->demands[i]));
            any = true;
        }
    }
    buf_add_byte(out, ']');
}

static void json_part(buf *out, const query_explained *e, const query_part *part) {
    buf words = buf_init(BUF_NO_LIMIT);
    buf_addf(out, "{\"range\":\"%u\",\"way\":\"%s\"", part->range_id, way_name(part));
    if (part->used) {
        json_found(out, e->page->ask.trace, part);
    } else if (part->way == WAY_BY_KEY) {
        json_text(out, "path", part->order);
    } else if (part->way == WAY_IN_ORDER) {
        json_text(out, "order", part->order);
        buf_addf(out, ",\"backward\":%s", part->backward ? "true" : "false");
    }
    if (part->way == WAY_SCAN) {
        query_reason why = why_scanned(e, part);
        buf_add_lit(out, ",\"reason\":");
        query_reason_json(out, &why);
    } else if (part->way == WAY_NEAREST) {
        json_text(out, "path", part->vector);
        json_count(out, "vectors", part->graph.known);
        json_count(out, "vectorsMissing", part->graph.others);
    }
    json_count(out, "items", part->items);
    json_count(out, "indexEntries", part->entries);
    json_count(out, "itemsLoaded", part->done.loaded);
    json_count(out, "itemsCovered", part->done.covered);
    json_count(out, "itemsMatched", part->done.matched);
    json_count(out, "itemsPassed", part->done.passed);
    add_part(&words, e, part);
    json_text(out, "words", buf_view(&words));
    buf_add_byte(out, '}');
    buf_free(&words);
}

static void json_why(buf *out, const query_reason *why) {
    buf words = buf_init(BUF_NO_LIMIT);
    query_reason_words(&words, why);
    json_text(out, "why", buf_view(&words));
    buf_free(&words);
    buf_add_lit(out, ",\"reason\":");
    query_reason_json(out, why);
}

static void json_where(buf *out, const query_explained *e, const query_where_part *part) {
    buf_add_lit(out, "{\"text\":");
    json_add_string(out, part->text);
    buf_addf(out, ",\"answered\":%s", part->answered ? "true" : "false");
    if (part->answered) {
        buf_addf(out, ",\"exactly\":%s", part->exact ? "true" : "false");
        buf_add_slice(out, names_partition(e, part) ? SLICE_LIT(",\"namesPartition\":true") : SLICE_EMPTY);
    } else {
        json_why(out, &part->why);
    }
    if (part->path.n) {
        json_text(out, "path", part->path);
    }
    buf_add_byte(out, '}');
}

static void json_indexes(buf *out, const query_page *p, bool used) {
    bool any = false;
    buf_addf(out, "\"%s\":[", used ? "utilized" : "potential");
    for (size_t i = 0; i < p->outcome.indexes_n; i++) {
        const query_index_note *note = &p->outcome.indexes[i];
        if (note->used != used) {
            continue;
        }
        buf_addf(out, "%s{\"paths\":[", any ? "," : "");
        for (size_t j = 0; j < note->specs_n; j++) {
            buf_add(out, ",", j > 0);
            json_add_string(out, note->specs[j]);
        }
        buf_addf(out, "],\"impact\":\"%s\"}", note->impact_high ? "High" : "Low");
        any = true;
    }
    buf_add_byte(out, ']');
}

static void say_json(void *context, const query_reason *advice) {
    spoken *s = context;
    buf words = buf_init(BUF_NO_LIMIT);
    query_reason_words(&words, advice);
    buf_add(s->out, ",", s->any);
    json_add_string(s->out, buf_view(&words));
    buf_free(&words);
    s->any = true;
}

static void say_reason(void *context, const query_reason *advice) {
    spoken *s = context;
    buf_add(s->out, ",", s->any);
    query_reason_json(s->out, advice);
    s->any = true;
}

static void json_lines(buf *out, slice lines) {
    bool any = false;
    while (lines.n) {
        const char *end = memchr(lines.p, '\n', lines.n);
        slice line = slice_of(lines.p, end ? (size_t)(end - lines.p) : lines.n);
        buf_add(out, ",", any);
        json_add_string(out, line);
        any = true;
        lines = slice_skip(lines, line.n + 1);
    }
}

static void json_numbers(buf *out, const query_explained *e) {
    const query_page *p = e->page;
    const query_metrics *m = &p->outcome.metrics;
    buf_addf(out, "{\"rows\":%zu,\"more\":%s,\"requestCharge\":%.2f", p->outcome.rows, p->outcome.more ? "true" : "false", e->charge_ru);
    json_ms(out, "tookMs", m->took_us + e->compile_us);
    json_ms(out, "compileMs", e->compile_us);
    json_ms(out, "indexLookupMs", m->index_us);
    json_ms(out, "documentLoadMs", m->load_us);
    json_count(out, "indexEntries", m->entries);
    json_count(out, "itemsRead", m->read);
    json_count(out, "itemsMatched", m->matched);
    json_count(out, "bytesRead", m->read_bytes);
    json_count(out, "bytesReturned", m->rows_bytes);
    if (p->ask.query->udfs_n) {
        json_count(out, "functionCalls", m->calls);
        json_ms(out, "functionMs", m->calls_us);
    }
    buf_add_lit(out, ",\"partitionKey\":");
    buf_add_slice(out, e->partition.n ? e->partition : SLICE_LIT("null"));
}

void query_explain_json(buf *out, const query_explained *e) {
    const query_trace *t = e->page->ask.trace;
    spoken advice = {out, false};
    buf words = buf_init(BUF_NO_LIMIT);
    json_numbers(out, e);
    buf_add_lit(out, ",\"parts\":[");
    for (size_t i = 0; i < t->n; i++) {
        buf_add(out, ",", i > 0);
        json_part(out, e, &t->parts[i]);
    }
    buf_add_lit(out, "],\"conditions\":[");
    for (size_t i = 0; i < t->where_n; i++) {
        buf_add(out, ",", i > 0);
        json_where(out, e, &t->where[i]);
    }
    buf_add_lit(out, "],\"indexes\":{");
    json_indexes(out, e->page, true);
    buf_add_byte(out, ',');
    json_indexes(out, e->page, false);
    buf_add_lit(out, "},\"advice\":[");
    advise(e, say_json, &advice);
    advice.any = false;
    buf_add_lit(out, "],\"adviceReasons\":[");
    advise(e, say_reason, &advice);
    buf_add_lit(out, "],\"words\":[");
    query_explain_words(&words, e);
    json_lines(out, buf_view(&words));
    buf_add_lit(out, "]}\n");
    buf_free(&words);
}
