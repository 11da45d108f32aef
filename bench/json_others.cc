#include "json_others.h"

#include <cstdlib>
#include <jansson.h>
#include <memory>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <simdjson.h>
#include <yajl/yajl_parse.h>

static const char *text;
static size_t text_n;
static std::unique_ptr<simdjson::padded_string> padded;
static simdjson::dom::parser parser;
static std::unique_ptr<rapidjson::Document> tree;
static json_t *jansson_tree;

static void check(bool good) {
    if (!good) {
        std::abort();
    }
}

void others_begin(const char *p, size_t n) {
    json_error_t error;
    text = p;
    text_n = n;
    padded = std::make_unique<simdjson::padded_string>(p, n);
    tree = std::make_unique<rapidjson::Document>();
    tree->Parse(p, n);
    jansson_tree = json_loadb(p, n, 0, &error);
    check(jansson_tree && !tree->HasParseError());
}

void others_end(void) {
    json_decref(jansson_tree);
    tree.reset();
    padded.reset();
}

void others_read_jansson(void) {
    json_error_t error;
    json_t *root = json_loadb(text, text_n, 0, &error);
    check(root != nullptr);
    json_decref(root);
}

void others_read_yajl(void) {
    static const yajl_callbacks nobody = {};
    yajl_handle h = yajl_alloc(&nobody, nullptr, nullptr);
    check(yajl_parse(h, reinterpret_cast<const unsigned char *>(text), text_n) == yajl_status_ok);
    check(yajl_complete_parse(h) == yajl_status_ok);
    yajl_free(h);
}

void others_read_rapidjson(void) {
    rapidjson::Document root;
    constexpr unsigned flags = rapidjson::kParseFullPrecisionFlag | rapidjson::kParseValidateEncodingFlag;
    check(!root.Parse<flags>(text, text_n).HasParseError());
}

void others_read_simdjson(void) {
    check(parser.parse(*padded).error() == simdjson::SUCCESS);
}

void others_write_jansson(void) {
    char *json = json_dumps(jansson_tree, JSON_COMPACT);
    check(json != nullptr);
    free(json);
}

void others_write_rapidjson(void) {
    rapidjson::StringBuffer out;
    rapidjson::Writer<rapidjson::StringBuffer> writer(out);
    tree->Accept(writer);
}
