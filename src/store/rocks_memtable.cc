// A skip list: one thread inserts, any number of threads read meanwhile, nothing is removed.
//
// A node in memory, its links growing downward:
//
//     link of level h-1 · … · link of level 0 · entry
//
// An entry is RocksDB's: length of the key as a varint · user key · tag u64 · value. The tag is the sequence number and the kind of change;
// of equal user keys the highest tag, which is the newest, comes first.
//
// A link has the head of the key that it leads to: its first eight bytes as a number. The writer stores the link first and the head second,
// readers load them in the other order. New nodes come before the one that the link led to, so a reader may see the head too high for the
// node, never too low. If a head is below that of the key sought, the node is before that key. If it is above, the search goes on one level
// further down, which is always right; at the lowest level the node itself is compared.
#include "store/rocks_memtable.h"

#include <endian.h>
#include <rocksdb/memtablerep.h>
#include <rocksdb/options.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

extern "C" {
#include "base/memory.h"
}

using rocksdb::MemTableRep;
using rocksdb::Slice;

// Kept private by RocksDB's C API; see rocks_stats.cc.
extern "C" {
struct rocksdb_options_t {
    rocksdb::Options rep;
};
}

// Kept private by RocksDB's C++ API, although a memtable must allocate its iterators there. Linking fails if the function changes.
namespace rocksdb {
class Arena {
  public:
    char *AllocateAligned(size_t bytes, size_t huge_page_size, Logger *logger);
};
} // namespace rocksdb

namespace {

enum { LEVELS_MAX = 20, TAG_BYTES = 8 };
const size_t chunk_bytes_min = 4096, huge_page_bytes = 2 * 1024 * 1024;

const uint64_t no_head = UINT64_MAX; // of a link that leads nowhere

struct node;

struct link {
    std::atomic<uint64_t> head;
    std::atomic<node *> to;
};

struct node {
    link lowest;

    link &at(int level) {
        return *(&lowest - level);
    }
    char *entry() {
        return reinterpret_cast<char *>(this + 1);
    }
};

// ---- keys ----

struct list_key {
    const char *p;
    size_t n;
    uint64_t tag, head;
};

uint64_t head_of(const char *p, size_t n) {
    uint64_t head = 0;
    std::memcpy(&head, p, n < sizeof head ? n : sizeof head);
    return be64toh(head);
}

list_key key_of_internal(const char *p, size_t n) {
    uint64_t tag;
    n -= TAG_BYTES;
    std::memcpy(&tag, p + n, sizeof tag);
    return {p, n, le64toh(tag), head_of(p, n)};
}

// The internal key at the beginning of an entry.
Slice internal_of(const char *entry) {
    size_t n = 0;
    unsigned char byte;
    for (unsigned shift = 0; shift < 32; shift += 7) {
        byte = static_cast<unsigned char>(*entry++);
        n |= static_cast<size_t>(byte & 127) << shift;
        if (byte < 128) {
            break;
        }
    }
    return Slice(entry, n);
}

list_key key_of(const char *entry) {
    Slice internal = internal_of(entry);
    return key_of_internal(internal.data(), internal.size());
}

int compare(node *a, const list_key &key) {
    Slice internal = internal_of(a->entry());
    const char *p = internal.data();
    size_t n = internal.size() - TAG_BYTES;
    int c = std::memcmp(p, key.p, n < key.n ? n : key.n);
    if (c != 0 || n != key.n) {
        return c ? c : n < key.n ? -1 : 1;
    }
    uint64_t tag;
    std::memcpy(&tag, p + n, sizeof tag);
    tag = le64toh(tag);
    return tag > key.tag ? -1 : tag < key.tag;
}

// ---- memory: chunks that are freed together ----

// A search touches memory at random, so with small pages most of its time are misses of the processor's TLB. NULL: no memory.
void *map_huge_page() {
    void *mapped = mmap(nullptr, 2 * huge_page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return nullptr;
    }
    char *begin = static_cast<char *>(mapped);
    size_t before = (huge_page_bytes - reinterpret_cast<uintptr_t>(begin) % huge_page_bytes) % huge_page_bytes;
    if (before) {
        munmap(begin, before);
    }
    munmap(begin + before + huge_page_bytes, huge_page_bytes - before);
    madvise(begin + before, huge_page_bytes, MADV_HUGEPAGE); // without it these are small pages
    return begin + before;
}

// Huge pages of flushed memtables are kept for the next ones, since the kernel clears each page that it gives: the writer would wait.
class spare_pages {
  public:
    void *take() {
        std::lock_guard<std::mutex> guard(lock_);
        return n_ ? pages_[--n_] : nullptr;
    }

