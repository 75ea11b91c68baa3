# empty-debian.sh - an empty Debian 12 in a folder, for scripts that try something in it.
#
#     . tools/empty-debian.sh
#     empty_debian "$@"          from here on, $fresh is the folder; needs root
#     inside 'make demo'         a line for its shell, in /
#
# The script is started again in name spaces of its own: mounts, and whatever still runs
# in there, end with it, however it ends.  Package sources and proxies are this machine's
# own.  The system and its packages are kept in $XDG_CACHE_HOME/berth for the next time.
# KEEP=1 leaves the folder behind.
# shellcheck shell=bash

suite=bookworm
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth
base=$cache/debian-$suite.tar
me=${0##*/}

# Where this machine gets the packages of that Debian from: lines for a sources.list.
sources() {
    apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' \
        'Created-By: Packages' 2>/dev/null |
        awk -v suite=$suite '$2 ~ "^" suite "(-updates|-security)?$" { print "deb", $0 }' |
        sort -u
}

make_base() {
    local mirror
    mirror=$(sources | awk -v suite=$suite '$3 == suite && $4 == "main" { print $2; exit }')
    mkdir -p "$cache"
    echo "$me: debootstrap $suite"
    # Without a mirror of its own, debootstrap takes its default.
    debootstrap --variant=minbase $suite "$fresh" ${mirror:+"$mirror"} \
        >"$cache/debootstrap.log" 2>&1 || {
        tail -20 "$cache/debootstrap.log" >&2
        exit 1
    }
    rm -rf "$fresh"/var/cache/apt/archives/*.deb
    tar -C "$fresh" --one-file-system -cf "$base.part" . && mv "$base.part" "$base"
}

# The machine's own way to the network.
lend_network() {
    local list
    list=$(sources)
    [ -z "$list" ] || echo "$list" >"$fresh/etc/apt/sources.list"
    apt-config dump | grep -E '^Acquire::(https?::|Check-Valid-Until|Retries)' \
        >"$fresh/etc/apt/apt.conf.d/90fresh" || true
    echo 'APT::Sandbox::User "root";' >>"$fresh/etc/apt/apt.conf.d/90fresh" # shared cache
    cp -L /etc/resolv.conf /etc/hosts "$fresh/etc/"
    mkdir -p "$fresh/usr/local/share/ca-certificates"
    cp /usr/local/share/ca-certificates/*.crt "$fresh/usr/local/share/ca-certificates/" \
        2>/dev/null || true
}

empty_debian() {
    if [ "$(id -u)" != 0 ]; then
        echo "$me: a chroot needs root; try: sudo make $me" >&2
        exit 1
    fi
    if [ "${FRESH_INSIDE:-}" != 1 ]; then
        fresh=$(mktemp -d "${TMPDIR:-/var/tmp}/berth-fresh.XXXXXX")
        trap '[ -n "${KEEP:-}" ] || rm -rf --one-file-system "$fresh"' EXIT
        trap 'exit 130' INT TERM HUP
        export fresh
        FRESH_INSIDE=1 unshare --mount --pid --fork --kill-child --propagation private \
            "tools/$me" "$@"
        exit
    fi

    if [ -f "$base" ]; then
        tar -C "$fresh" -xf "$base"
    else
        make_base
    fi
    chmod 755 "$fresh" # the root folder has to be readable by all users, whatever was unpacked
    lend_network
    printf '#!/bin/sh\nexit 101\n' >"$fresh/usr/sbin/policy-rc.d" # start no services
    chmod +x "$fresh/usr/sbin/policy-rc.d"

    # A root folder that is a mount point, as that of a container is.
    mount --bind "$fresh" "$fresh"
    mount -t proc proc "$fresh/proc"
    mount --rbind /sys "$fresh/sys"
    mount --rbind /dev "$fresh/dev"
    mkdir -p "$cache/archives"
    mount --bind "$cache/archives" "$fresh/var/cache/apt/archives"
    rm -f "$fresh/etc/apt/apt.conf.d/docker-clean"

    registry=
    ! command -v npm >/dev/null || registry=$(npm config get registry 2>/dev/null) || true
}

inside() {
    chroot "$fresh" /usr/bin/env -i HOME=/root LANG=C.UTF-8 CI=true TERM=dumb \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        ${HTTP_PROXY:+HTTP_PROXY="$HTTP_PROXY"} ${HTTPS_PROXY:+HTTPS_PROXY="$HTTPS_PROXY"} \
        ${no_proxy:+no_proxy="$no_proxy"} ${NO_PROXY:+NO_PROXY="$NO_PROXY"} \
        ${registry:+npm_config_registry="$registry"} \
        sh -c "$1" </dev/null
}
