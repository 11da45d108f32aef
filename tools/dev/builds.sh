# builds.sh — sourced: the build folders, each with its compiler and options.

# The C++ compiler that goes with a C compiler, for the one file that needs it.
cxx_of() { case $1 in *clang*) echo "${1/clang/clang++}" ;; *gcc*) echo "${1/gcc/g++}" ;; *) echo "${CXX:-c++}" ;; esac; }

# The portal's pages, in portal/dist, which every build embeds: made again when their sources have changed. TESELA_PORTAL=off leaves them out,
# for machines without npm.
portal_sources() { (cd "$root/portal" && find index.html vite.config.js tsconfig.json package-lock.json public src -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum); }
build_portal() {
    [ "${TESELA_PORTAL:-on}" != off ] || return 0
    mkdir -p "$root/portal/dist"
    (
        flock 8
        sources=$(portal_sources)
        if [ "$(cat "$root/portal/dist/.built" 2>/dev/null)" != "$sources" ]; then
            setup portal
            (cd "$root/portal" && npm run --silent build) >&2
            printf '%s\n' "$sources" >"$root/portal/dist/.built"
        fi
    ) 8>"$root/portal/.lock"
}

# build FOLDER COMPILER "meson options" [targets]: set up when new or when the options have changed, then ninja.
build() {
    local folder=$root/$1 compiler=$2 options=$3
    shift 3
    build_portal
    mkdir -p "$folder"
    (
        flock 9
        if [ ! -f "$folder/build.ninja" ] || [ "$(cat "$folder/.options" 2>/dev/null)" != "$compiler $options" ]; then
            rm -rf "$folder/meson-private" "$folder/meson-info" "$folder/build.ninja"
            # shellcheck disable=SC2086 # options are words
            CC=$compiler CXX=$(cxx_of "$compiler") meson setup "$folder" "$root" $options >"$folder/setup.log" 2>&1 || { cat "$folder/setup.log" >&2; exit 1; }
            printf '%s' "$compiler $options" >"$folder/.options"
        fi
        ninja --quiet -C "$folder" "$@" >&2
    ) 9>"$folder/.lock"
}

# Builds with tests link many programs: lld takes a quarter of ld's time.
tested='-Db_lto=false -Ddebug=false -Dc_link_args=-fuse-ld=lld -Dcpp_link_args=-fuse-ld=lld'

# Of debug information the sanitizers' reports need the lines only.
sanitized="$tested -Db_lundef=false -Doptimization=1 -Dc_args=-gline-tables-only -Dcpp_args=-gline-tables-only"

build_release() { build build "${CC:-gcc}" "-Ddefault_library=static -Dtests=false" "$@"; } # said, since a folder of before keeps its defaults
build_unit() { build build-unit "${CC:-gcc}" "$tested -Dc_args=-g1 -Dcpp_args=-g1" "$@"; }

# All programs, the fuzz targets too: against a shared core they are linked in seconds.
build_asan() { build build-asan clang "$sanitized -Ddefault_library=shared -Db_sanitize=address,undefined -Dfuzz=true" "$@"; }
build_tsan() { build build-tsan clang "$sanitized -Db_sanitize=thread" "$@"; }
