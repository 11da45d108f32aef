/* mql_cases_pipeline.h — a part of mql_cases.c: the section `pipeline`.
 *
 * A case is run in several ways, which must give the same: the input pushed at once or one document at a time, all stages by the flow or
 * the first ones by the source. */

typedef struct pipeline_way {
    bool by_source, at_once;
} pipeline_way;

/* Pushes the documents of a collection that match: the lines `NAME: {…}`. */
static err push_found(test_case *c, mql_flow *f) {
    mql_lookup lookup;
    const mql_match *m = NULL;
    mql_scope s = scope_of(c);
    mql_flow_lookup(f, &lookup);
    err e = lookup.filter.n ? mql_match_parse(&s, lookup.filter, &m) : OK;
    for (size_t i = 0; e == OK && i < c->n; i++) {
        if (!slice_eq(c->lines[i].key, lookup.collection)) {
            continue;
        }
        mql_run r = run_of(c, document_of(c, &c->lines[i]));
        bool matches = true;
        e = m ? mql_matches(&r, m, &matches, NULL) : OK;
        e = e == OK && matches ? mql_flow_lookup_push(f, r.root.bytes) : e;
    }
    mql_flow_lookup_end(f);
    return e;
}

/* The documents that the source gives: filtered, sorted, cut. */
static size_t source_documents(test_case *c, const mql_source *source, slice *documents) {
    slice keys[LINES_MAX];
    size_t n = 0, kept = 0;
    mql_sort sort = {0};
    if (source->sort.n) {
        assert_int_equal(mql_sort_parse(c->op, source->sort, &sort), OK);
    }
    for (size_t i = 0; i < c->n; i++) {
        mql_run r = run_of(c, key_is(&c->lines[i], "in") ? document_of(c, &c->lines[i]) : SLICE_EMPTY);
        bool matches = r.root.bytes.n > 0;
        if (matches && source->match) {
            assert_int_equal(mql_matches(&r, source->match, &matches, NULL), OK);
        }
        if (!matches) {
            continue;
        }
        slice key = SLICE_EMPTY;
        if (sort.n) {
            assert_int_equal(mql_sort_key(&r, &sort, r.root.bytes, &key), OK);
        }
        size_t at = n++;
        for (; at > 0 && sort.n && mql_sort_compare(&sort, NULL, keys[at - 1], key) > 0; at--) {
            keys[at] = keys[at - 1];
            documents[at] = documents[at - 1];
        }
        keys[at] = key;
        documents[at] = r.root.bytes;
    }
    for (size_t i = source->skip; i < n && kept < source->limit; i++) {
        documents[kept++] = source->counts_only ? SLICE_LIT("\5\0\0\0\0") : documents[i];
    }
    return kept;
}

/* Steps the flow to its end, and compares its documents with the lines `out:`. */
static err run_flow(test_case *c, mql_flow *f, const slice *input, size_t n, bool at_once) {
    mql_run r = run_of(c, SLICE_EMPTY);
    mql_need need = MQL_NEED_INPUT;
    size_t line_at = 0, pushed = 0;
    while (need != MQL_NEED_NOTHING) {
        TRY(mql_flow_step(f, &r, &need));
        if (need == MQL_NEED_INPUT && pushed == n) {
            mql_flow_end(f);
        } else if (need == MQL_NEED_INPUT) {
            do {
                TRY(mql_flow_push(f, input[pushed++]));
            } while (at_once && pushed < n);
        } else if (need == MQL_NEED_LOOKUP) {
            TRY(push_found(c, f));
        } else if (need == MQL_NEED_TAKE) {
            while (line_at < c->n && !key_is(&c->lines[line_at], "out")) {
                line_at++;
            }
            if (line_at < c->n) {
                check_document(c, &c->lines[line_at++], mql_flow_take(f));
            } else if (!find_line(c, "any")) {
                fault(c, c->head, "gives more documents");
            }
        }
    }
    for (; line_at < c->n; line_at++) {
        if (key_is(&c->lines[line_at], "out")) {
            fault(c, &c->lines[line_at], "is not given");
        }
    }
    return OK;
}

static void run_way(test_case *c, mql_scope *s, const mql_pipeline *p, pipeline_way way) {
    mql_source source;
    slice documents[LINES_MAX];
    size_t from;
    budget memory = budget_init(NULL, 64 << 20);
    err e = mql_pipeline_source(s, p, &source, &from);
    assert_int_equal(e, OK);
    if (!way.by_source) {
        from = 0;
        source = (mql_source){.limit = UINT64_MAX};
    }
    size_t n = source_documents(c, &source, documents);
    mql_flow *f = mql_flow_begin(p, from, &memory);
    c->op->detail_n = 0;
    c->op->protocol_code = 0;
    e = run_flow(c, f, documents, n, way.at_once);
    check_error(c, c->head, e);
    mql_flow_free(f);
    if (memory.used) {
        fault(c, c->head, "%zu bytes are not given back", memory.used);
    }
}

/* `source: {…}` says what the source does: filter, sort, skip, limit, counts. */
static void check_source(test_case *c, mql_scope *s, const mql_pipeline *p, const line *l) {
    mql_source source;
    size_t stages;
    buf out = buf_init(BUF_NO_LIMIT);
    mql_builder b = mql_build(&out);
    slice is = SLICE_EMPTY;
    assert_int_equal(mql_pipeline_source(s, p, &source, &stages), OK);
    mql_add(&b, SLICE_LIT("filter"), source.filter.n ? mql_document(source.filter) : mql_missing());
    mql_add(&b, SLICE_LIT("sort"), source.sort.n ? mql_document(source.sort) : mql_missing());
    mql_add(&b, SLICE_LIT("skip"), source.skip ? mql_int32(c->memory, (int32_t)source.skip) : mql_missing());
    mql_add(&b, SLICE_LIT("limit"), source.limit != UINT64_MAX ? mql_int32(c->memory, (int32_t)source.limit) : mql_missing());
    mql_add(&b, SLICE_LIT("counts"), source.counts_only ? mql_bool(true) : mql_missing());
    mql_add(&b, SLICE_LIT("stages"), mql_int32(c->memory, (int32_t)stages));
    assert_true(mql_keep(c->memory, &b, &is));
    buf_free(&out);
    check_document(c, l, is);
}

static void run_pipeline(test_case *c) {
    static const pipeline_way ways[] = {{false, true}, {false, false}, {true, true}, {true, false}};
    mql_scope s = scope_of(c);
    const mql_pipeline *p;
    const line *source = find_line(c, "source");
    err e = mql_pipeline_parse(&s, document_of(c, c->head), &p);
    if (e != OK) {
        check_error(c, c->head, e);
        return;
    }
    assert_true(s.slots <= VARIABLES);
    if (source) {
        check_source(c, &s, p, source);
    }
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !c->faults; i++) {
        run_way(c, &s, p, ways[i]);
    }
}
