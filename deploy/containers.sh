#!/bin/sh
# What the Makefile does with the containers.
#
#   containers.sh up       build, run the jobs, start the system with what WITH names and nothing else, and wait until
#                          everything is healthy; repair what is not
#   containers.sh down     stop and remove the containers; their data stays
#   containers.sh reset    remove all local data, .twinbox/ and the containers' volumes; refused while either runs
#
# A name in WITH is a folder with a compose.yml, here or in deploy/; a folder in it may add another. NOTIFICATIONS is the
# number of instances of Notification. COMPOSE and GO are the commands.
set -eu
cd "$(dirname "$0")/.."

DOCKER=${DOCKER:-docker}
COMPOSE=${COMPOSE:-$DOCKER compose}
GO=${GO:-go}
# An attestation holds the time of the build. With one, each build makes a new image, and each image a new container.
export BUILDX_NO_DEFAULT_ATTESTATIONS=1
export COMPOSE_PATH_SEPARATOR="${COMPOSE_PATH_SEPARATOR:-:}"

say() { printf '%s\n' "$*" >&2; }

fail() {
	say "$@"
	exit 1
}

# with FILE...: compose reads these files, too. A list of files replaces those that it finds without one.
with() {
	if [ -z "${COMPOSE_FILE:-}" ]; then
		COMPOSE_FILE=docker-compose.yml
		[ ! -f docker-compose.override.yml ] || with docker-compose.override.yml
		with internal/*/compose.yml
	fi
	for file in "$@"; do
		case "$COMPOSE_PATH_SEPARATOR$COMPOSE_FILE$COMPOSE_PATH_SEPARATOR" in
		*"$COMPOSE_PATH_SEPARATOR$file$COMPOSE_PATH_SEPARATOR"*) continue ;;
		esac
		[ ! -f "$file" ] || COMPOSE_FILE=$COMPOSE_FILE$COMPOSE_PATH_SEPARATOR$file
	done
	export COMPOSE_FILE
}

# with_all: whatever ran with the system, down and reset find it.
with_all() { with */compose.yml */*/compose.yml; }

with_names() { # NAME...
	with
	for name in "$@"; do
		[ -f "$name/compose.yml" ] || [ -f "deploy/$name/compose.yml" ] ||
			fail "WITH=$name: there is no $name/compose.yml and no deploy/$name/compose.yml."
		with "$name/compose.yml" "$name"/*/compose.yml "deploy/$name/compose.yml"
	done
}

# inspect FORMAT: about each running container.
inspect() {
	ids=$($COMPOSE ps --quiet)
	# shellcheck disable=SC2086 # one id per word
	[ -z "$ids" ] || $DOCKER inspect --format "$1" $ids
}

# published lists each service with the addresses that it has on this machine.
published() {
	inspect '{{index .Config.Labels "com.docker.compose.service"}}{{range .NetworkSettings.Ports}}{{range .}} {{.HostIp}}:{{.HostPort}}{{end}}{{end}}' |
		LC_ALL=C sort
}

# listens PORT: a program of this machine has the port. Without bash nobody looks, and Docker fails where it is taken.
listens() { bash -c "exec 3<>/dev/tcp/127.0.0.1/$1" 2>/dev/null; }

# in_env_file VARIABLE: the number that .env gives it. Compose reads quotes, comments and export, too.
in_env_file() {
	sed -n "s/^\(export \)\{0,1\} *$1 *[=:] *[\"']\{0,1\}\([0-9]*\).*/\2/p" .env 2>/dev/null | tail -n 1
}

# check_ports fails if a port that a container will publish is another program's. Docker would look at it last.
check_ports() {
	ours=" $(published | sed 's/[^ ]*://g' | tr '\n' ' ') "
	files=$(printf '%s' "$COMPOSE_FILE" | tr "$COMPOSE_PATH_SEPARATOR" ' ')
	# shellcheck disable=SC2086
	grep -oh '127\.0\.0\.1:${[A-Z_]*:-[0-9]*}' $files | sed 's/.*{\(.*\):-\(.*\)}/\1 \2/' | sort -u | {
		free=true
		while read -r variable default; do
			port=$(printenv "$variable" || in_env_file "$variable")
			port=${port:-$default}
			case "$ours" in *" $port "*) continue ;; esac
			if [ "$port" != 0 ] && listens "$port"; then
				say "Port $port is in use by another program. Move it: $variable=$((port % 50000 + 10000)) make up"
				free=false
			fi
		done
		$free
	}
}

# unhealthy lists the containers whose last health check failed.
unhealthy() {
	inspect '{{.Name}} {{with .State.Health}}{{.Status}}{{end}}' | sed -n 's/^\/\{0,1\}\(.*\) unhealthy$/\1/p'
}

