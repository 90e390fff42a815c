#!/bin/bash
# A drill of the containers: up; up again changes nothing; a sign-up becomes a mail whose button verifies; every container
# is confined; killed containers come back and lose nothing, in any order; up repairs; a new database reaches an old volume;
# a failing job leaves the running system alone; everything that WITH can add comes up; the drain ends in time; down and up
# keep the data and leave nothing behind. The workflow calls it on a machine with Docker. By hand: bash deploy/drill.sh
#
# It uses a project and ports of its own, and removes them at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

export COMPOSE_PROJECT_NAME=${COMPOSE_PROJECT_NAME:-twinbox-drill}
# Every port that compose publishes, 10,000 higher unless it is set.
while IFS=: read -r variable port; do
	export "$variable=${!variable:-$((10000 + port))}"
done < <(grep -ohs '${[A-Z_]*_PORT:-[0-9]*' docker-compose.yml ./*/compose.yml ./*/*/compose.yml | tr -d '${' | sed 's/:-/:/' | sort -u)
extra=$(for file in */compose.yml deploy/*/compose.yml; do [ ! -f "$file" ] || basename "$(dirname "$file")"; done)
api=http://127.0.0.1:$CUSTOMER_PORT
mailbox=http://127.0.0.1:$MAILBOX_PORT

step() { printf '\n== %s (%ds)\n' "$1" "$SECONDS"; }
fail() {
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}

finish() {
	code=$?
	if [ "$code" != 0 ]; then
		docker compose ps --all
		docker compose logs --no-color --tail 60
	fi
	sh deploy/containers.sh down >/dev/null 2>&1 || true
	docker volume ls --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" | xargs -r docker volume rm >/dev/null
	rm -rf "$scratch"
	exit "$code"
}
scratch=$(mktemp -d)
trap finish EXIT

# within SECONDS WHAT COMMAND...: it succeeds within that time.
within() {
	local until=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$until" ] || fail "$what"
		sleep 0.5
	done
}

container() { docker compose ps --quiet "$1"; }
containers() { docker compose ps --quiet | sort; }

# sign_up NAME: prints the user's id.
sign_up() {
	curl -fsS -XPOST "$api/v1/signups" -H 'content-type: application/json' -H "Idempotency-Key: $1" \
		-d "{\"email\":\"$1@example.org\",\"name\":\"$1\"}" | sed -n 's/.*"user_id":"\([^"]*\)".*/\1/p'
}
signs_up() { [ -n "$(sign_up "$1")" ]; }

# token NAME: prints that of the newest mail to the person.
token() {
	curl -fsS "$mailbox/view/latest.txt?query=to:$1@example.org" | sed -n 's/.*token=\([A-Za-z0-9_.-]*\).*/\1/p' | head -1
}
has_mail() { curl -fsS "$mailbox/api/v1/search?query=to:$1@example.org" | grep -q '"Subject"'; }
is_unhealthy() { [ "$(docker inspect --format '{{.State.Health.Status}}' "$(container "$1")")" = unhealthy ]; }
status_is() { curl -fsS "$api/v1/customers/$1" | grep -q "\"status\":\"$2\""; }

verify() { # NAME
	local id
	id=$(sign_up "$1")
	within 60 "no mail for $1" has_mail "$1"
	curl -fsS -XPOST "$api/v1/verifications" -H 'content-type: application/json' \
		-d "{\"token\":\"$(token "$1")\"}" >/dev/null
	within 30 "$1 is not verified" status_is "$id" verified
}

step "up"
make --no-print-directory up

step "up again changes nothing"
before=$(containers)
make --no-print-directory up
[ "$before" = "$(containers)" ] || fail "containers were made anew"

step "a sign-up, its mail and its link"
verify ada

step "confinement"
for service in $(docker compose ps --services); do
	about=$(docker inspect --format \
		'{{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} {{.HostConfig.ReadonlyRootfs}} {{.Config.User}}' "$(container "$service")")
	[[ $about == "[ALL] [no-new-privileges:true] "* ]] || fail "$service: $about"
	[[ $about == *" true "* || $service == kafka ]] || fail "$service can write to its image: $about"
	[[ $about != *" 0" && $about != *" root" && $about != *" " || $service == mailpit ]] || fail "$service runs as root: $about"
