#include "data.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "graph.h"

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const char *const given_names[] = {"Alba",  "Bruno",  "Carmen", "Diego",  "Elena",  "Felipe", "Gloria", "Hugo",
                                          "Irene", "Javier", "Karina", "Lucas",  "Marta",  "Nadia",  "Oscar",  "Paula",
                                          "Quino", "Raquel", "Sergio", "Teresa", "Ulises", "Vera",   "Walter", "Ximena",
                                          "Yago",  "Zoe",    "Amparo", "Benito", "Clara",  "Damian", "Esther", "Fermin"};
static const char *const surnames[] = {"Castellanos", "Villanueva", "Echeverria", "Montenegro",  "Salvatierra", "Benavides",  "Altamirano",
                                       "Cienfuegos",  "Barrientos", "Valenzuela", "Quintanilla", "Arredondo",   "Bustamante", "Covarrubias",
                                       "Dominguez",   "Escalante",  "Fuentes",    "Guerrero",    "Hinojosa",    "Iglesias",   "Jaramillo",
                                       "Ledesma",     "Maldonado",  "Navarrete",  "Olivares",    "Palomino",    "Quiroga",    "Robledo",
                                       "Santamaria",  "Trujillo",   "Urrutia",    "Zambrano"};
static const char *const town_kinds[] = {"San",    "Santa",  "Villa", "Puerto", "Monte",  "Rio",  "Valle", "Campo", "Torre",
                                         "Fuente", "Puente", "Lago",  "Costa",  "Sierra", "Vega", "Prado", "Cerro", "Arroyo",
                                         "Playa",  "Isla",   "Cabo",  "Bahia",  "Alto",   "Bajo", "Nuevo"};
static const char *const town_names[] = {"Alegre",  "Blanco",  "Claro",     "Dorado",   "Estrella", "Florido", "Grande",  "Hermoso",
                                         "Ibero",   "Jardin",  "Laurel",    "Marino",   "Nevado",   "Olivo",   "Paraiso", "Quemado",
                                         "Real",    "Sereno",  "Tranquilo", "Umbrio",   "Verde",    "Yermo",   "Zafiro",  "Aurora",
                                         "Brisa",   "Cipres",  "Delfin",    "Encina",   "Fresno",   "Girasol", "Higuera", "Lirio",
                                         "Manzano", "Naranjo", "Oriente",   "Poniente", "Roble",    "Sauce",   "Trebol",  "Viento"};
static const char *const countries[] = {
    "Argentina", "Australia", "Austria",      "Belgium",  "Bolivia",     "Brazil",      "Canada",  "Chile",    "Colombia",    "Costa Rica",
    "Cuba",      "Denmark",   "Ecuador",      "Egypt",    "El Salvador", "Finland",     "France",  "Germany",  "Greece",      "Guatemala",
    "Honduras",  "Iceland",   "India",        "Ireland",  "Italy",       "Japan",       "Kenya",   "Mexico",   "Morocco",     "Netherlands",
    "Nicaragua", "Norway",    "Panama",       "Paraguay", "Peru",        "Philippines", "Poland",  "Portugal", "Puerto Rico", "Romania",
    "Senegal",   "Singapore", "South Africa", "Spain",    "Sweden",      "Switzerland", "Tunisia", "Turkey",   "Uruguay",     "Venezuela"};
static const char *const statuses[] = {"active", "pending", "suspended", "closed", "archived"};
static const char *const words[] = {
    "sensor",    "river", "delivered", "warm",     "signal", "harbour",  "value",  "morning",  "between", "station", "copper",
    "valley",    "is",    "the",       "a",        "window", "measured", "after",  "quiet",    "bridge",  "north",   "orange",
    "and",       "of",    "to",        "drifts",   "slowly", "battery",  "level",  "reported", "again",   "under",   "heavy",
    "rain",      "with",  "small",     "error",    "garden", "pump",     "number", "changed",  "before",  "noon",    "since",
    "yesterday", "every", "second",    "reading",  "was",    "taken",    "near",   "market",   "square",  "by",      "someone",
    "who",       "knows", "these",     "machines", "well",   "enough",   "for",    "summer",   "work"};

uint64_t data_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t data_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static char *add(char *p, const char *text, size_t n) {
    memcpy(p, text, n);
    return p + n;
}

static char *add_text(char *p, const char *text) {
    return add(p, text, strlen(text));
}

static char *add_hex(char *p, uint64_t v, int digits) {
    for (int i = digits - 1; i >= 0; i--, v >>= 4) {
        p[i] = "0123456789abcdef"[v & 15];
    }
    return p + digits;
}

char *data_add_digits(char *p, uint64_t v, int digits) {
    for (int i = digits - 1; i >= 0; i--, v /= 10) {
        p[i] = (char)('0' + v % 10);
    }
    return p + digits;
}

char *data_add_number(char *p, uint64_t v) {
    int digits = 1;
    for (uint64_t rest = v / 10; rest; rest /= 10) {
        digits++;
    }
    return data_add_digits(p, v, digits);
}

