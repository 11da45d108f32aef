#!/usr/bin/env bash
# run.sh [FLAGS] — builds the server and starts it on ./data; FLAGS go to `tesela serve`.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source "$root/tools/dev/builds.sh"

emulator_key='C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=='

# Passes the server's output on, and when the ready line comes tells a newcomer what to do next.
announce() {
    local data=$1 key=$2 line port
    while IFS= read -r line; do
        printf '%s\n' "$line"
        case $line in '{"ready":true'*) ;; *) continue ;; esac
        port=$(sed -n 's/.*"sql":"[^"]*:\([0-9]*\)".*/\1/p' <<<"$line")
        [ -n "$port" ] || continue
        cat >&2 <<TEXT

  endpoint   http://localhost:$port (https too, on the same port)
  portal     http://localhost:$port/
  key        $key
  data       $data
  throughput as in the service: a container has 400 RU/s unless it asks for more, and requests past that get 429;
             \`./dev run --throttling off\` refuses none

  Try it from another terminal, with Node.js:

    npm install @azure/cosmos && node -e '
      const { CosmosClient } = require("@azure/cosmos");
      const client = new CosmosClient({ endpoint: "http://localhost:$port", key: "$key" });
      (async () => {
        const { database } = await client.databases.createIfNotExists({ id: "shop" });
        const { container } = await database.containers.createIfNotExists({ id: "orders", partitionKey: "/customer" });
        await container.items.upsert({ id: "1", customer: "ana", total: 12.5 });
        const { resource, requestCharge } = await container.item("1", "ana").read();
        console.log(resource, requestCharge + " RU");
      })();'

  Ctrl-C stops the server; the data stays.

TEXT
    done
}

# The value given to a flag, as `--flag value` or `--flag=value`, or nothing.
flag_value() {
    local flag=$1 previous='' argument
    shift
    for argument in "$@"; do
        if [ "$previous" = "$flag" ]; then printf '%s' "$argument"; fi
        if [ "${argument%%=*}" = "$flag" ] && [ "$argument" != "$flag" ]; then printf '%s' "${argument#*=}"; fi
        previous=$argument
    done
}

setup build
build_release tesela
key=$emulator_key flags=("$@")
data=$(flag_value --data "$@")
data=${data:-${TESELA_DATA:-}}
if [ -z "$data" ]; then
    data=$root/data
    flags=(--data "$data" "$@")
fi
if [ -n "$(flag_value --key "$@")$(flag_value --key-file "$@")${TESELA_KEY:-}${TESELA_KEY_FILE:-}" ]; then key='(the one you gave)'; fi
exec "$root/build/tesela" serve "${flags[@]}" > >(trap '' INT; announce "$data" "$key")
