# shellcheck shell=sh
# Installs packages on Debian and Ubuntu, as root, and leaves no service behind.
#
#   install.sh PACKAGE...     such as: install.sh redis-server
#
# A package with a server comes with a service of its name that its installation starts.
# The tests start servers of their own, on their own ports, and end them; a server on the standard
# port of a developer's machine is nobody's wish.
set -eu

export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d

# Debian asks this program before it starts any service; 101 means no.
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

# A machine that has just started often updates itself: wait for its lock instead of giving up.
apt_get() {
    apt-get -o DPkg::Lock::Timeout=120 "$@"
}

# Lists that are a little old still do when the network is away.
apt_get update -qq || echo "apt-get update failed; going on with the lists at hand" >&2
apt_get install -y -qq --no-install-recommends "$@"

# Not at the next boot either.
if command -v systemctl >/dev/null; then
    for package; do
        systemctl cat "$package" >/dev/null 2>&1 || continue
        systemctl disable --quiet "$package" || echo "could not disable the service $package" >&2
    done
fi
