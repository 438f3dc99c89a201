#!/bin/sh
# Starts a Redis or Valkey master late enough for a lock.
#
#   delayed-restart.sh COMMAND [ARGUMENT...]     such as: delayed-restart.sh redis-server redis.conf
#
# A master without a synced append-only file forgets its locks when it stops.
# If it came back at once, it could vote for a second holder while the first one's lease still runs.
# So it stays away until the longest lease that any client could have taken before is over.
# Clients of this project see to that by themselves, and need no such delay: it is for masters on which
# other clients lock too, and the two add up.
# The wait must come before the server listens: a health check or a readiness probe keeps nobody
# from connecting to a server that is up.
#
# Environment:
#   REDLOCK_MAX_TTL       the longest lease of any client, as clients read the same variable: numbers
#                         with units (ms, s, m, h), such as 30s, 1.5m or "1m 30s", up to a day;
#                         required, because only the clients' operator knows it
#   REDLOCK_FIRST_START   delayed (default) or immediate
#   REDLOCK_MARKER        the file that tells a first start from a restart; only with immediate;
#                         by default redlock-started in the folder of temporary files
#
# A first start waits too: a volume that was lost looks like one that was never used.
# With REDLOCK_FIRST_START=immediate it does not, once, for as long as the marker is there.
# That is for try-outs: wherever the marker can be lost together with the keys, it is not safe.

set -eu

say() {
    echo "delayed-restart: $*"
}

refuse() {
    say "$*" >&2
    exit 64
}

[ $# -gt 0 ] || refuse "no command; usage: delayed-restart.sh COMMAND [ARGUMENT...]"

# Takes the digits and the spaces after them off the beginning of `text`; fails if there are none, or too many.
read_digits() {
    digits=${text%%[!0-9]*} text=${text#"${text%%[!0-9]*}"}
    text=${text#"${text%%[! ]*}"}
    [ -n "$digits" ] && [ ${#digits} -le 9 ]
}

# Sets `total` to the milliseconds of a duration, rounded up; fails if it is none, or more than a day.
read_duration() {
    text=$1 total=0
    while :; do
        text=${text#"${text%%[! ]*}"}
        [ -n "$text" ] || return 0
        read_digits || return 1
        # Arithmetic takes a number that begins with 0 for an octal one.
        whole=1$digits scale=1$(printf '%s' "$digits" | tr 0-9 0) part=0 parts=1
        whole=$((whole - scale))
        case $text in
        .*)
            text=${text#.}
            read_digits || return 1
            part=1$digits parts=1$(printf '%s' "$digits" | tr 0-9 0)
            part=$((part - parts))
            ;;
        esac
        unit=${text%%[!a-z]*} text=${text#"${text%%[!a-z]*}"}
        case $unit in
        ms | msec | millis) factor=1 ;;
        s | sec | secs | second | seconds) factor=1000 ;;
        m | min | mins | minute | minutes) factor=60000 ;;
        h | hr | hrs | hour | hours) factor=3600000 ;;
        d | day | days) factor=86400000 ;;
        *) return 1 ;;
        esac
        total=$((total + whole * factor + (part * factor + parts - 1) / parts))
        [ "$total" -le 86400000 ] || return 1
    done
}

ttl=${REDLOCK_MAX_TTL:-}
[ -n "$ttl" ] || refuse "REDLOCK_MAX_TTL is not set; it is the longest lease of any client, such as 30s"
if ! read_duration "$ttl" || [ "$total" -lt 100 ]; then
    refuse "REDLOCK_MAX_TTL is '$ttl'; it must be from 100ms to 24h, with units, such as 30s or 1m"
fi

first_start=${REDLOCK_FIRST_START:-delayed}
marker=${REDLOCK_MARKER:-${TMPDIR:-/tmp}/redlock-started}
case $first_start in
delayed | immediate) ;;
*) refuse "REDLOCK_FIRST_START is '$first_start'; it must be delayed or immediate" ;;
esac

# The lease, 1 % and 2 ms for clocks of different speed, and 1 s because a server's uptime is in
# whole seconds; rounded up, because POSIX' sleep takes whole seconds only.
delay=$(((total + total / 100 + 1 + 2 + 1000 + 999) / 1000))

if [ "$first_start" = immediate ] && [ ! -e "$marker" ]; then
    # The marker comes before the server: a start that fails after it is a restart next time.
    : >"$marker" || refuse "cannot write the marker $marker"
    say "first start, and REDLOCK_FIRST_START=immediate: starting now, without a wait"
else
    # The first process of a container ignores signals it has no trap for, and a shell runs a trap
    # only between commands: so sleep is a child, and the shell waits for it.
    # A second at a time, for a sleep outlives a shell that is killed.
    trap 'say "stopped during the wait"; exit 143' TERM
    trap 'say "stopped during the wait"; exit 130' INT
    say "waiting ${delay} s before listening: leases of up to ${total} ms that this server may have forgotten end by then"
    left=$delay
    while [ "$left" -gt 0 ]; do
        sleep 1 &
        wait "$!"
        left=$((left - 1))
    done
    trap - TERM INT
fi

# Its arguments may hold a password, and this line ends up in a log.
say "starting $1"
# In place of this shell, so that signals reach the server.
exec "$@"