    void give(void *page) {
        std::lock_guard<std::mutex> guard(lock_);
        if (n_ < SPARE_PAGES) {
            pages_[n_++] = page;
        } else {
            munmap(page, huge_page_bytes);
        }
    }

    void free_all() {
        while (void *page = take()) {
            munmap(page, huge_page_bytes);
        }
    }

  private:
    enum { SPARE_PAGES = 32 }; // a memtable of 64 MB
    std::mutex lock_;
    void *pages_[SPARE_PAGES];
    size_t n_ = 0;
};

spare_pages spare;

void *take_huge_page() {
    void *page = spare.take();
    return page ? page : map_huge_page();
}

class chunks {
  public:
    chunks() = default;
    chunks(const chunks &) = delete;
    chunks &operator=(const chunks &) = delete;
    ~chunks() {
        for (chunk *next; newest_; newest_ = next) {
            next = newest_->older;
            newest_->is_huge ? spare.give(newest_) : std::free(newest_);
        }
    }

    char *take(size_t bytes) {
        bytes = (bytes + alignof(link) - 1) / alignof(link) * alignof(link);
        if (bytes > left_) {
            add(bytes);
        }
        char *taken = next_;
        next_ += bytes;
        left_ -= bytes;
        used_.store(used_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
        return taken;
    }

    size_t used() const {
        return used_.load(std::memory_order_relaxed);
    }

  private:
    struct chunk {
        chunk *older;
        size_t is_huge;
    };

    // A small memtable takes little, a large one huge pages.
    void add(size_t bytes) {
        size_t size = sizeof(chunk) + std::max(bytes, std::clamp(used(), chunk_bytes_min, huge_page_bytes - sizeof(chunk)));
        auto added = static_cast<chunk *>(size == huge_page_bytes ? take_huge_page() : nullptr);
        bool is_huge = added != nullptr;
        added = is_huge ? added : static_cast<chunk *>(mem_alloc(size));
        *added = {newest_, is_huge};
        newest_ = added;
        next_ = reinterpret_cast<char *>(added + 1);
        left_ = size - sizeof(chunk);
    }

    chunk *newest_ = nullptr;
    char *next_ = nullptr;
    size_t left_ = 0;
    std::atomic<size_t> used_{0};
};

// ---- the list ----

class list {
  public:
    list() : root_(make_node(LEVELS_MAX, 0)) {
        for (int i = 0; i < LEVELS_MAX; i++) {
            root_->at(i).head.store(no_head, std::memory_order_relaxed);
            root_->at(i).to.store(nullptr, std::memory_order_relaxed);
            place_[i] = root_;
        }
    }

    // A node that is not in the list yet; until then its lowest head is its height.
    node *make(size_t entry_bytes) {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        int height = 1 + __builtin_ctzll(random_ >> 40 | 1u << (LEVELS_MAX - 1)); // each level has half of the one below
        node *made = make_node(height, entry_bytes);
        made->lowest.head.store(static_cast<uint64_t>(height), std::memory_order_relaxed);
        return made;
    }

