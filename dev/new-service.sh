#!/bin/sh
# new-service.sh NAME PORT makes a service of examples/hello: make new-service NAME=loyalty PORT=8083. PORT is that of its
# API, the next one that of its operators. It changes nothing if it refuses.
set -eu
cd "$(dirname "$0")/.."
name=${1-} port=${2-}

refuse() {
	printf 'new-service: %s\n' "$*" >&2
	exit 2
}

[ -d examples/hello ] || refuse "examples/hello is gone, and a service is a copy of it. git log has it."
case $name in
'' | [!a-z]* | *[!a-z0-9]*) refuse "NAME=$name is no name: give lower-case letters and digits, a letter first." ;;
main | break | case | chan | const | continue | default | defer | else | fallthrough | for | func | go | goto | if | import | \
	interface | map | package | range | return | select | string | struct | switch | type | var) refuse "NAME=$name is a word of Go." ;;
esac
case $port in
'' | 0* | *[!0-9]* | ??????*) refuse "PORT=$port is no port: give a number from 1024 to 65534." ;;
esac
[ "$port" -ge 1024 ] && [ "$port" -le 65534 ] || refuse "PORT=$port is no port: give a number from 1024 to 65534."
[ -z "$(git status --porcelain)" ] || refuse "git status lists changes: commit or stash them first."
for path in "internal/$name" "cmd/$name" "examples/$name" "internal/contract/$name.go"; do
	[ ! -e "$path" ] || refuse "NAME=$name is taken: there is $path."
done
! git grep -qE "\"(.+/)?$name\"\$" -- 'examples/hello/*.go' 'examples/cmd/hello/*.go' internal/services/services.go ||
	refuse "NAME=$name is taken: a service imports a package of that name."
! git grep -qE "(name:\"|Flag: \")$name-addr\"" -- dev || refuse "NAME=$name is taken: make run has --$name-addr."
! git grep -q "^  $name:" -- '*compose.yml' || refuse "NAME=$name is taken: a container has it."
operators=$((port + 1))
for number in "$port" "$operators"; do
	file=$(git grep -lE ":-?$number([^0-9]|\$)" -- '*.go' '*compose.yml' ':!*_test.go' | head -n 1)
	[ -z "$file" ] || refuse "Port $number is taken: $file has it. A service takes PORT and the port behind it."
done

module=$(sed -n 's/^module //p' go.mod)
title=$(printf %.1s "$name" | tr '[:lower:]' '[:upper:]')${name#?}
capitals=$(printf %s "$name" | tr '[:lower:]' '[:upper:]')
for file in $(git ls-files examples/hello examples/cmd/hello); do
	case $file in
	*/README.md | */contract/contract.go | */stock_router_test.go) continue ;;
	*/contract/hello.go) to=internal/contract/$name.go ;;
	*/hello_test.go) to=internal/$name/${name}_test.go ;;
	*/contract/events/*) to=api/events/$name-said.v1.json ;;
	*/contract/examples/*) to=api/events/examples/$name-said.v1.json ;;
	examples/cmd/*) to=cmd/$name/${file##*/} ;;
	*) to=internal/$name/${file#examples/hello/} ;;
	esac
	mkdir -p "${to%/*}"
	sed -e 's|examples/hello/contract|internal/contract|g' -e "s|examples/cmd/hello|cmd/$name|g" -e "s|examples/hello|internal/$name|g" \
		-e "s/ ARGS=--examples//" -e "s/8131/$operators/g" -e "s/8130/$port/g" -e "s/hello/$name/g" -e "s/Hello/$title/g" -e "s/HELLO/$capitals/g" "$file" >"$to"
done
insert() { awk -v line="$2" -v after="$3" -v before="$4" '$0 ~ after {on = 1} on && $0 ~ before {print line; on = 0} {print}' "$1" >"$1.new" && mv "$1.new" "$1"; }
insert internal/services/services.go "	\"$module/internal/$name\"" '^import' '^)'
insert internal/services/services.go "		$name.Service.Describe()," '^func All' '^	}'
jobs=deploy/observability/prometheus/prometheus.yml
[ ! -f $jobs ] || insert $jobs "  - job_name: $name
    dns_sd_configs: [{names: [$name], type: A, port: $operators, refresh_interval: 10s}]" '^scrape_configs' '^$'
gofmt -w internal cmd
make --no-print-directory generate
printf '%s is in internal/%s, its event in internal/contract/%s.go. Edit internal/%s/greet.go first. Next: make run, make test.\n' \
	"$title" "$name" "$name" "$name"
