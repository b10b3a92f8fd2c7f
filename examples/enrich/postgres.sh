#!/usr/bin/env bash
# A PostgreSQL server of one's own, in a directory that it fills: postgres.sh start DIR | postgres.sh stop DIR
# Listens on 127.0.0.1, on the port in PLANES_PORT, with a database and a user `planes` and the password in
# PLANES_PASSWORD. Exits with 3 if PostgreSQL is not installed. PostgreSQL does not run as root, so root starts it as the
# user postgres.
set -euo pipefail
shopt -s nullglob

directory=$2
programs=("$(command -v initdb || true)" /usr/lib/postgresql/*/bin/initdb)
for program in "${programs[@]}"; do
    [ -n "$program" ] && programs=$(dirname "$(readlink -f "$program")")
done
[ -x "${programs[0]}/initdb" ] || exit 3
[ "$1" = stop ] || mkdir -p "$directory"
cd "$directory"

as_server() {
    if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi
}

case $1 in
start)
    [ "$(id -u)" != 0 ] || chown postgres .
    as_server sh -c 'umask 077 && cat > password' <<< "$PLANES_PASSWORD"
    as_server "$programs/initdb" --pgdata=data --username=planes --pwfile=password --auth=scram-sha-256 \
        --encoding=UTF8 --locale=C --no-sync > log 2>&1
    as_server "$programs/pg_ctl" start --pgdata=data --wait --log=server.log \
        --options="-p $PLANES_PORT -k $PWD -c listen_addresses=127.0.0.1" >> log 2>&1
    PGPASSWORD=$PLANES_PASSWORD "$programs/createdb" --host=127.0.0.1 --port="$PLANES_PORT" --username=planes planes
    ;;
stop)
    as_server "$programs/pg_ctl" stop --pgdata=data --wait --mode=fast >> log 2>&1
    ;;
*)
    echo "usage: postgres.sh start|stop DIR" >&2
    exit 64
    ;;
esac
