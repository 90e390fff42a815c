#!/bin/sh
# test.sh COMMAND...: runs a test command, shows its output, and names the failed tests again at the end.
set -u
log=$(mktemp)
trap 'rm -f "$log" "$log.code"' EXIT
{
	"$@" 2>&1
	echo $? >"$log.code"
} | tee "$log"
code=$(cat "$log.code")
if [ "$code" != 0 ]; then
	printf '\nFailed:\n'
	grep -E '^ *--- FAIL|^FAIL|^panic:|WARNING: DATA RACE' "$log" | sort -u
fi
exit "$code"
