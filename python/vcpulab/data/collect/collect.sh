#!/bin/sh
# Gathers what a host says about its CPUs, its scheduler and its virtual machines into one archive, for `vcpulab import`.
#
#   sh collect.sh [--seconds N] [--trace N] [--out FILE]
#
#   --seconds N   counters of CPU time are read twice, N seconds apart (default 10)
#   --trace N     also record the scheduler's events for N seconds (default: none)
#   --out FILE    the archive to write (default: vcpulab-HOST-DATE.tar.gz here); `-` writes it to the standard output
#
# It only reads. What it writes is the archive, and files below $TMPDIR that it removes. With --trace it makes a tracing
# instance of its own in tracefs and removes it, or on Xen runs xentrace. It prints each command that it runs. A command
# that the host lacks is passed over. Run it as root: others see less.
set -u
LC_ALL=C
export LC_ALL
unset COLUMNS

SECONDS_BETWEEN=10
TRACE_SECONDS=0
ARCHIVE=
TRACE_KB_PER_CPU=16384
TRACE_MB_MOST=512

usage() {
  echo "collect.sh: $1" >&2
  echo "usage: sh collect.sh [--seconds N] [--trace N] [--out FILE]" >&2
  exit 2
}

# A whole number of seconds, 1 to 600.
whole() {
  case $2 in
    '' | *[!0-9]* | ????*) usage "$1 $2: allowed: 1 to 600" ;;
  esac
  if [ "$2" -lt 1 ] || [ "$2" -gt 600 ]; then usage "$1 $2: allowed: 1 to 600"; fi
}

while [ $# -gt 0 ]; do
  case $1 in
    --seconds | --trace | --out) [ $# -gt 1 ] || usage "$1: a value is missing" ;;
  esac
  case $1 in
    --seconds) whole "$1" "$2"; SECONDS_BETWEEN=$2; shift 2 ;;
    --trace) whole "$1" "$2"; TRACE_SECONDS=$2; shift 2 ;;
    --out) ARCHIVE=$2; shift 2 ;;
    *) usage "$1: not known" ;;
  esac
done

HOST=$(uname -n | tr -cd 'A-Za-z0-9._-')
NAME=vcpulab-${HOST:-host}-$(date +%Y%m%d-%H%M%S)
WORK=$(mktemp -d) || exit 1
FOLDER=$WORK/$NAME
TRACING=
mkdir "$FOLDER" || exit 1

clean_up() {
  if [ -n "$TRACING" ]; then
    echo 0 >"$TRACING/tracing_on"
    rmdir "$TRACING"
    TRACING=
  fi
  rm -rf "$WORK"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

has() { command -v "$1" >/dev/null 2>&1; }

# run FILE COMMAND...: appends what a command prints to a file of the archive, and notes how the command ended.
run() {
  into=$1
  shift
  echo "  $*" >&2
  "$@" >>"$FOLDER/$into" 2>"$WORK/error" </dev/null
  code=$?
  echo "$into: exit $code: $*" >>"$FOLDER/collected.txt"
  [ "$code" = 0 ] || sed 's/^/  /' "$WORK/error" | head -n 5 >>"$FOLDER/collected.txt"
  [ -s "$FOLDER/$into" ] || rm -f "$FOLDER/$into"
}

# The files that exist, each line with its path before it.
files_of() { grep -Hs '' "$@" /dev/null; true; }

# Files of all control groups, by name.
groups_of() {
  for name in "$@"; do
    find /sys/fs/cgroup -name "$name" -exec grep -H '' {} + 2>/dev/null
  done
  true
}

# The time since the epoch in seconds, to a hundredth, by the clock that nobody sets.
now() { awk '/^btime/ { boot = $2 } NF == 2 && FNR == 1 { up = $1 } END { printf "%.2f\n", boot + up }' /proc/uptime /proc/stat; }

# Files in /proc of all threads of virtual machines, by name.
files_of_threads() {
  for exe in /proc/[0-9]*/exe; do
    case $(readlink "$exe" 2>/dev/null) in
      */qemu* | */kvm | */firecracker* | */cloud-hypervisor*)
        for name in "$@"; do grep -Hs '' "${exe%exe}"task/*/"$name"; done
        ;;
    esac
  done
  true
}

# Of each thread: nanoseconds on a CPU, nanoseconds of waiting for one, and turns.
thread_counters() { now; files_of_threads schedstat; }

# The CPUs as `lscpu -p` lists them.
cpus() {
  echo "# CPU,Core,Socket,Node"
  for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
    [ -d "$cpu/topology" ] || continue
    node=0
    for link in "$cpu"/node[0-9]*; do [ ! -e "$link" ] || node=${link##*/node}; done
    socket=$(cat "$cpu/topology/physical_package_id")
    # Numbers of cores begin again in each socket.
    echo "${cpu##*/cpu},$((socket * 10000 + $(cat "$cpu/topology/core_id"))),$socket,$node"
  done | sort -n
}

