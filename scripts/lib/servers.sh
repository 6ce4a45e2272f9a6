# Starts and stops private servers in the folder $home, on free ports of the loopback address. Sourced by scripts/services.
# Each server leaves its process id in $home/NAME.pid and its log in $home/NAME.log.

# PostgreSQL refuses to run as root.
as_server=()
prepare_home() {
    if [ "$(id -u)" = 0 ]; then
        id postgres >/dev/null 2>&1 || useradd --system --no-create-home postgres
        chown postgres "$home"
        as_server=(runuser -u postgres --)
    fi
}

# Below the range from which the kernel assigns ports to outgoing connections; no port twice, since a server may use its port seconds later.
free_port() {
    local port
    for _ in $(seq 50); do
        port=$((20000 + RANDOM % 12000))
        ! grep -qsx "$port" "$home/ports" || continue
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port" | tee -a "$home/ports"; return; }
    done
    die "no free port was found"
}

# until_logged NAME TEXT: waits up to a minute until the log of a server contains TEXT.
until_logged() {
    for _ in $(seq 1200); do
        ! grep -qs "$2" "$home/$1.log" || return 0
        sleep 0.05
    done
    return 1
}

# start NAME: runs start_NAME PORT on a free port, with up to three attempts; sets NAME_port.
start() {
    local name=$1 attempt port
    for attempt in 1 2 3; do
        port=$(free_port)
        if "start_$name" "$port"; then printf -v "${name}_port" %s "$port"; return; fi
        stop_server "$name"
        rm -f "$home/$name.log.failed"
        [ ! -e "$home/$name.log" ] || mv "$home/$name.log" "$home/$name.log.failed"
    done
    cat "$home/$name.log.failed" >&2 2>/dev/null || true
    die "$name could not be started"
}

find_data() { if [ -L "$home/memory" ]; then echo "$home/memory/postgres"; else echo "$home/postgres"; fi; }

stop_server() {
    local file="$home/$1.pid"
    [ "$1" != postgres ] || file="$data/postmaster.pid"
    [ -s "$file" ] || return 0
    # SIGQUIT stops PostgreSQL immediately. RabbitMQ takes seconds for an orderly shutdown, so it is killed.
    case "$1" in postgres) kill -QUIT "$(head -1 "$file")" ;; rabbitmq) kill -KILL $(cat "$file") ;; *) kill -TERM "$(cat "$file")" ;; esac 2>/dev/null || true
    for _ in $(seq 100); do
        kill -0 $(head -1 "$file" 2>/dev/null) 2>/dev/null || break
        sleep 0.05
    done
    rm -f "$file"
}

stop_servers() {
    local name
    data=$(find_data)
    for name in pgbouncer nats redis rabbitmq epmd postgres; do stop_server "$name"; done
    [ ! -L "$home/memory" ] || rm -rf "$(readlink "$home/memory")"
    rm -rf "$home"
}

# Places the data in memory if there is enough space, which avoids waiting for a disk; durability settings are those of production.
place_postgres() {
    local free_mb
    free_mb=$(df --output=avail -BM /dev/shm 2>/dev/null | tail -1 | tr -dc 0-9)
    if [ "$place" = memory ] && [ "${free_mb:-0}" -ge 6000 ]; then
        "${as_server[@]}" mkdir "/dev/shm/$(basename "$home")"
        ln -s "/dev/shm/$(basename "$home")" "$home/memory"
        # Small, because each of thousands of connections maps this memory.
        max_wal_size=1GB shared_buffers=128MB
    else
        # As in production: an eighth of the memory, 1 GB at most.
        max_wal_size=8GB shared_buffers=$(awk '/MemTotal/ { mb = int($2 / 1024 / 8); print (mb > 1024 ? 1024 : mb) "MB" }' /proc/meminfo)
    fi
    data=$(find_data)
}

