#!/bin/sh
# What the Makefile does with the containers.
#
#   containers.sh up         build, start, and wait until everything is healthy; repair what is not
#   containers.sh down       stop and remove them; the data stays
#   containers.sh stopped    fail while containers run
#   containers.sh reset      remove them and their data
#
# COMPOSE is the compose command, NOTIFICATIONS how many instances of Notification there are (up).
set -eu
cd "$(dirname "$0")/.."

DOCKER=${DOCKER:-docker}
COMPOSE=${COMPOSE:-$DOCKER compose}
# An attestation holds the time of the build: with one, the same image would be another each time, and its container
# would be made anew.
export BUILDX_NO_DEFAULT_ATTESTATIONS=1

say() { printf '%s\n' "$*" >&2; }

# unhealthy lists the containers whose last health check failed.
unhealthy() {
	ids=$($COMPOSE ps --quiet)
	# shellcheck disable=SC2086 # one id per word
	[ -z "$ids" ] || $DOCKER inspect --format '{{.Name}} {{with .State.Health}}{{.Status}}{{end}}' $ids |
		sed -n 's/^\/\{0,1\}\(.*\) unhealthy$/\1/p'
}

# repair starts unhealthy containers again. Their state may be old news, from before what they need came back, and
# compose gives up on it at once; a container that has just started is asked every second.
repair() {
	sick=$(unhealthy)
	[ -n "$sick" ] || return 1
	# shellcheck disable=SC2086
	say "Starting again what is unhealthy:" $sick
	# shellcheck disable=SC2086
	$DOCKER restart $sick >/dev/null
}

# explain shows the last lines of what failed or is unhealthy: compose says only that it is.
explain() {
	say ""
	say "The system did not come up."
	$COMPOSE ps --all --format '{{.Service}} {{.State}} {{.ExitCode}} {{.Health}}' | while read -r service state code health; do
		case "$state $code $health" in
		'exited 0 '*) continue ;;
		exited* | dead* | restarting* | *unhealthy*) ;;
		*) continue ;;
		esac
		say ""
		say "== $service: $state, exit code $code ${health:+($health) }- its last lines:"
		$COMPOSE logs --no-color --no-log-prefix --tail 20 "$service" >&2 || true
	done
}

up() {
	[ "$COMPOSE" != "$DOCKER compose" ] || sh dev/tools/start/start.sh containers
	scale=
	if [ "${NOTIFICATIONS:-1}" != 1 ]; then
		export NOTIFICATION_ADMIN_PORT=0 # a fixed port of the host is one instance's alone
		scale="--scale notification=$NOTIFICATIONS"
	fi
	# The container's server is another user. Under a umask of 077 it could not read the file, and its volume would
	# stay without roles for good.
	[ -n "$(find deploy/postgres/init.sql -perm -004)" ] || chmod a+r deploy/postgres/init.sql
	$COMPOSE build
	repair || true
	for attempt in 1 2 3; do
		# shellcheck disable=SC2086
		if $COMPOSE up --no-build --detach --remove-orphans --wait --wait-timeout 180 $scale; then
			return
		fi
		[ "$attempt" = 3 ] || repair || break
	done
	explain
	exit 1
}

# answers tells whether there is a Docker with something to remove.
answers() {
	command -v "${COMPOSE%% *}" >/dev/null 2>&1 || return 1
	$COMPOSE ps --quiet >/dev/null 2>&1 || {
		say "Docker does not answer, so containers and volumes, if there are any, stay as they are."
		return 1
	}
}

case ${1:-} in
up) up ;;
down) $COMPOSE --profile '*' down --remove-orphans ;;
stopped)
	answers 2>/dev/null || exit 0
	running=$($COMPOSE --profile '*' ps --services) # without a status: paused and restarting ones are there as well
	[ -z "$running" ] || {
		# shellcheck disable=SC2086
		say "Containers run:" $running "- stop them first (make down); nothing was removed."
		exit 1
	}
	;;
reset)
	! answers || $COMPOSE --profile '*' down --volumes --remove-orphans
	;;
*)
	say "usage: containers.sh up|down|stopped|reset"
	exit 2
	;;
esac
