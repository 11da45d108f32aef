#include "api/sql/query_metrics.h"

#include "base/base64.h"
#include "base/request_log.h"

static double ms(uint64_t us) {
    return (double)us / 1000;
}

void sql_add_query_metrics(sql_request *q, const query_page *p, uint64_t compile_us) {
    const query_metrics *m = &p->outcome.metrics;
    if (!sql_flag(q, FIELD_QUERY_METRICS)) {
        return;
    }
    buf *out = sql_fields(q);
    buf_addf(out, "x-ms-documentdb-query-metrics: totalExecutionTimeInMs=%.2f;queryCompileTimeInMs=%.2f;", ms(compile_us + m->took_us),
             ms(compile_us));
    buf_add_lit(out, "queryLogicalPlanBuildTimeInMs=0.00;queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;");
    buf_addf(out, "VMExecutionTimeInMs=%.2f;indexLookupTimeInMs=%.2f;documentLoadTimeInMs=%.2f;", ms(m->took_us), ms(m->index_us),
             ms(m->load_us));
    buf_addf(out, "systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=%.2f;", ms(m->calls_us));
    buf_addf(out, "retrievedDocumentCount=%lu;retrievedDocumentSize=%lu;outputDocumentCount=%lu;outputDocumentSize=%lu;",
             (unsigned long)m->read, (unsigned long)m->read_bytes, (unsigned long)m->rows, (unsigned long)m->rows_bytes);
    double ratio = m->read && m->matched < m->read ? (double)m->matched / (double)m->read : 1;
    buf_addf(out, "writeOutputTimeInMs=%.2f;indexUtilizationRatio=%.2f\r\n", ms(m->write_us), ratio);
}

/* ---- which indexes ---- */

static void write_specs(buf *out, const query_index_note *note) {
    for (size_t i = 0; i < note->specs_n; i++) {
        if (i) {
            buf_add_byte(out, ',');
        }
        json_add_string(out, note->specs[i]);
    }
}

static void write_note(buf *out, const query_index_note *note, bool old) {
    buf_add_byte(out, '{');
    if (old && !note->composite) {
        buf_add_lit(out, "\"FilterExpression\":");
        json_add_string(out, note->filter);
        buf_addf(out, ",\"FilterPreciseSet\":%s,", note->precise ? "true" : "false");
    }
    if (note->composite) {
        buf_add_lit(out, "\"IndexSpecs\":[");
        write_specs(out, note);
        buf_add_byte(out, ']');
    } else {
        buf_add_lit(out, "\"IndexSpec\":");
        write_specs(out, note);
    }
    if (old) {
        buf_addf(out, ",\"IndexPreciseSet\":%s,\"IndexImpactScore\":\"%s\"", note->precise ? "true" : "false",
                 note->impact_high ? "High" : "Low");
    }
    buf_add_byte(out, '}');
}

/* Writes the indexes that are used (or would help), single or composite. Returns their number. */
static size_t write_notes(buf *out, const query_page *p, bool used, bool composite, bool old) {
    size_t n = 0;
    buf_add_byte(out, '[');
    for (size_t i = 0; i < p->outcome.indexes_n; i++) {
        const query_index_note *note = &p->outcome.indexes[i];
        if (note->used == used && note->composite == composite) {
            if (n++) {
                buf_add_byte(out, ',');
            }
            write_note(out, note, old);
        }
    }
    buf_add_byte(out, ']');
    return n;
}

/* The request's partition key is an index that was used, by no condition of the query. */
static query_page with_key(sql_request *q, const query_page *p) {
    query_page page = *p;
    const pkey_definition *key = &q->container->key;
    if (!q->key_given || key->n != 1) {
        return page;
    }
    slice *spec = arena_new(q->op.arena, slice);
    *spec = arena_printf(q->op.arena, "%.*s/?", (int)key->paths[0].text.n, key->paths[0].text.p);
    query_index_note *notes = arena_array(q->op.arena, query_index_note, p->outcome.indexes_n + 1);
    notes[0] = (query_index_note){.used = true, .specs = spec, .specs_n = 1, .precise = true, .impact_high = true};
    for (size_t i = 0; i < p->outcome.indexes_n; i++) {
        notes[i + 1] = p->outcome.indexes[i];
    }
    page.outcome.indexes = notes;
    page.outcome.indexes_n++;
    return page;
}

