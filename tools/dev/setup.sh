#!/usr/bin/env bash
# setup.sh [PURPOSE...] — installs what is missing: Debian packages with apt-get, npm packages into node_modules/ of their folder, Python's into .venv/. The second
# call finds all of it there and changes nothing.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build=(gcc g++ libc6-dev make meson ninja-build pkg-config
    librocksdb-dev liblz4-dev libuv1-dev libbson-dev libssl-dev libcurl4-openssl-dev libhttp-parser-dev libnghttp2-dev libwslay-dev uthash-dev
    libsnappy-dev zlib1g-dev libzstd-dev
    libpcre2-dev libicu-dev libunistring-dev libcjose-dev libjansson-dev libintelrdfpmath-dev libgmp-dev libstemmer-dev libhnswlib-dev
    libjavascriptcoregtk-4.1-dev libseccomp-dev tzdata)
test=("${build[@]}" clang lld libclang-rt-14-dev llvm libcmocka-dev python3 python3-azure python3-azure-cosmos python3-websockets libmongoc-dev python3-pymongo python3-cassandra python3-lz4 python3-snappy python3-zstandard openssl codespell valgrind)
bench=("${build[@]}" nginx python3 libyajl-dev libsimdjson-dev rapidjson-dev postgresql-15 libpq-dev redis-server)
format=(clang-format)
browser=(chromium fonts-dejavu-core curl openssl python3 python3-pymongo python3-cassandra)
gremlin=(python3 python3-venv python3-pip python3-azure-cosmos python3-aiohttp python3-isodate python3-nest-asyncio)
node=(nodejs npm) # only where there is no Node.js 18 or newer

# ---- Debian ----

# Those of the arguments that are not installed, one per line.
missing_packages() {
    local installed
    installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' || true)
    printf '%s\n' "$@" | sort -u | grep -vxF -e "${installed:-none}" || true
}

# Debian starts nginx, PostgreSQL and Redis as services when it installs them, unless policy-rc.d says no. They are wanted for their programs.
install_script='
    export DEBIAN_FRONTEND=noninteractive
    policy=/usr/sbin/policy-rc.d
    case " $* " in *" nginx "* | *" postgresql-15 "* | *" redis-server "*)
        if [ ! -e $policy ]; then
            echo "dev: writing $policy until they are installed, so that no service is started"
            trap "rm -f $policy" EXIT
            printf "#!/bin/sh\nexit 101\n" >$policy && chmod +x $policy
        fi ;;
    esac
    apt-get -q -o DPkg::Lock::Timeout=300 update &&
        apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install --no-install-recommends "$@"'

need_packages() {
    command -v dpkg-query >/dev/null || return 0 # not Debian: whoever works there brings the libraries
    local missing as_root=()
    mapfile -t missing < <(missing_packages "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || die "these packages are missing, and only root can install them: ${missing[*]}
Ask for:  apt-get install ${missing[*]}"
        as_root=(sudo)
        [ -t 0 ] || as_root=(sudo -n)
    fi
    say "dev: installing with apt-get: ${missing[*]}"
    "${as_root[@]}" bash -c "$install_script" install "${missing[@]}" >&2 || die "apt-get could not install: ${missing[*]}"
}

# ---- Node.js ----

need_node() {
    local major
    major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)
    if [ "$major" -ge 18 ] && command -v npm >/dev/null; then return 0; fi
    need_packages "${node[@]}"
}

# npm packages of a folder, again only when its lock file has changed since.
need_npm() {
    local folder=$root/$1
    need_node
    cmp -s "$folder/package-lock.json" "$folder/node_modules/.installed" && return 0
    say "dev: installing the npm packages of $1"
    (cd "$folder" && npm ci --no-audit --no-fund --loglevel=error && cp package-lock.json node_modules/.installed) >&2
}

# ---- Python ----

# Packages of a folder's requirements.txt beside Debian's, again only when that file has changed since.
need_pip() {
    local folder=$root/$1
    cmp -s "$folder/requirements.txt" "$folder/.venv/.installed" && return 0
    say "dev: installing the Python packages of $1"
    (cd "$folder" && /usr/bin/python3 -m venv --system-site-packages .venv &&
        .venv/bin/pip install --quiet --no-deps --require-hashes --only-binary :all: -r requirements.txt &&
        cp requirements.txt .venv/.installed) >&2
}

# ---- purposes ----

setup_one() {
    case $1 in
        build) need_packages "${build[@]}" ;;
        test) need_packages "${test[@]}" ;;
        format) need_packages "${format[@]}" ;;
        node) need_node ;;
        sdk) need_npm tests/sdk ;;
        table) need_npm tests/table ;;
        mongo) need_npm tests/mongo && need_npm tests/mongo/shell ;;
        cassandra) need_npm tests/cassandra ;;
        gremlin) need_npm tests/gremlin-driver && need_packages "${gremlin[@]}" && need_pip tests/gremlin-driver/python ;;
        portal) need_npm portal ;;
        browser) need_packages "${browser[@]}" && need_npm tests/browser && need_npm tests/sdk && need_npm tests/mongo && need_npm tests/cassandra && need_npm tests/gremlin-driver && need_npm tests/table ;;
        example) need_npm examples ;;
        bench) need_packages "${bench[@]}" && need_npm bench ;;
        *) die "setup knows no purpose '$1'; there are: build test format node sdk table mongo cassandra gremlin portal browser example bench" ;;
    esac
}

# Steps that run at the same time may want the same packages: one call after the other, by a lock on this file.
exec 7<"${BASH_SOURCE[0]}"
flock 7
[ $# -gt 0 ] || set -- build test format node sdk table mongo cassandra gremlin portal browser example
for purpose in "$@"; do setup_one "$purpose"; done