static char *add_guid(char *p, uint64_t number) {
    uint64_t a = data_mix(number), b = data_mix(a ^ number);
    p = add_hex(p, a >> 32, 8);
    *p++ = '-';
    p = add_hex(p, a >> 16, 4);
    *p++ = '-';
    p = add_hex(p, a, 4);
    *p++ = '-';
    p = add_hex(p, b >> 48, 4);
    *p++ = '-';
    return add_hex(p, b, 12);
}

/* ---- plain items ---- */

#define ALPHABET "abcdefghijklmnopqrstuvwxyz"
#define ALPHABETS ALPHABET ALPHABET ALPHABET

/* Letters that differ from item to item, eight for each turn of the mixer. */
static char *add_letters(char *p, uint64_t number, size_t n) {
    static const char letters[] = ALPHABETS ALPHABETS ALPHABETS ALPHABET; /* of a byte: the letter of its value modulo 26 */
    for (size_t i = 0; i < n; i += 8) {
        uint64_t bits = data_mix(number * 1024 + i);
        for (size_t j = i; j < i + 8 && j < n; j++, bits >>= 8) {
            p[j] = letters[bits & 0xff];
        }
    }
    return p + n;
}

static size_t plain_item(uint64_t number, size_t bytes, char *out) {
    char *p = add_guid(add_text(out, "{\"id\":\""), number);
    p = add_guid(add_text(p, "\",\"pk\":\""), number);
    p = data_add_number(add_text(p, "\",\"number\":"), number);
    p = data_add_number(add_text(p, ",\"price\":"), number % 100000 / 100);
    p = data_add_digits(add_text(p, "."), number % 100, 2);
    p = add_text(add_text(p, ",\"active\":"), number % 2 ? "true" : "false");
    p = add_text(p, ",\"city\":\"Madrid\",\"tags\":[\"alpha\",\"beta\"],\"address\":{\"street\":\"Calle de Toledo ");
    p = data_add_digits(add_text(data_add_number(p, number % 200), "\",\"zip\":\""), number % 52000, 5);
    p = add_text(p, "\"},\"note\":\"");
    size_t used = (size_t)(p - out) + 2;
    if (used < bytes) {
        p = add_letters(p, number, bytes - used);
    }
    return (size_t)(add(p, "\"}", 2) - out);
}

/* ---- records ---- */

/* One of n, by the item's number and by what it is for. */
static size_t choose(uint64_t number, unsigned salt, size_t n) {
    return (size_t)(data_mix(number * 64 + salt) % n);
}

static char *add_email(char *p, uint64_t number) {
    p = add_text(p, given_names[choose(number, 1, COUNT(given_names))]);
    *p++ = '.';
    p = add_text(p, surnames[choose(number, 2, COUNT(surnames))]);
    *p++ = '.';
    p = data_add_digits(p, number, 9);
    return add_text(p, "@example.com");
}

static char *add_name(char *p, uint64_t number) {
    p = add_text(p, given_names[choose(number, 1, COUNT(given_names))]);
    *p++ = ' ';
    return add_text(p, surnames[choose(number, 2, COUNT(surnames))]);
}

static char *add_city(char *p, uint64_t number) {
    size_t city = choose(number, 3, DATA_CITIES);
    p = add_text(p, town_kinds[city % COUNT(town_kinds)]);
    *p++ = ' ';
    return add_text(p, town_names[city / COUNT(town_kinds)]);
}

static char *add_tag(char *p, uint64_t number, unsigned which) {
    return data_add_digits(add_text(p, "label-"), choose(number, 6 + which, DATA_TAGS), 4);
}

/* 37 seconds and some milliseconds after the one before. */
static char *add_created(char *p, uint64_t number) {
    struct tm t;
    time_t seconds = (time_t)(1672531200 + number * 37);
    gmtime_r(&seconds, &t);
    p = data_add_digits(p, (uint64_t)t.tm_year + 1900, 4);
    *p++ = '-';
    p = data_add_digits(p, (uint64_t)t.tm_mon + 1, 2);
    *p++ = '-';
    p = data_add_digits(p, (uint64_t)t.tm_mday, 2);
    *p++ = 'T';
    p = data_add_digits(p, (uint64_t)t.tm_hour, 2);
    *p++ = ':';
    p = data_add_digits(p, (uint64_t)t.tm_min, 2);
    *p++ = ':';
    p = data_add_digits(p, (uint64_t)t.tm_sec, 2);
    *p++ = '.';
    p = data_add_digits(p, choose(number, 10, 1000), 3);
    *p++ = 'Z';
    return p;
}

