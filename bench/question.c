#include "question.h"

#include <stdio.h>
#include <string.h>

static const question questions[] = {
    {.name = "email",
     .cosmos = "SELECT * FROM c WHERE c.email = @a",
     .postgres = "SELECT doc FROM items WHERE doc->>'email' = $1",
     .mongo = "{\"find\":\"items\",\"filter\":{\"email\":\"@a\"},\"limit\":100,\"singleBatch\":true}",
     .values = {DATA_EMAIL},
     .values_n = 1,
     .page = 100},
    {.name = "city",
     .cosmos = "SELECT * FROM c WHERE c.city = @a",
     .postgres = "SELECT doc FROM items WHERE doc->>'city' = $1 LIMIT 100",
     .mongo = "{\"find\":\"items\",\"filter\":{\"city\":\"@a\"},\"limit\":100,\"singleBatch\":true}",
     .values = {DATA_CITY},
     .values_n = 1,
     .page = 100},
    {.name = "tag",
     .cosmos = "SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, @a)",
     .postgres = "SELECT doc FROM items WHERE doc @> jsonb_build_object('tags', jsonb_build_array($1::text)) LIMIT 100",
     .mongo = "{\"find\":\"items\",\"filter\":{\"tags\":\"@a\"},\"limit\":100,\"singleBatch\":true}",
     .values = {DATA_TAG},
     .values_n = 1,
     .page = 100},
    {.name = "latest",
     .cosmos = "SELECT TOP 10 * FROM c ORDER BY c.created DESC",
     .postgres = "SELECT doc FROM items ORDER BY doc->>'created' DESC LIMIT 10",
     .mongo = "{\"find\":\"items\",\"sort\":{\"created\":-1},\"limit\":10,\"singleBatch\":true}",
     .page = 100},
    {.name = "oldest",
     .cosmos = "SELECT TOP 10 * FROM c ORDER BY c.created",
     .postgres = "SELECT doc FROM items ORDER BY doc->>'created' LIMIT 10",
     .mongo = "{\"find\":\"items\",\"sort\":{\"created\":1},\"limit\":10,\"singleBatch\":true}",
     .page = 100},
    {.name = "device-oldest",
     .cosmos = "SELECT TOP 10 * FROM c ORDER BY c.created",
     .postgres = "SELECT doc FROM items WHERE pk = $1 ORDER BY doc->>'created' LIMIT 10",
     .kind = DATA_BY_DEVICE,
     .page = 100},
    {.name = "device-count",
     .cosmos = "SELECT VALUE COUNT(1) FROM c WHERE c.status = 'active'",
     .postgres = "SELECT count(*) FROM items WHERE pk = $1 AND doc->>'status' = 'active'",
     .kind = DATA_BY_DEVICE,
     .page = 100},
    {.name = "device",
     .cosmos = "SELECT TOP 10 * FROM c ORDER BY c.created DESC",
     .postgres = "SELECT doc FROM items WHERE pk = $1 ORDER BY doc->>'created' DESC LIMIT 10",
     .kind = DATA_BY_DEVICE,
     .page = 100},
    {.name = "before",
     .cosmos = "SELECT TOP 10 * FROM c WHERE c.created < @a ORDER BY c.created DESC",
     .postgres = "SELECT doc FROM items WHERE doc->>'created' < $1 ORDER BY doc->>'created' DESC LIMIT 10",
     .kind = DATA_BY_TENANT,
     .values = {DATA_CREATED},
     .values_n = 1,
     .page = 100},
    {.name = "count",
     .cosmos = "SELECT VALUE COUNT(1) FROM c WHERE c.country = @a",
     .postgres = "SELECT count(*) FROM items WHERE doc->>'country' = $1",
     .mongo = "{\"count\":\"items\",\"query\":{\"country\":\"@a\"}}",
     .values = {DATA_COUNTRY},
     .values_n = 1,
     .page = 100},
    {.name = "count-two",
     .cosmos = "SELECT VALUE COUNT(1) FROM c WHERE c.country = @a AND c.status = @b",
     .postgres = "SELECT count(*) FROM items WHERE doc->>'country' = $1 AND doc->>'status' = $2",
     .mongo = "{\"count\":\"items\",\"query\":{\"country\":\"@a\",\"status\":\"@b\"}}",
     .values = {DATA_COUNTRY, DATA_STATUS},
     .values_n = 2,
     .page = 100},
    {.name = "group",
     .cosmos = "SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city",
     .postgres = "SELECT jsonb_build_object('city', doc->>'city', 'n', count(*)) FROM items GROUP BY doc->>'city'",
     .mongo =
         "{\"aggregate\":\"items\",\"pipeline\":[{\"$group\":{\"_id\":\"$city\",\"n\":{\"$sum\":1}}}],\"cursor\":{\"batchSize\":5000}}",
     .page = 2000,
     .whole = true},
    {.name = "sums",
     .cosmos = "SELECT c.city, SUM(c.load) AS n FROM c GROUP BY c.city",
     .postgres = "SELECT jsonb_build_object('city', doc->>'city', 'n', sum((doc->'load')::int)) FROM items GROUP BY doc->>'city'",
     .mongo = "{\"aggregate\":\"items\",\"pipeline\":[{\"$group\":{\"_id\":\"$city\",\"n\":{\"$sum\":\"$load\"}}}],\"cursor\":{"
              "\"batchSize\":5000}}",
     .page = 2000,
     .whole = true},
    {.name = "scan",
     .cosmos = "SELECT c.id FROM c WHERE c.load = @a",
     .postgres = "SELECT jsonb_build_object('id', id) FROM items WHERE (doc->'load')::int = $1::int",
     .values = {DATA_LOAD},
     .values_n = 1,
     .page = 1000,
     .whole = true},
};

enum { QUESTIONS = sizeof questions / sizeof *questions };

const question *question_at(size_t i) {
    return i < QUESTIONS ? &questions[i] : NULL;
}

const question *question_find(const char *name) {
    for (size_t i = 0; i < QUESTIONS; i++) {
        if (strcmp(questions[i].name, name) == 0) {
            return &questions[i];
        }
    }
    return NULL;
}

size_t question_command(const question *q, uint64_t number, char *out) {
    char *p = out;
    for (const char *in = q->mongo; *in;) {
        size_t i = in[0] == '@' && in[1] >= 'a' ? (size_t)(in[1] - 'a') : q->values_n;
        if (i < q->values_n) {
            p += data_value(q->values[i], number, p);
            in += 2;
        } else {
            *p++ = *in++;
        }
    }
    return (size_t)(p - out);
}

size_t question_body(const question *q, uint64_t number, char *out) {
    char value[DATA_VALUE_MAX];
    char *p = out + sprintf(out, "{\"query\":\"%s\",\"parameters\":[", q->cosmos);
    for (unsigned i = 0; i < q->values_n; i++) {
        int n = (int)data_value(q->values[i], number, value);
        const char *quote = q->values[i] == DATA_LOAD ? "" : "\"";
        p += sprintf(p, "%s{\"name\":\"@%c\",\"value\":%s%.*s%s}", i ? "," : "", 'a' + (int)i, quote, n, value, quote);
    }
    return (size_t)(p + sprintf(p, "]}") - out);
}
