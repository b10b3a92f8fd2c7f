#!/usr/bin/env bash
# Calls a web service for each row of a stream, ten calls at once. Starts the service on loopback. Needs hintplan with
# its extra `http` on the PATH's python.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n# %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
python server.py "$port" &
trap 'kill $!' EXIT
export NEARBY_URL="http://127.0.0.1:$port"

say "SQL becomes a plan; the class is loaded because its module is allowed"
run hintplan compile trips.sql --allow-module nearby -o trips.plan.json
run hintplan explain trips.plan.json

say "Fewer calls at once, as an edit of the plan"
run hintplan set trips.plan.json correlate_nearby.async.buffer-capacity=2

say "The plan runs; the service fails now and then, and is asked again"
run hintplan run trips.plan.json --once --allow-module nearby --conf spark.submit.pyFiles=nearby.py
