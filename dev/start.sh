#!/bin/sh
# Runs before there is a program: it checks what a first start needs, compiles devstack and starts it.
#
#   start.sh run|demo [flags]   compile devstack, and run this command of it
#   start.sh containers         check what docker compose needs
set -eu
cd "$(dirname "$0")/.."

GO=${GO:-go}
DOCKER=${DOCKER:-docker}

fail() {
	printf '%s\n' "$*" >&2
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

need_go() {
	have "$GO" || fail "Go is needed: https://go.dev/dl, or golang (brew, pacman, apk: go) of this system's package manager."
	version=$("$GO" version | sed 's/.*go\([0-9]*\)\.\([0-9]*\).*/\1 \2/')
	# From 1.21 on Go fetches the version that go.mod asks for; older ones do not understand the line.
	[ "${version%% *}" -gt 1 ] || [ "${version##* }" -ge 21 ] ||
		fail "$("$GO" version) is too old: 1.21 is the least, $(sed -n 's/^go //p' go.mod) is what go.mod asks for.
See https://go.dev/dl."
}

need_docker() {
	have "$DOCKER" || fail "make up needs Docker: https://docs.docker.com/engine/install. make run needs none."
	for plugin in compose buildx; do
		"$DOCKER" "$plugin" version >/dev/null 2>&1 ||
			fail "Docker is here, its $plugin plugin is not. Install docker-compose-v2 and docker-buildx or, with Docker's own
packages, docker-compose-plugin and docker-buildx-plugin."
	done
	server=$("$DOCKER" version --format '{{.Server.Version}}' 2>&1) ||
		fail "Docker does not answer: $server
Start it, or let $(id -un) use it (group docker). make run needs none."
	[ "${server%%.*}" -ge 25 ] 2>/dev/null || fail "Docker $server is too old: the health checks need 25 or later."
}

# compile FLAGS: bring bin/devstack and the operator's bin/twinbox up to date. Only a start that asks for the examples
# compiles them.
compile() {
	program=dev/cmd/devstack
	case "${TWINBOX_EXAMPLES:+--examples} $*" in
	*--examples*) [ ! -d examples/cmd/devstack ] || program=examples/cmd/devstack ;;
	esac
	[ -x bin/devstack ] || echo "Compiling, once: a minute or two. Later starts take seconds." >&2
	set -- "./$program"
	[ ! -d cmd/twinbox ] || set -- "$@" ./cmd/twinbox
	CGO_ENABLED=0 "$GO" build -v -o bin/ "$@" ||
		fail "Go could not build it. Packages come from GOPROXY: $("$GO" env GOPROXY)"
}

case ${1:-} in
run | demo)
	need_go
	compile "$@"
	command=$1
	shift
	exec bin/devstack "$command" --by-make "$@"
	;;
containers) need_docker ;;
*) fail "usage: start.sh run|demo|containers" ;;
esac