done
docker ps --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" --format '{{.Ports}}' |
	tr ',' '\n' | grep -e '->' | grep -v '127\.0\.0\.1:' && fail "a port is open to other machines"

step "killed processes are started again, and nothing is lost"
for service in customer notification kafka postgres mailpit; do
	# From outside the container: docker kill would count as the wish of a person, after which nothing is started again.
	pid=$(docker inspect --format '{{.State.Pid}}' "$(container $service)")
	kill -9 "$pid" 2>/dev/null || sudo -n kill -9 "$pid"
	within 90 "no sign-up after the death of $service" signs_up "after-$service"
	within 90 "no mail after the death of $service" has_mail "after-$service"
done

step "started in an odd order"
docker compose stop postgres kafka mailpit
docker compose restart customer notification
docker compose start mailpit kafka postgres
within 90 "no sign-up after the odd order" signs_up odd-order
within 90 "no mail after the odd order" has_mail odd-order

step "up repairs what is unhealthy"
docker kill "$(container kafka)" >/dev/null
within 150 "customer does not say that it is unhealthy" is_unhealthy customer
make --no-print-directory up
within 60 "no sign-up after the repair" signs_up after-repair
within 60 "no mail after the repair" has_mail after-repair

step "restart leaves no failed job"
docker compose restart
within 90 "no sign-up after the restart" signs_up after-restart
[ -z "$(docker compose ps --all --quiet --status exited)" ] || fail "a container ended"

step "a database that is added reaches a volume that is there"
cat >"$scratch/added.yml" <<'END'
services:
  setup-databases: { environment: { DATABASES: "customer:90 notification:90 loyalty:20" } }
END
before=$(containers)
COMPOSE_FILE=docker-compose.yml:$scratch/added.yml make --no-print-directory up
[ "$before" = "$(containers)" ] || fail "containers were made anew"
docker compose exec -T -e PGPASSWORD=loyalty postgres psql -h 127.0.0.1 -U twinbox_loyalty -c 'select 1' twinbox_loyalty >/dev/null ||
	fail "the new service cannot log in"

step "a job that fails says why, and the system goes on"
if said=$(TWINBOX_LOG_LEVEL=loud make --no-print-directory up 2>&1); then fail "up accepted LOG_LEVEL=loud"; fi
grep -q "LOG_LEVEL" <<<"$said" || fail "the reason is not shown: $said"
[ "$before" = "$(containers)" ] || fail "a failing job changed the running containers"
signs_up during-failure || fail "no sign-up after a failing job"

step "everything that can be added comes up, and goes again"
WITH=$(echo $extra) make --no-print-directory up
for service in customer notification; do [[ $before == *"$(container $service)"* ]] || fail "$service was made anew"; done
make --no-print-directory up
[ "$before" = "$(containers)" ] || fail "up without WITH is not the system alone"

step "reset is refused while a container is there, be it paused"
docker compose stop customer notification postgres mailpit
docker pause "$(container kafka)" >/dev/null
if sh deploy/containers.sh reset; then fail "reset destroyed what is only paused"; fi
docker unpause "$(container kafka)" >/dev/null
make --no-print-directory up

step "the drain ends in time"
began=$SECONDS
docker compose stop customer notification
[ $((SECONDS - began)) -lt 40 ] || fail "stop took $((SECONDS - began)) s"
for service in customer notification; do
	code=$(docker inspect --format '{{.State.ExitCode}}' "$(docker compose ps --all --quiet $service)")
	[ "$code" = 0 ] || fail "$service ended with $code"
done

step "down and up keep the data and leave nothing behind"
volumes=$(docker volume ls --quiet | sort)
make --no-print-directory down
[ -z "$(docker ps --all --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME")" ] || fail "containers are left"
[ -z "$(docker network ls --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME")" ] || fail "a network is left"
[ "$volumes" = "$(docker volume ls --quiet | sort)" ] || fail "volumes came or went"
make --no-print-directory up
[ "$(curl -sS -o /dev/null -w '%{http_code}' -XPOST "$api/v1/signups" -H 'content-type: application/json' \
	-d '{"email":"ada@example.org","name":"Another Ada"}')" = 409 ] || fail "the first user is gone"
has_mail ada || fail "the first mail is gone"

step "done"
