#!/bin/sh
# What runs inside a node's namespaces: its boot, its Docker daemon, its SSH server.
set -eu
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export PATH

boot() { # FOLDER NAME RUNTIME
    hostname "$2"
    # Copies of other nodes' namespace handles would keep those namespaces alive after their nodes are gone.
    for handle in /run/netns/*; do umount "$handle" 2>/dev/null || :; done
    umount /run/netns 2>/dev/null || :
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/sshd /run/lock /run/node /run/programs /var/lib/docker
    # All nodes share this machine's kernel; each boot of each has an id of its own all the same.
    cat /proc/sys/kernel/random/uuid >/run/boot_id
    mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
    # Everything is taken from here, since the node's own /tmp or /root may come to lie over the folders it came from.
    mount --bind "$1" /run/node
    cp "$0" /run/node.sh
    mount --bind "${3:-$1/disk/bin}" /run/programs
    mount -t overlay -o "lowerdir=/etc,upperdir=$1/etc,workdir=$1/etc.work" overlay /etc
    # Programs of the machine's own, Docker clients among them, are not the node's.
    mount --bind /run/programs /usr/local/bin
    # Folders that the controller edits while the node runs: never underneath a mounted overlay, which may not notice.
    for place in root home srv tmp var/log etc/ssh etc/docker; do mount --bind "/run/node/disk/$place" "/$place"; done
    if [ -e /run/node/disk/docker.img ]; then
        mount -o loop /run/node/disk/docker.img /var/lib/docker
    else
        mount --bind /run/node/disk/docker /var/lib/docker
    fi
    start_docker
    start_sshd
    exec sleep infinity
}

start_docker() {
    rm -f /run/docker.pid
    touch /run/docker.started
    setsid dockerd >>/var/log/dockerd.log 2>&1 </dev/null &
}

start_sshd() {
    mkdir -p /run/sshd
    /usr/sbin/sshd -E /var/log/sshd.log
}

verb=$1
shift
"$verb" "$@"