# repair restarts unhealthy containers, and fails if there are none. Their last check may be from before the broker came
# back, and compose gives up on an unhealthy container immediately.
repair() {
	sick=$(unhealthy)
	[ -n "$sick" ] || return 1
	# shellcheck disable=SC2086
	say "Restarting what is unhealthy:" $sick
	# shellcheck disable=SC2086
	$DOCKER restart $sick >/dev/null
}

# explain shows the last lines of each container that failed or is unhealthy.
explain() {
	$COMPOSE ps --all --format '{{.Service}} {{.State}} {{.ExitCode}} {{.Health}}' | while read -r service state code health; do
		case "$state $code $health" in
		'exited 0 '*) continue ;;
		exited* | dead* | restarting* | *unhealthy*) ;;
		*) continue ;;
		esac
		say ""
		say "== $service: $state, exit code $code ${health:+($health) }- its last lines:"
		$COMPOSE logs --no-color --no-log-prefix --tail 20 "$service" 2>&1 | cut -c -300 >&2
	done
}

# jobs lists the services that run to their end.
jobs() { $COMPOSE config --services | grep '^setup-' | LC_ALL=C sort; }

run_job() { $COMPOSE run --rm --no-TTY "$1" >&2; }

# run_jobs runs them while the old containers serve: compose itself would stop those first. It leaves no container of a
# job, because docker compose restart would run that before the servers are back.
run_jobs() {
	failed=
	for job in $(jobs); do
		[ -n "$failed" ] || run_job "$job" || { repair && run_job "$job"; } || failed=$job
	done
	[ -z "$failed" ] || explain
	# shellcheck disable=SC2046
	$COMPOSE rm --force $(jobs) >/dev/null 2>&1
	[ -z "$failed" ] || fail "
$failed failed. What ran before still runs."
}

greet() {
	api=http://$($COMPOSE port customer 8080)
	say "
The system is up:
"
	published | while read -r service addresses; do
		[ -z "$addresses" ] || say "$(printf '  %-13s %s' "$service" "$addresses")"
	done
	say "
Sign up:

  curl -XPOST $api/v1/signups -H 'content-type: application/json' -d '{\"email\":\"ada@example.org\",\"name\":\"Ada\"}'

The mail appears at http://$($COMPOSE port mailpit 8025) within a moment."
}

up() {
	[ "$COMPOSE" != "$DOCKER compose" ] || sh dev/start.sh containers
	# shellcheck disable=SC2086
	with_names ${WITH:-}
	scale=
	if [ "${NOTIFICATIONS:-1}" != 1 ]; then
		export NOTIFICATION_ADMIN_PORT=0 # only one instance can have a fixed port
		scale="--scale notification=$NOTIFICATIONS"
	fi
	check_ports
	# Other users read these files in the containers, which a umask of 077 would forbid.
	find deploy/*/ ! -type l \( -type d ! -perm -005 -o -type f ! -perm -004 \) -exec chmod a+rX {} +
	$COMPOSE build
	$COMPOSE pull --policy missing # a wrong image of any container fails here, before the jobs
	repair || true
	run_jobs
	for attempt in 1 2 3; do
		# shellcheck disable=SC2046,SC2086
		if $COMPOSE up --no-build --no-deps --detach --remove-orphans --wait --wait-timeout 180 $scale \
			$($COMPOSE config --services | grep -v '^setup-'); then
			greet
			return
		fi
		say ""
		say "The system did not come up."
		explain
		[ "$attempt" = 3 ] || repair || break
	done
	exit 1
}

# answers reports whether there is a Docker that could have containers of the system.
answers() {
	command -v "${COMPOSE%% *}" >/dev/null 2>&1 || return 1
	$COMPOSE ps --quiet >/dev/null 2>&1 || {
		say "Docker does not answer. Containers and volumes, if there are any, stay as they are."
		return 1
	}
}

reset() {
	docker=false
	! answers || docker=true
	if $docker; then
		running=$($COMPOSE ps --services) # without a status: it lists paused and restarting containers as well
		# shellcheck disable=SC2086
		[ -z "$running" ] || fail "Containers run:" $running "- stop them first (make down); nothing was removed."
	fi
	if [ -e .twinbox ]; then
		if command -v "$GO" >/dev/null 2>&1; then
			$GO run ./dev/cmd/devstack reset
		else
			say ".twinbox/ stays: without Go nobody can tell whether a system runs on it. Remove it if none does."
		fi
	fi
	! $docker || $COMPOSE down --volumes --remove-orphans
}

case ${1:-} in
up) up ;;
down)
	with_all
	$COMPOSE down --remove-orphans
	;;
reset)
	with_all
	reset
	;;
*) fail "usage: containers.sh up|down|reset" ;;
esac
