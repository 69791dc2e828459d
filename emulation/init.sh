# What each machine's own script begins with, and how it ends. Lines that begin with `##` are for whoever waits outside.
export PATH=/bin:/usr/bin
/bin/busybox --install -s /bin

say() { echo "## $*"; }
fail() { say "FAILED: $*"; poweroff -f; sleep 60; }

# patiently SECONDS COMMAND...: repeats the command until it succeeds
patiently() {
    local limit=$(($(date +%s) + $1)); shift
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s)" -lt "$limit" ] || return 1
        usleep 100000
    done
}

# load WHEN: the modules that are for then
load() {
    for module in /modules/"$1"/*.ko; do insmod "$module" || fail "module $module"; done
}

# Disks come late: QEMU completes their requests in real time, which nothing measured may depend on.
hand_out() {
    say "writing results"
    load disk
    patiently 30 test -b /dev/vda || fail "no disk"
    tar -C /out -cf /dev/vda . || fail "tar"
    sync
    say "DONE"
    poweroff -f
}

mkdir -p /proc /sys /dev /tmp /out
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