    // The writer only. False: the same key and tag is in the list.
    bool insert(node *added) {
        int height = static_cast<int>(added->lowest.head.load(std::memory_order_relaxed));
        list_key key = key_of(added->entry());
        if (height > height_.load(std::memory_order_relaxed)) {
            height_.store(height, std::memory_order_relaxed); // readers who see it find no nodes there
        }
        node *next = search(key);
        if (next && compare(next, key) == 0) {
            return false;
        }
        for (int i = 0; i < height; i++) {
            link &before = place_[i]->at(i), &own = added->at(i);
            own.to.store(before.to.load(std::memory_order_relaxed), std::memory_order_relaxed);
            own.head.store(before.head.load(std::memory_order_relaxed), std::memory_order_relaxed);
            before.to.store(added, std::memory_order_release);
            before.head.store(key.head, std::memory_order_release);
            place_[i] = added;
        }
        return true;
    }

    // The first node that is not before the key, or NULL; the last one that is, or NULL.
    node *find(const list_key &key, node **before_out) const {
        node *at = root_, *beyond = nullptr;
        for (int level = height_.load(std::memory_order_relaxed) - 1; level >= 0; level--) {
            beyond = walk(&at, level, key, beyond);
        }
        *before_out = at == root_ ? nullptr : at;
        return beyond;
    }

    node *first() const {
        return root_->lowest.to.load(std::memory_order_acquire);
    }

    node *last() const {
        node *at = root_;
        for (int level = height_.load(std::memory_order_relaxed) - 1; level >= 0; level--) {
            for (node *to; (to = at->at(level).to.load(std::memory_order_acquire));) {
                at = to;
            }
        }
        return at == root_ ? nullptr : at;
    }

    size_t bytes() const {
        return memory_.used();
    }

  private:
    node *make_node(int height, size_t entry_bytes) {
        size_t above = static_cast<size_t>(height - 1) * sizeof(link);
        return reinterpret_cast<node *>(memory_.take(above + sizeof(node) + entry_bytes) + above);
    }

    // Brings the node that the next level down leads to into the processor's cache, since most of a search is waiting for memory.
    static void fetch_below(node *at, int level) {
        node *below = level > 0 ? at->at(level - 1).to.load(std::memory_order_relaxed) : nullptr;
        if (below) {
            __builtin_prefetch(&below->at(level - 1));
        }
    }

    // Goes along a level as long as nodes are before the key. Returns the next node if it was compared, as always at the lowest level,
    // otherwise NULL. `beyond` is known not to be before the key.
    static node *walk(node **at, int level, const list_key &key, node *beyond) {
        for (;;) {
            link &l = (*at)->at(level);
            uint64_t head = l.head.load(std::memory_order_acquire);
            node *to = l.to.load(std::memory_order_acquire);
            fetch_below(*at, level);
            if (head >= key.head) {
                if (level > 0 && head > key.head) {
                    return nullptr;
                }
                if (!to || to == beyond || compare(to, key) >= 0) {
                    return to;
                }
            }
            *at = to;
        }
    }

    bool is_after(int level, const list_key &key) const {
        return place_[level] == root_ || compare(place_[level], key) < 0;
    }

    bool is_before_next(int level, const list_key &key) const {
        link &l = place_[level]->at(level);
        uint64_t head = l.head.load(std::memory_order_relaxed);
        node *to = l.to.load(std::memory_order_relaxed);
        return head > key.head || !to || (head == key.head && compare(to, key) >= 0);
    }

    // Moves the place to that of the key, and returns the first node that is not before it. Begins at the lowest level at which the place
    // of the last insert is also this key's.
    node *search(const list_key &key) {
        int height = height_.load(std::memory_order_relaxed), level = 0;
        bool after = false;
        while (level < height && !((after = after || is_after(level, key)) && is_before_next(level, key))) {
            level++;
        }
        node *at = level < height ? place_[level] : root_, *beyond = nullptr;
        for (level = level < height ? level : height - 1; level >= 0; level--) {
            beyond = walk(&at, level, key, beyond);
            place_[level] = at;
        }
        return beyond;
    }

