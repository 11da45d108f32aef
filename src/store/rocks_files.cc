#include "store/rocks_files.h"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/options.h>
#include <rocksdb/perf_level.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

extern "C" {
#include "base/crc32c.h"
}

using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// Kept private by RocksDB's C API; see rocks_stats.cc.
extern "C" {
struct rocksdb_options_t {
    rocksdb::Options rep;
};
struct rocksdb_envoptions_t {
    rocksdb::EnvOptions rep;
};
struct rocksdb_ingestexternalfileoptions_t {
    rocksdb::IngestExternalFileOptions rep;
};
}

namespace {

thread_local bool may_not_wait;

struct counts {
    std::atomic<uint64_t> reads{0}, bytes{0};
};

// What a scan is expected to read soon. RocksDB asks for it before it looks into its cache, where all of it may be. So the kernel is told
// when the scan reads a part of it. A scan reads few tables at a time.
struct expected {
    const void *file = nullptr;
    uint64_t from = 0, end = 0;
};
enum { EXPECTED = 4 };
thread_local expected soon[EXPECTED];
thread_local unsigned soon_next;

void expect(const void *file, uint64_t from, uint64_t end) {
    expected *slot = nullptr;
    for (expected &e : soon) {
        slot = e.file == file ? &e : slot;
    }
    slot = slot ? slot : &soon[soon_next++ % EXPECTED];
    *slot = {file, from, end};
}

// The end of what is expected from `at` on; 0: nothing is.
uint64_t take_expected(const void *file, uint64_t at) {
    for (expected &e : soon) {
        if (e.file == file && at >= e.from && at < e.end) {
            e.file = nullptr;
            return e.end;
        }
    }
    return 0;
}

// A table. Any thread reads it.
class table_file : public FSRandomAccessFile {
  public:
    table_file(int fd, const std::string &name, std::shared_ptr<counts> counted) : fd_(fd), name_(name), counted_(std::move(counted)) {
    }
    table_file(const table_file &) = delete;
    table_file &operator=(const table_file &) = delete;
    ~table_file() override {
        close(fd_);
    }

    IOStatus Read(uint64_t offset, size_t n, const IOOptions &, Slice *result, char *scratch, IODebugContext *) const override {
        size_t got = 0;
        ssize_t part = 1;
        uint64_t expected_end = may_not_wait ? 0 : take_expected(this, offset);
        if (expected_end > offset + n) {
            readahead(fd_, static_cast<off_t>(offset), expected_end - offset);
        }
        while (got < n && part > 0) {
            iovec into = {scratch + got, n - got};
            part = preadv2(fd_, &into, 1, static_cast<off_t>(offset + got), may_not_wait ? RWF_NOWAIT : 0);
            got += part > 0 ? static_cast<size_t>(part) : 0;
            part = part < 0 && errno == EINTR ? 1 : part;
        }
        *result = Slice(scratch, part < 0 ? 0 : got);
        if (part < 0) {
            return failure(errno);
        }
        counted_->reads.fetch_add(1, std::memory_order_relaxed);
        counted_->bytes.fetch_add(got, std::memory_order_relaxed);
        return IOStatus::OK();
    }

    IOStatus Prefetch(uint64_t offset, size_t n, const IOOptions &, IODebugContext *) override {
        expect(this, offset, offset + n);
        return IOStatus::OK();
    }

    void Hint(AccessPattern pattern) override {
        int advice = pattern == kRandom ? POSIX_FADV_RANDOM : pattern == kSequential ? POSIX_FADV_SEQUENTIAL : POSIX_FADV_NORMAL;
        posix_fadvise(fd_, 0, 0, advice);
    }

    IOStatus InvalidateCache(size_t offset, size_t length) override {
        posix_fadvise(fd_, static_cast<off_t>(offset), static_cast<off_t>(length), POSIX_FADV_DONTNEED);
        return IOStatus::OK();
    }

  private:
    // File systems that do not know RWF_NOWAIT refuse it.
    IOStatus failure(int error) const {
        bool would_wait = may_not_wait && (error == EAGAIN || error == EOPNOTSUPP);
        return would_wait ? IOStatus::Busy(STORE_WOULD_WAIT) : IOStatus::IOError(name_, std::strerror(error));
    }

    const int fd_;
    const std::string name_;
    const std::shared_ptr<counts> counted_;
};

class files : public rocksdb::FileSystemWrapper {
  public:
    explicit files(std::shared_ptr<counts> counted) : FileSystemWrapper(FileSystem::Default()), counted_(std::move(counted)) {
    }
    const char *Name() const override {
        return "tesela";
    }

    IOStatus NewRandomAccessFile(const std::string &name, const FileOptions &options, std::unique_ptr<FSRandomAccessFile> *result,
                                 IODebugContext *debug) override {
        if (options.use_mmap_reads || options.use_direct_reads) {
            return target()->NewRandomAccessFile(name, options, result, debug);
        }
        int fd = open(name.c_str(), O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return errno == ENOENT ? IOStatus::PathNotFound(name, std::strerror(errno)) : IOStatus::IOError(name, std::strerror(errno));
        }
        result->reset(new table_file(fd, name, counted_));
        return IOStatus::OK();
    }

    // RocksDB counts the steps of each thread, for a report that nobody asks for. Its own threads begin each table here.
    IOStatus NewWritableFile(const std::string &name, const FileOptions &options, std::unique_ptr<FSWritableFile> *result,
                             IODebugContext *debug) override {
        rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
        return target()->NewWritableFile(name, options, result, debug);
    }

  private:
    const std::shared_ptr<counts> counted_;
};

} // namespace

struct store_files {
    std::shared_ptr<counts> counted = std::make_shared<counts>();
    std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(std::make_shared<files>(counted));
};

store_files *store__files_open(rocksdb_options_t *db_options) {
    auto opened = new store_files;
    db_options->rep.env = opened->env.get();
    return opened;
}

void store__files_close(store_files *files) {
    delete files;
}

static const uint64_t steady_bytes = 1024 * 1024;

void store__files_write_steadily(rocksdb_options_t *db_options) {
    db_options->rep.bytes_per_sync = steady_bytes;
    db_options->rep.strict_bytes_per_sync = true;
}

rocksdb_envoptions_t *store__files_steady() {
    rocksdb_envoptions_t *made = rocksdb_envoptions_create();
    made->rep.bytes_per_sync = steady_bytes;
    made->rep.strict_bytes_per_sync = true;
    return made;
}

rocksdb_ingestexternalfileoptions_t *store__files_taking_in() {
    rocksdb_ingestexternalfileoptions_t *made = rocksdb_ingestexternalfileoptions_create();
    made->rep.move_files = true;
    made->rep.write_global_seqno = false;
    return made;
}

uint64_t store__files_reads(const store_files *files) {
    return files->counted->reads.load(std::memory_order_relaxed);
}

uint64_t store__files_bytes(const store_files *files) {
    return files->counted->bytes.load(std::memory_order_relaxed);
}

bool store__files_no_wait(bool no_wait) {
    bool before = may_not_wait;
    may_not_wait = no_wait;
    return before;
}

// The checksum of RocksDB's log. Debian's build computes it by table, for processors of any age. The dynamic linker prefers a program's
// functions to those of libraries, so RocksDB calls this one. If it no longer does, the unit test store_wal fails.
namespace rocksdb {
namespace crc32c {

__attribute__((visibility("default"))) uint32_t Extend(uint32_t crc, const char *data, size_t n) {
    return crc32c_extend(crc, slice_of(data, n));
}

} // namespace crc32c
} // namespace rocksdb
