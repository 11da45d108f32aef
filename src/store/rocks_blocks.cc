#include "store/rocks_blocks.h"

#include <rocksdb/flush_block_policy.h>
#include <rocksdb/table.h>

#include <memory>

using rocksdb::BlockBasedTableOptions;
using rocksdb::BlockBuilder;
using rocksdb::FlushBlockPolicy;
using rocksdb::FlushBlockPolicyFactory;
using rocksdb::Slice;

// Kept private by RocksDB's C API; see rocks_stats.cc.
extern "C" {
struct rocksdb_block_based_table_options_t {
    BlockBasedTableOptions rep;
};
}

namespace {

// The block that a table's only writer fills.
class policy : public FlushBlockPolicy {
  public:
    policy(FlushBlockPolicy *by_size, unsigned entries_least, size_t bytes_enough)
        : by_size_(by_size), entries_least_(entries_least), bytes_enough_(bytes_enough) {
    }

    // Whether the block ends before this entry.
    bool Update(const Slice &key, const Slice &value) override {
        bool large = by_size_->Update(key, value);
        bool ends = large && (entries_ >= entries_least_ || bytes_ >= bytes_enough_);
        entries_ = ends ? 1 : entries_ + 1;
        bytes_ = (ends ? 0 : bytes_) + key.size() + value.size();
        return ends;
    }

  private:
    const std::unique_ptr<FlushBlockPolicy> by_size_;
    const unsigned entries_least_;
    const size_t bytes_enough_;
    unsigned entries_ = 0;
    size_t bytes_ = 0;
};

class factory : public FlushBlockPolicyFactory {
  public:
    factory(unsigned entries_least, size_t bytes_enough) : entries_least_(entries_least), bytes_enough_(bytes_enough) {
    }
    const char *Name() const override {
        return "tesela.blocks_of_entries";
    }
    FlushBlockPolicy *NewFlushBlockPolicy(const BlockBasedTableOptions &table, const BlockBuilder &block) const override {
        return new policy(by_size_.NewFlushBlockPolicy(table, block), entries_least_, bytes_enough_);
    }

  private:
    const rocksdb::FlushBlockBySizePolicyFactory by_size_;
    const unsigned entries_least_;
    const size_t bytes_enough_;
};

} // namespace

void store__blocks_of_entries(rocksdb_block_based_table_options_t *table, unsigned entries, size_t bytes) {
    table->rep.flush_block_policy_factory = std::make_shared<factory>(entries, bytes);
}
