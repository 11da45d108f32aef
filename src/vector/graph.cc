// graph.cc — the only file that includes hnswlib, whose header defines functions that are not inline. No exception leaves this file.
#include "vector/graph.h"

#define NO_MANUAL_VECTORIZATION // its prefetching reads beyond the end of a list
#include <hnswlib/hnswlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>

namespace {

// The number of links of a vector, and of candidates among which they are chosen: larger numbers find more, and take longer to build. With
// these, among 20,000 unclustered vectors of 128 dimensions, a list of 200 found 93 % of the ten nearest, one of 400 98 %; in clustered
// data, as real data is, all of them.
constexpr size_t LINKS = 24, LIST_TO_BUILD = 150;

// The range of numbers that can be squared and summed in a float.
constexpr double GREATEST = 1e15, SMALLEST = 1e-15;

enum class shape { good, unfit, nowhere };

double greatest_of(const double *numbers, size_t n) {
    double greatest = 0;
    for (size_t i = 0; i < n; i++) {
        double size = std::fabs(numbers[i]);
        greatest = size > greatest || std::isnan(size) ? size : greatest; // a NaN is kept
    }
    return greatest;
}

// Cosine is the inner product of vectors of length one.
shape to_floats(search_distance distance, const double *numbers, size_t n, float *floats) {
    double greatest = greatest_of(numbers, n), length = 1;
    bool cosine = distance == SEARCH_COSINE;
    if (!std::isfinite(greatest) || (!cosine && (greatest > GREATEST || (greatest > 0 && greatest < SMALLEST)))) {
        return shape::unfit;
    }
    if (cosine && greatest == 0) {
        return shape::nowhere;
    }
    if (cosine) { // after dividing by `greatest`, the length is from 1 to the square root of n
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            sum += numbers[i] / greatest * (numbers[i] / greatest);
        }
        length = std::sqrt(sum);
    }
    for (size_t i = 0; i < n; i++) {
        floats[i] = static_cast<float>(cosine ? numbers[i] / greatest / length : numbers[i]);
    }
    return shape::good;
}

using floats = std::unique_ptr<float[]>;
using node = hnswlib::tableint;

// ---- distances, by SIMD ----

typedef float four __attribute__((vector_size(16)));
typedef float eight __attribute__((vector_size(32)));

template <bool euclidean, typename lanes> inline __attribute__((always_inline)) float summed(const float *a, const float *b, size_t n) {
    constexpr size_t LANES = sizeof(lanes) / sizeof(float), SUMS = 4;
    lanes sums[SUMS] = {};
    float sum = 0;
    size_t i = 0;
    for (; i + LANES * SUMS <= n; i += LANES * SUMS) {
        for (size_t j = 0; j < SUMS; j++) {
            lanes x, y;
            std::memcpy(&x, a + i + LANES * j, sizeof x);
            std::memcpy(&y, b + i + LANES * j, sizeof y);
            sums[j] += euclidean ? (x - y) * (x - y) : x * y;
        }
    }
    lanes all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (size_t j = 0; j < LANES; j++) {
        sum += all[j];
    }
    for (; i < n; i++) {
        sum += euclidean ? (a[i] - b[i]) * (a[i] - b[i]) : a[i] * b[i];
    }
    return euclidean ? sum : 1 - sum;
}

template <bool euclidean> float by_four(const void *a, const void *b, const void *n) {
    return summed<euclidean, four>(static_cast<const float *>(a), static_cast<const float *>(b), *static_cast<const size_t *>(n));
}

#ifdef __x86_64__
template <bool euclidean> __attribute__((target("avx2,fma"))) float by_eight(const void *a, const void *b, const void *n) {
    return summed<euclidean, eight>(static_cast<const float *>(a), static_cast<const float *>(b), *static_cast<const size_t *>(n));
}

template <bool euclidean> hnswlib::DISTFUNC<float> quickest() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? by_eight<euclidean> : by_four<euclidean>;
}
#else
template <bool euclidean> hnswlib::DISTFUNC<float> quickest() {
    return by_four<euclidean>;
}
#endif

class space : public hnswlib::SpaceInterface<float> {
    size_t dimensions;
    bool euclidean;

  public:
    space(size_t n, search_distance distance) : dimensions(n), euclidean(distance == SEARCH_EUCLIDEAN) {
    }
    size_t get_data_size() override {
        return dimensions * sizeof(float);
    }
    hnswlib::DISTFUNC<float> get_dist_func() override {
        return euclidean ? quickest<true>() : quickest<false>();
    }
    void *get_dist_func_param() override {
        return &dimensions;
    }
};

} // namespace

// There is one node for each distinct vector, since equal vectors would be linked only to each other. A node without a label is dead. It
// stays in the graph: if it were moved, links to it would be wrong; if hnswlib marked it deleted, new vectors would not be linked to it.
struct vector_graph {
    search_distance distance;
    size_t dimensions;
    std::unique_ptr<space> measure;
    std::unique_ptr<hnswlib::HierarchicalNSW<float>> links; // hnswlib's labels are our node numbers
    std::vector<uint64_t> label;                            // by node; NO_LABEL if it has none
    std::unordered_map<node, std::vector<uint64_t>> more;   // further labels of nodes that have several
    std::unordered_map<uint64_t, node> node_of;             // by label
    std::unordered_multimap<size_t, node> by_numbers;       // by a hash of the vector's numbers
    size_t dead = 0;
};

static constexpr uint64_t NO_LABEL = UINT64_MAX;
static constexpr node NO_NODE = UINT32_MAX;

static size_t hash_of(const vector_graph *g, const float *numbers) {
    return std::hash<std::string_view>()({reinterpret_cast<const char *>(numbers), g->dimensions * sizeof *numbers});
}

