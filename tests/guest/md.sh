#!/usr/bin/env bash
# Linux md over disks of `headstack emulate`: RAID-0 and RAID-5 with chunks of several sizes in a QEMU guest, under a load of fio
# whose requests md splits over the disks. Compares what fio measures with `headstack sim`, and fails where the chunk of `headstack
# stripe advise` is more than 5 % slower than the best measured one.
#
#   tests/guest/md.sh HEADSTACK [--full]        (make guest, make guest-md-full)
#
# QEMU's own NBD client connects the disks, which are virtio disks in the guest: without KVM, a network in the guest would take
# longer than the disks. As root, emulator and QEMU have real-time priority.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
headstack=${1:?usage: tests/guest/md.sh HEADSTACK [--full]}
form=${2:---short}
here=$(cd "$(dirname "$0")" && pwd)
cache=${CARGO_TARGET_DIR:-$here/../../target}/guest
work=$(mktemp -d)
server=
# Seconds after which a guest that still runs has failed.
patience=900
[ "$form" = --full ] && patience=7200

# shellcheck source=tests/guest/lib.sh
. "$here/lib.sh"
need_programs qemu-system-x86_64 cpio busybox depmod modprobe mdadm fio python3

finish() {
    [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT

# Starts the disks: five drives, and five that take no time.
start_disks() {
    local drive tries
    drive=$(cat "$work/drive")
    before_others 10 "$headstack" emulate "$drive" "$drive" "$drive" "$drive" "$drive" null null null null null \
        --data memory --nbd "unix:$work/socket" >"$work/server" 2>&1 &
    server=$!
    for ((tries = 0; tries < 100; tries++)); do
        [ "$(grep -c 'nbd+unix' "$work/server")" = 10 ] && return
        kill -0 "$server" 2>/dev/null || fail "the emulator ended: $(cat "$work/server")"
        sleep 0.1
    done
    fail "the emulator does not say where it listens: $(cat "$work/server")"
}

# QEMU's options for the disks. It neither merges nor sorts requests. Serial numbers: disk0 to disk4, null0 to null4.
disk_options() {
    local number kind=disk
    for ((number = 0; number < 10; number++)); do
        [ "$number" -ge 5 ] && kind=null
        echo "-drive if=none,id=d$number,format=raw,cache=none,file=nbd+unix:///disk$number?socket=$work/socket"
        echo "-device virtio-blk-pci,drive=d$number,serial=$kind$((number % 5)),num-queues=1,request-merging=off"
    done
}

run_guest() {
    # The options are meant to be split.
    # shellcheck disable=SC2046
    before_others 5 timeout "$patience" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 1024 -nodefaults -nographic -no-reboot \
        -kernel "$tree/boot/vmlinuz-$version" -initrd "$work/initramfs" -serial stdio $(disk_options) \
        -append "console=ttyS0 quiet panic=-1" </dev/null |
        tr -d '\r' | tee "$work/console" | grep --line-buffered '^guest: [^c]' || true
    kill -0 "$server" 2>/dev/null || fail "the emulator ended: $(cat "$work/server")"
    grep -q '^guest: all is well$' "$work/console" || fail "what its console said last: $(tail -n 20 "$work/console")"
    kill "$server"
    wait "$server" || fail "the emulator does not end well: $(cat "$work/server")"
    server=
}

python3 "$here/stripes.py" prepare "$work" "$form"
fetch_kernel
build_initramfs "$here/init-md" "mdadm fio" "virtio_pci virtio_blk raid0 raid456 crc32c_generic"
start_disks
run_guest
# What fio said stays in target/guest/md, with the logs and jobs: `stripes.py judge` reads it again without a run.
rm -rf "$cache/md"
mkdir -p "$cache/md"
cp -r "$work/console" "$work/files" "$cache/md/"
python3 "$here/stripes.py" judge "$cache/md" "$form" --headstack "$headstack"