start_postgres() {
    local port=$1
    rm -rf "$data"
    (cd / && "${as_server[@]}" "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync) \
        >"$home/initdb.log" 2>&1 || { cat "$home/initdb.log" >&2; die "initdb failed"; }
    "${as_server[@]}" tee -a "$data/postgresql.conf" >/dev/null <<CONF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
fsync = on
synchronous_commit = on
shared_buffers = $shared_buffers
max_wal_size = $max_wal_size
checkpoint_timeout = 15min
max_connections = 600
max_prepared_transactions = 10
shared_preload_libraries = 'pg_stat_statements'
CONF
    (cd / && "${as_server[@]}" "$bin/pg_ctl" -D "$data" -l "$home/postgres.log" -w start) >/dev/null
}

# Transaction mode with fewer server connections than clients. No setting replaces the precautions that clients must take, except the
# timeout that docs/GUARANTEES.md requires. The wildcard is for databases that tests create.
start_pgbouncer() {
    "${as_server[@]}" tee "$home/pgbouncer.ini" >/dev/null <<CONF
[databases]
* = host=127.0.0.1 port=$postgres_port user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $1
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 1000
idle_transaction_timeout = 10
logfile = $home/pgbouncer.log
pidfile = $home/pgbouncer.pid
CONF
    (cd / && "${as_server[@]}" "$pgbouncer" -q -d "$home/pgbouncer.ini") && until_logged pgbouncer 'process up'
}

# Without persistence.
start_redis() {
    (cd "$home" && "${as_server[@]}" "$redis" --bind 127.0.0.1 --port "$1" --save '' --appendonly no --dir "$home" \
        --daemonize yes --pidfile "$home/redis.pid" --logfile "$home/redis.log") >/dev/null && until_logged redis 'Ready to accept'
}

# With JetStream, which stores its data in the folder.
start_nats() {
    (cd / && exec setsid "${as_server[@]}" "$nats" -a 127.0.0.1 -p "$1" -js -sd "$home/nats" -P "$home/nats.pid" -l "$home/nats.log") \
        </dev/null >/dev/null 2>&1 &
    until_logged nats 'Server is ready'
}

# A node with a dedicated name and port mapper (epmd), on the loopback address, without plugins. Starting takes seconds: this function only
# begins it, and await_rabbitmq waits for it.
start_rabbitmq() {
    local port=$1 distribution mapper
    distribution=$(free_port) mapper=$(free_port)
    stop_server epmd
    rm -rf "$home/rabbitmq"
    "${as_server[@]}" mkdir "$home/rabbitmq"
    "${as_server[@]}" tee "$home/rabbitmq/plugins" >/dev/null <<<'[].'
    (cd / && ERL_EPMD_ADDRESS=127.0.0.1 exec setsid "${as_server[@]}" epmd -port "$mapper") </dev/null >/dev/null 2>&1 &
    echo $! >"$home/epmd.pid"
    (
        cd /
        export HOME="$home/rabbitmq" ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT="$mapper"
        export RABBITMQ_NODENAME="milepost-$port@localhost" RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_NODE_PORT="$port"
        export RABBITMQ_DIST_PORT="$distribution" RABBITMQ_PID_FILE="$home/rabbitmq.pid" RABBITMQ_LOGS="$home/rabbitmq.log"
        export RABBITMQ_MNESIA_BASE="$home/rabbitmq/data" RABBITMQ_LOG_BASE="$home/rabbitmq" RABBITMQ_CONF_ENV_FILE=/dev/null
        export RABBITMQ_CONFIG_FILE="$home/rabbitmq/none" RABBITMQ_ENABLED_PLUGINS_FILE="$home/rabbitmq/plugins"
        export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='+sbwt none -kernel inet_dist_use_interface {127,0,0,1}'
        exec setsid "${as_server[@]}" "$rabbitmq" </dev/null >/dev/null 2>&1
    ) &
}

# Starts it again if another program has taken one of its ports meanwhile.
await_rabbitmq() {
    local attempt
    for attempt in 1 2 3; do
        until_logged rabbitmq 'Server startup complete\|BOOT FAILED' || break
        grep -q 'BOOT FAILED' "$home/rabbitmq.log" || return 0
        stop_server rabbitmq
        mv "$home/rabbitmq.log" "$home/rabbitmq.log.failed"
        [ "$attempt" = 3 ] || start rabbitmq
    done
    die "RabbitMQ did not start: $(cat "$home"/rabbitmq.log* 2>/dev/null)"
}
