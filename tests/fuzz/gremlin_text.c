/* A script. It is refused with a message that says where, or it runs on a small graph within bounded memory and turns. A second run of the
 * same script on the same graph, with batches of one, gives as many results, unless it asks for chance, time or writes. */
#include <assert.h>

#include "../unit/gremlin_graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY = 8 * 1024 * 1024, TURNS = 300, RESULTS = 2000 };

typedef struct outcome {
    err code;
    bool cut; /* not run to its end */
    int64_t results;
} outcome;

static outcome run(graph *g, op *o, const gremlin_traversal *t, size_t batch) {
    random_source random;
    random_seed(&random, 1);
    gremlin_run_options options = {.random = &random, .batch = batch, .slice_steps = 200, .loops_max = 40};
    gremlin_run *r = gremlin_run_begin(o, t, &options);
    gremlin_need need = GREMLIN_NEED_TURN;
    outcome found = {OK, true, 0};
    for (int turns = 0; turns < TURNS && found.results < RESULTS && g->vertex_n < 500 && g->edge_n < 500;
         turns += need != GREMLIN_NEED_TAKE) {
        found.code = gremlin_run_step(r, &need);
        if (found.code != OK || need == GREMLIN_NEED_NOTHING) {
            found.cut = false;
            break;
        }
        if (need == GREMLIN_NEED_GRAPH) {
            graph_answer(g, r);
        } else if (need == GREMLIN_NEED_TAKE) {
            int64_t bulk;
            (void)gremlin_run_take(r, &bulk);
            assert(bulk > 0);
            found.results += bulk;
        }
    }
    gremlin_run_free(r);
    return found;
}

static bool is_steady(slice text) {
    static const char *const chancy[] = {"coin", "sample", "shuffle", "timeLimit", "rofile"};
    for (size_t i = 0; i < sizeof chancy / sizeof *chancy; i++) {
        if (memmem(text.p, text.n, chancy[i], strlen(chancy[i]))) {
            return false;
        }
    }
    return true;
}

static void try_traversal(op *o, slice text, const gremlin_traversal *t) {
    graph *g = graph_open("modern");
    outcome first = run(g, o, t, 64);
    graph_close(g);
    assert(first.code == OK || first.code == E_MEMORY || o->detail_n > 0);
    if (first.code != OK || first.cut || t->writes || !is_steady(text)) {
        return;
    }
    g = graph_open("modern");
    o->detail_n = 0;
    outcome second = run(g, o, t, 1);
    graph_close(g);
    assert(second.code != OK || second.cut || second.results == first.results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    slice text = slice_of(data, size);
    budget b = budget_init(NULL, MEMORY);
    arena memory = arena_init_counted(&b);
    op o;
    gremlin_script script;
    op_init(&o, &memory, 0);
    err e = gremlin_parse(&o, &gremlin_limits_of_service, text, gremlin_null(), &script);
    assert(e == OK || e == E_MEMORY || o.detail_n > 0);
    for (size_t i = 0; e == OK && i < script.n && i < 2; i++) {
        o.detail_n = 0;
        try_traversal(&o, text, script.traversals[i]);
        if (b.exceeded) {
            break;
        }
    }
    arena_free(&memory);
    assert(b.used == 0);
    return 0;
}
