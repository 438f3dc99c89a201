#!/bin/sh
# Asks a master whether it votes in a namespace.
#
#   votes.sh NAMESPACE [OPTION...]     such as: votes.sh billing -h 10.0.0.1 -p 6379
#
# The options are those of redis-cli; a password goes into the variable REDISCLI_AUTH.
#
# This is the question for a health check, for a readiness probe, and before the next master is
# restarted.  PING is not: a master that has restarted answers it at once, and does not vote for as
# long as the longest lease that it may have forgotten.
# That time passes only while a client of the namespace is connected.
#
# Exit: 0 it votes; 1 it does not, or cannot be asked; 64 no namespace.
# Its user needs +info and +mget, and the key {NAMESPACE}:mark; the clients have both.

set -eu

[ $# -gt 0 ] || {
    echo "votes: no namespace; usage: votes.sh NAMESPACE [OPTION...]" >&2
    exit 64
}
namespace=$1
shift

no() {
    echo "votes: $*"
    exit 1
}

# An error of the server is what it answers, and warnings of redis-cli go elsewhere.
ask() {
    answer=$(redis-cli "$@" 2>/dev/null) || no "no: it cannot be asked"
    case "$answer" in
    NOAUTH* | NOPERM* | WRONGPASS*) no "no: it cannot be asked: $answer" ;;
    esac
}

ask "$@" INFO server
run=$(printf '%s\n' "$answer" | tr -d '\r' | sed -n 's/^run_id://p')
[ -n "$run" ] || no "no: it cannot be asked"
ask "$@" --raw MGET "{$namespace}:mark"

# A mark says what became of one run of a server: it begins with a word and that run.
case "$answer " in
"voting $run "*) echo "votes: yes" ;;
"quarantined $run "*) no "not yet: it is in quarantine" ;;
"voting "* | "quarantined "*) no "not yet: it has restarted, and no client has looked at it since" ;;
" ") no "not yet: no client of the namespace has looked at it" ;;
*) no "no: its mark cannot be read" ;;
esac