static node node_with(const vector_graph *g, const float *numbers, size_t hash) {
    auto [at, end] = g->by_numbers.equal_range(hash);
    for (; at != end; ++at) {
        if (std::memcmp(g->links->getDataByInternalId(at->second), numbers, g->dimensions * sizeof *numbers) == 0) {
            return at->second;
        }
    }
    return NO_NODE;
}

static node add_node(vector_graph *g, const float *numbers, size_t hash) {
    node made = static_cast<node>(g->label.size());
    g->label.push_back(NO_LABEL);
    g->dead++;
    g->links->addPoint(numbers, made);
    g->links->label_lookup_.erase(made); // not needed: node_of replaces it
    g->by_numbers.emplace(hash, made);
    return made;
}

static void add_label(vector_graph *g, node n, uint64_t label) {
    g->node_of[label] = n;
    if (g->label[n] == NO_LABEL) {
        g->label[n] = label;
        g->dead--;
    } else {
        g->more[n].push_back(label);
    }
}

extern "C" vector_graph *vector_graph_new(search_distance distance, size_t dimensions, size_t list, size_t room) try {
    auto g = std::make_unique<vector_graph>();
    g->distance = distance;
    g->dimensions = dimensions;
    g->measure = std::make_unique<space>(dimensions, distance);
    g->links =
        std::make_unique<hnswlib::HierarchicalNSW<float>>(g->measure.get(), std::max<size_t>(room, 1), LINKS, list ? list : LIST_TO_BUILD);
    return g.release();
} catch (...) {
    return nullptr;
}

extern "C" void vector_graph_free(vector_graph *g) {
    delete g;
}

extern "C" void vector_graph_remove(vector_graph *g, uint64_t label) {
    auto found = g->node_of.find(label);
    if (found == g->node_of.end()) {
        return;
    }
    node n = found->second;
    auto more = g->more.find(n);
    g->node_of.erase(found);
    if (more == g->more.end()) {
        g->label[n] = NO_LABEL;
        g->dead++;
        return;
    }
    auto at = std::find(more->second.begin(), more->second.end(), label);
    *(at == more->second.end() ? &g->label[n] : &*at) = more->second.back();
    more->second.pop_back();
    if (more->second.empty()) {
        g->more.erase(more);
    }
}

extern "C" vector_put_result vector_graph_put(vector_graph *g, uint64_t label, const double *numbers) try {
    floats made(new float[g->dimensions]);
    shape found = to_floats(g->distance, numbers, g->dimensions, made.get());
    if (found != shape::good) {
        vector_graph_remove(g, label);
        return found == shape::nowhere ? VECTOR_ZERO : VECTOR_UNFIT;
    }
    size_t hash = hash_of(g, made.get());
    node n = node_with(g, made.get(), hash);
    if (n == NO_NODE && g->label.size() == g->links->max_elements_) {
        return VECTOR_NO_ROOM;
    }
    vector_graph_remove(g, label);
    add_label(g, n == NO_NODE ? add_node(g, made.get(), hash) : n, label);
    return VECTOR_PUT;
} catch (...) {
    return VECTOR_NO_MEMORY;
}

extern "C" bool vector_graph_grow(vector_graph *g, size_t room) try {
    if (room > g->links->max_elements_) {
        g->links->resizeIndex(room);
    }
    return true;
} catch (...) {
    (void)g->links.release(); // leaked: it may be half freed, and destroying it is not safe
    return false;
}

extern "C" size_t vector_graph_search(const vector_graph *g, const double *numbers, size_t n, vector_near *near_out) try {
    floats made(new float[g->dimensions]);
    size_t found_n = 0;
    if (n == 0 || vector_graph_count(g) == 0 || to_floats(g->distance, numbers, g->dimensions, made.get()) != shape::good) {
        return 0;
    }
    for (auto [distance, found] : g->links->searchKnnCloserFirst(made.get(), std::min(n + std::min(n, g->dead), g->label.size()))) {
        if (g->label[found] != NO_LABEL && found_n < n) {
            near_out[found_n++] = {g->label[found], distance};
            auto more = g->more.find(static_cast<node>(found));
            for (size_t i = 0; more != g->more.end() && i < more->second.size() && found_n < n; i++) {
                near_out[found_n++] = {more->second[i], distance};
            }
        }
    }
    return found_n;
} catch (...) {
    return 0;
}

extern "C" bool vector_graph_fits(search_distance distance, const double *numbers, size_t dimensions) try {
    floats made(new float[dimensions]);
    return to_floats(distance, numbers, dimensions, made.get()) == shape::good;
} catch (...) {
    return false;
}

extern "C" size_t vector_graph_count(const vector_graph *g) {
    return g->node_of.size();
}

extern "C" size_t vector_graph_dead(const vector_graph *g) {
    return g->dead;
}

extern "C" size_t vector_graph_room(const vector_graph *g) {
    return g->links->max_elements_;
}

// Per vector: the numbers, the links of the lowest level and some of those above, a lock, an entry in the table of labels and in the
// visited lists of some searches. Per graph: the update locks, whose number is fixed.
extern "C" size_t vector_graph_bytes(size_t dimensions, size_t room) {
    constexpr size_t OF_LINKS = (2 * LINKS + 1 + LINKS / 16) * sizeof(hnswlib::tableint), OF_LABEL = 120,
                     OF_SEARCHES = 8 * sizeof(hnswlib::vl_type);
    return hnswlib::HierarchicalNSW<float>::max_update_element_locks * sizeof(std::mutex) +
           room * (dimensions * sizeof(float) + OF_LINKS + OF_LABEL + OF_SEARCHES + sizeof(std::mutex) + 2 * sizeof(void *));
}