    chunks memory_;
    node *const root_;
    std::atomic<int> height_{1};
    node *place_[LEVELS_MAX]; // of the last insert: at each level the last node before it, or itself
    uint64_t random_ = 1;
};

// ---- iterators ----

class cursor : public MemTableRep::Iterator {
  public:
    explicit cursor(const list *of) : list_(of) {
    }
    bool Valid() const override {
        return at_ != nullptr;
    }
    const char *key() const override {
        return at_->entry();
    }
    void Next() override {
        at_ = at_->lowest.to.load(std::memory_order_acquire);
    }
    void Prev() override {
        list_->find(key_of(at_->entry()), &at_);
    }
    void Seek(const Slice &internal, const char *entry) override {
        node *before;
        at_ = list_->find(sought(internal, entry), &before);
    }
    void SeekForPrev(const Slice &internal, const char *entry) override {
        list_key key = sought(internal, entry);
        node *before, *next = list_->find(key, &before);
        at_ = next && compare(next, key) == 0 ? next : before;
    }
    void SeekToFirst() override {
        at_ = list_->first();
    }
    void SeekToLast() override {
        at_ = list_->last();
    }

  private:
    // RocksDB gives either.
    static list_key sought(const Slice &internal, const char *entry) {
        return entry ? key_of(entry) : key_of_internal(internal.data(), internal.size());
    }

    const list *list_;
    node *at_ = nullptr;
};

// The iterator of a get. RocksDB does not delete it, so each thread has one.
class lookup : public cursor {
  public:
    static lookup *of_thread(const list *of) {
        alignas(lookup) static thread_local char space[sizeof(lookup)];
        return new (space) lookup(of);
    }
    static void operator delete(void *) {
    }

  private:
    using cursor::cursor;
    static void *operator new(size_t, void *space) {
        return space;
    }
};

// ---- what RocksDB sees ----

class memtable : public MemTableRep {
  public:
    explicit memtable(rocksdb::Allocator *allocator) : MemTableRep(allocator) {
    }
    rocksdb::KeyHandle Allocate(size_t n, char **entry) override {
        node *made = list_.make(n);
        *entry = made->entry();
        return made;
    }
    void Insert(rocksdb::KeyHandle handle) override {
        InsertKey(handle);
    }
    bool InsertKey(rocksdb::KeyHandle handle) override {
        return list_.insert(static_cast<node *>(handle));
    }
    bool Contains(const char *entry) const override {
        list_key key = key_of(entry);
        node *before, *next = list_.find(key, &before);
        return next && compare(next, key) == 0;
    }
    size_t ApproximateMemoryUsage() override {
        return list_.bytes();
    }
    Iterator *GetIterator(rocksdb::Arena *arena) override {
        return arena ? new (arena->AllocateAligned(sizeof(cursor), 0, nullptr)) cursor(&list_) : new cursor(&list_);
    }
    // Without an arena: for a get.
    Iterator *GetDynamicPrefixIterator(rocksdb::Arena *arena) override {
        return arena ? GetIterator(arena) : lookup::of_thread(&list_);
    }

  private:
    list list_;
};

// To RocksDB, and in its options file, this is a skip list as any other.
class memtables : public rocksdb::SkipListFactory {
  public:
    using SkipListFactory::CreateMemTableRep;
    MemTableRep *CreateMemTableRep(const MemTableRep::KeyComparator &, rocksdb::Allocator *allocator, const rocksdb::SliceTransform *,
                                   rocksdb::Logger *) override {
        return new memtable(allocator);
    }
    bool IsInsertConcurrentlySupported() const override {
        return false;
    }
};

} // namespace

void store__memtable_use(rocksdb_options_t *family_options) {
    family_options->rep.memtable_factory = std::make_shared<memtables>();
}

void store__memtable_free_spare() {
    spare.free_all();
}