# Threads. Command lines are kept of virtual machines alone, and without what may be a secret.
processes() {
  ps -ww -eLo pid,tid,cls,rtprio,ni,cgroup:512,comm:20,args | awk '
    NR == 1 { column = length($0) - length("COMMAND") + 1; print; next }
    /qemu|kvm|firecracker|cloud-hypervisor/ { gsub(/(password|secret|data|key)=[^, ]*/, "left-out"); print; next }
    { print substr($0, 1, column - 1) "-" }'
}

group_counters() { now; groups_of cpu.stat cpuacct.usage; }
domain_counters() { now; virsh domstats --cpu-total --vcpu; }

# about COMMAND...: what a command prints about a machine, below a heading with its name, the last word.
about() {
  for word in "$@"; do :; done
  echo "== $word =="
  "$@"
}

# ---- The host ----

host() {
  echo "The host:" >&2
  run kernel.txt uname -a
  run kernel.txt grep -Hs -E "^CONFIG_(HZ|PREEMPT[A-Z_]*|SCHED_[A-Z_]*|NO_HZ_FULL)=" "/boot/config-$(uname -r)"
  run kernel.txt files_of /proc/cmdline /sys/kernel/debug/sched/features /sys/kernel/debug/sched/preempt \
    /sys/kernel/debug/sched/*_ns /sys/kernel/debug/sched/cgroup_mode /sys/kernel/debug/sched_features \
    /proc/sys/kernel/sched_*_ns /proc/sys/kernel/sched_rt_*_us /proc/sys/kernel/sched_cfs_bandwidth_slice_us \
    /sys/kernel/sched_ext/state /sys/kernel/sched_ext/root/ops \
    /sys/module/kvm/parameters/halt_poll_ns /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full \
    /sys/devices/system/cpu/smt/control /sys/devices/system/cpu/cpufreq/policy0/scaling_governor
  run cgroup-mounts.txt grep -H cgroup /proc/mounts
  if has lscpu; then
    run lscpu.txt lscpu -p
    run lscpu-summary.txt lscpu
  else
    run lscpu.txt cpus
  fi
}

# ---- KVM ----

kvm() {
  echo "Virtual machines of KVM:" >&2
  if has virsh && virsh list >/dev/null 2>&1; then
    run virsh-list.txt virsh list --all
    for machine in $(virsh list --uuid); do
      run virsh-xml.xml virsh dumpxml "$machine"
    done
  fi
  if has qm; then
    run qm-list.txt qm list
    for machine in $(qm list | awk 'NR > 1 { print $1 }'); do
      run qm-config.txt about qm config "$machine"
    done
  fi
  if ps -eLo pid >/dev/null 2>&1; then
    run ps.txt processes
  else
    run ps.txt files_of_threads comm cgroup
  fi
  run groups.txt groups_of cpu.weight cpu.idle cpu.max cpu.max.burst cpuset.cpus cpuset.cpus.partition \
    cpu.shares cpu.cfs_quota_us cpu.cfs_period_us
  echo "Counters of CPU time, twice, $SECONDS_BETWEEN s apart:" >&2
  for reading in 1 2; do
    run use-groups.txt group_counters
    run use-threads.txt thread_counters
    if [ -f "$FOLDER/virsh-list.txt" ]; then run use-virsh.txt domain_counters; fi
    if [ "$reading" = 1 ]; then sleep "$SECONDS_BETWEEN"; fi
  done
}

# ---- Xen ----

xen() {
  echo "Domains of Xen:" >&2
  run xl-info.txt xl info -n
  run xl-list.txt xl list
  run xl-list-l.json xl list -l
  run xl-vcpu-list.txt xl vcpu-list
  run xl-cpupool-list.txt xl cpupool-list
  run xl-cpupool-list-c.txt xl cpupool-list -c
  for scheduler in credit credit2 rtds; do
    run "xl-sched-$scheduler.txt" xl "sched-$scheduler"
  done
  run xl-dmesg.txt xl dmesg
  if has xenpm; then run xenpm.txt xenpm get-cpufreq-para; fi
  if has xe; then
    run xe-vm-param-list.txt xe vm-param-list --multiple
    run xe-host-param-list.txt xe host-param-list --multiple
  fi
  if has xentop; then
    echo "CPU time, twice, $SECONDS_BETWEEN s apart:" >&2
    run xentop.txt xentop -b -f -i 2 -d "$SECONDS_BETWEEN"
  fi
}

# ---- The scheduler's events ----

trace_xen() {
  has xentrace || { echo "  no xentrace: nothing is recorded" >&2; return; }
  echo "The scheduler's events for $TRACE_SECONDS s:" >&2
  run trace.log xentrace -D -e 0x0002f000 -T "$TRACE_SECONDS" -r 1 "$FOLDER/trace.bin"
}

trace_linux() {
  for tracefs in /sys/kernel/tracing /sys/kernel/debug/tracing; do
    [ -d "$tracefs/instances" ] && break
  done
  TRACING=$tracefs/instances/vcpulab-$$
  if ! mkdir "$TRACING" 2>/dev/null; then
    TRACING=
    echo "  no tracefs, or not root: nothing is recorded" >&2
    echo "trace.txt: exit 1: no tracing instance in $tracefs" >>"$FOLDER/collected.txt"
    return
  fi
  echo "The scheduler's events for $TRACE_SECONDS s, in $TRACING:" >&2
  echo "$TRACE_KB_PER_CPU" >"$TRACING/buffer_size_kb"
  for event in sched/sched_switch sched/sched_waking sched/sched_wakeup sched/sched_wakeup_new \
    sched/sched_process_fork sched/sched_process_exit timer/hrtimer_expire_entry; do
    [ ! -e "$TRACING/events/$event/enable" ] || echo 1 >"$TRACING/events/$event/enable"
  done
  sleep "$TRACE_SECONDS"
  echo 0 >"$TRACING/tracing_on"
  run trace.txt head -c "${TRACE_MB_MOST}M" "$TRACING/trace"
  # Lost events: those that were overwritten or dropped because the buffer of a CPU was full.
  run trace-stats.txt grep -H -E "^(overrun|dropped events|entries):" "$TRACING"/per_cpu/cpu*/stats
  clean_tracing
}

clean_tracing() {
  echo 0 >"$TRACING/tracing_on"
  rmdir "$TRACING" && TRACING=
}

echo "# collected by vcpulab collect on $(date)" >"$FOLDER/collected.txt"
if has xl && xl info >/dev/null 2>&1; then
  xen
  [ "$TRACE_SECONDS" = 0 ] || trace_xen
else
  host
  kvm
  [ "$TRACE_SECONDS" = 0 ] || trace_linux
fi

if [ "$ARCHIVE" = - ]; then
  tar -C "$WORK" -czf - "$NAME"
else
  tar -C "$WORK" -czf "${ARCHIVE:=$NAME.tar.gz}" "$NAME" || exit 1
  echo "written to $ARCHIVE" >&2
  echo "  hint: vcpulab import $ARCHIVE --out host.toml" >&2
fi