static void write_old(buf *out, const query_page *p) {
    static const char *const names[] = {"UtilizedSingleIndexes", "PotentialSingleIndexes", "UtilizedCompositeIndexes",
                                        "PotentialCompositeIndexes"};
    for (unsigned i = 0; i < 4; i++) {
        buf_addf(out, "%s\"%s\":", i ? "," : "{", names[i]);
        write_notes(out, p, i % 2 == 0, i >= 2, true);
    }
    buf_add_byte(out, '}');
}

static void write_new(buf *out, const query_page *p) {
    for (unsigned i = 0; i < 2; i++) {
        bool used = i == 0;
        buf_addf(out, "%s\"%s\":{\"SingleIndexes\":", i ? "," : "{", used ? "UtilizedIndexes" : "PotentialIndexes");
        write_notes(out, p, used, false, false);
        size_t before = out->n;
        buf_add_lit(out, ",\"CompositeIndexes\":");
        if (write_notes(out, p, used, true, false) == 0) {
            out->n = before;
        }
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, '}');
}

static void add_percent_encoded(buf *out, slice text) {
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool plain =
            (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_' || c == '.' || c == '~';
        if (plain) {
            buf_add_byte(out, (char)c);
        } else {
            buf_addf(out, "%%%02X", c);
        }
    }
}

void sql_add_index_utilization(sql_request *q, const query_page *p) {
    bool new = sql_flag(q, FIELD_INDEX_METRICS_V2);
    if (!new && !sql_flag(q, FIELD_INDEX_METRICS)) {
        return;
    }
    buf json = buf_init(BUF_NO_LIMIT), *out = sql_fields(q);
    if (new) {
        write_new(&json, p);
    } else {
        query_page page = with_key(q, p);
        write_old(&json, &page);
    }
    buf_add_lit(out, "x-ms-cosmos-index-utilization: ");
    (new ? add_percent_encoded : base64_encode)(out, buf_view(&json));
    buf_add_lit(out, "\r\n");
    buf_free(&json);
}

/* ---- slow requests ---- */

/* indexes_used=/city/?,/n/? or indexes_missing=… */
static void add_specs(buf *out, const query_page *p, bool used) {
    const char *before = used ? " indexes_used=" : " indexes_missing=";
    for (size_t i = 0; i < p->outcome.indexes_n; i++) {
        const query_index_note *note = &p->outcome.indexes[i];
        for (size_t j = 0; note->used == used && j < note->specs_n; j++) {
            buf_addf(out, "%s%.*s", before, slice_shown(note->specs[j]), note->specs[j].p);
            before = ",";
        }
    }
}

void sql_explain_slow(sql_request *q, const query_page *p, uint64_t compile_us) {
    const query_metrics *m = &p->outcome.metrics;
    if (!request_log_is_slow(sql_elapsed_us(q))) {
        return;
    }
    buf out = buf_init(BUF_NO_LIMIT);
    buf_addf(&out, "rows=%lu index_entries=%lu items_loaded=%lu bytes_loaded=%lu items_matched=%lu", (unsigned long)p->outcome.rows,
             (unsigned long)m->entries, (unsigned long)m->read, (unsigned long)m->read_bytes, (unsigned long)m->matched);
    buf_addf(&out, " compile_ms=%.2f run_ms=%.2f index_ms=%.2f load_ms=%.2f functions_ms=%.2f", ms(compile_us), ms(m->took_us),
             ms(m->index_us), ms(m->load_us), ms(m->calls_us));
    add_specs(&out, p, true);
    add_specs(&out, p, false);
    q->explanation = arena_copy(q->http->arena, buf_view(&out));
    buf_free(&out);
}