static char *add_value(char *p, data_field field, uint64_t number) {
    switch (field) {
    case DATA_ID:
        return add_guid(p, number);
    case DATA_TENANT:
        return add_text(p, "contoso");
    case DATA_DEVICE:
        return data_add_digits(add_text(p, "device-"), number % DATA_DEVICES, 4);
    case DATA_NAME:
        return add_name(p, number);
    case DATA_EMAIL:
        return add_email(p, number);
    case DATA_CITY:
        return add_city(p, number);
    case DATA_COUNTRY:
        return add_text(p, countries[choose(number, 4, COUNT(countries))]);
    case DATA_STATUS:
        return add_text(p, statuses[choose(number, 5, COUNT(statuses))]);
    case DATA_TAG:
        return add_tag(p, number, 0);
    case DATA_CREATED:
        return add_created(p, number);
    case DATA_LOAD:
        return p + sprintf(p, "%zu", choose(number, 11, 1000000));
    }
    return p;
}

size_t data_value(data_field field, uint64_t number, char *out) {
    return (size_t)(add_value(out, field, number) - out);
}

/* Words with a space between, cut to n bytes. */
static char *add_words(char *p, uint64_t number, unsigned salt, size_t n) {
    char *end = p + n;
    for (uint64_t bits = data_mix(number * 64 + salt), i = 0; p < end; i++, bits = i % 8 ? bits >> 8 : data_mix(bits + i)) {
        const char *word = words[bits % COUNT(words)];
        size_t length = strlen(word), room = (size_t)(end - p);
        p = add(p, word, length < room ? length : room);
        if (p < end) {
            *p++ = ' ';
        }
    }
    return p;
}

static char *add_member(char *p, const char *name, data_field field, uint64_t number) {
    p += sprintf(p, ",\"%s\":\"", name);
    p = add_value(p, field, number);
    *p++ = '"';
    return p;
}

static char *add_tags(char *p, uint64_t number) {
    p = add_text(p, ",\"tags\":[\"");
    p = add_text(add_tag(p, number, 0), "\",\"");
    p = add_text(add_tag(p, number, 1), "\",\"");
    return add_text(add_tag(p, number, 2), "\"]");
}

static char *add_numbers(char *p, uint64_t number) {
    p += sprintf(p, ",\"sequence\":%llu,\"age\":%zu,\"load\":", (unsigned long long)number, 18 + choose(number, 12, 70));
    p = add_value(p, DATA_LOAD, number);
    return p + sprintf(p, ",\"price\":%.2f,\"temperature\":%.4f,\"active\":%s,\"verified\":%s", (double)choose(number, 13, 1000000) / 100,
                       (double)choose(number, 14, 600000) / 10000 - 20, choose(number, 15, 2) ? "true" : "false",
                       choose(number, 16, 10) ? "true" : "false");
}

static char *add_address(char *p, uint64_t number) {
    p += sprintf(p, ",\"address\":{\"street\":\"Calle de %s %zu\",\"zip\":\"%05zu\",\"geo\":{\"lat\":%.4f,\"lon\":%.4f},\"how\":\"",
                 town_names[choose(number, 17, COUNT(town_names))], choose(number, 18, 200), choose(number, 19, 52000),
                 (double)choose(number, 20, 1800000) / 10000 - 90, (double)choose(number, 21, 3600000) / 10000 - 180);
    return add_text(add_words(p, number, 22, 60), "\"}");
}

/* The last of the 20 properties is as long as it takes to come to 1 KB. */
static size_t record(uint64_t number, char *out) {
    static const struct {
        const char *name;
        data_field field;
    } strings[] = {{"tenant", DATA_TENANT}, {"device", DATA_DEVICE},   {"name", DATA_NAME},     {"email", DATA_EMAIL},
                   {"city", DATA_CITY},     {"country", DATA_COUNTRY}, {"status", DATA_STATUS}, {"created", DATA_CREATED}};
    char *p = add_text(add_guid(add_text(out, "{\"id\":\""), number), "\"");
    for (size_t i = 0; i < COUNT(strings); i++) {
        p = add_member(p, strings[i].name, strings[i].field, number);
    }
    p = add_address(add_numbers(add_tags(p, number), number), number);
    p = add_text(add_words(add_text(p, ",\"summary\":\""), number, 23, 80), "\"");
    p = add_text(p, ",\"text\":\"");
    p = add_words(p, number, 24, DATA_RECORD_BYTES - 2 - (size_t)(p - out));
    return (size_t)(add(p, "\"}", 2) - out);
}

/* ---- both ---- */

size_t data_id(data_kind kind, uint64_t number, char *out) {
    return kind == DATA_GRAPH ? graph_id(number, out) : data_value(DATA_ID, number, out);
}

size_t data_key(data_kind kind, uint64_t number, char *out) {
    static const data_field fields[] = {DATA_ID, DATA_ID, DATA_DEVICE, DATA_TENANT};
    return kind == DATA_GRAPH ? graph_key(number, out) : data_value(fields[kind], number, out);
}

const char *data_key_path(data_kind kind) {
    static const char *const paths[] = {"/pk", "/id", "/device", "/tenant", "/pk"};
    return paths[kind];
}

size_t data_item(data_kind kind, uint64_t number, size_t bytes, char *out) {
    if (kind == DATA_GRAPH) {
        return graph_item(number, out);
    }
    return kind == DATA_PLAIN ? plain_item(number, bytes, out) : record(number, out);
}
