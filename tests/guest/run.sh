#!/usr/bin/env bash
# The Linux kernel's own NBD client against `headstack emulate`, and against `headstack serve` before an emulated disk: boots
# Debian's kernel in QEMU, without root and without KVM, connects /dev/nbd0 to the disk on this machine over several
# connections, and uses it as a disk. Once for each.
#
#   tests/guest/run.sh HEADSTACK        (make guest)
#
# HEADSTACK is the command. The kernel's package is fetched once and kept in target/guest; nothing is installed. Prints
# what the guest says and ends with 0 only if all of it was as it should be.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
headstack=${1:?usage: tests/guest/run.sh HEADSTACK}
here=$(cd "$(dirname "$0")" && pwd)
cache=${CARGO_TARGET_DIR:-$here/../../target}/guest
work=$(mktemp -d)
server=
# Seconds after which a guest that still runs has failed.
patience=240
drive=exos-x18
connections=4

# shellcheck source=tests/guest/lib.sh
. "$here/lib.sh"
need_programs qemu-system-x86_64 nbd-client cpio busybox depmod modprobe mke2fs e2fsck

finish() {
    [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT

# start_server COMMAND…: starts the emulator, or the node, on a free port of this machine, and waits until it says which.
start_server() {
    "$headstack" "$@" --nbd 127.0.0.1:0 >"$work/server" 2>&1 &
    server=$!
    local tries
    for ((tries = 0; tries < 100; tries++)); do
        port=$(sed -n 's|.*127\.0\.0\.1:\([0-9]*\).*|\1|p' "$work/server" | head -n 1)
        [ -n "$port" ] && return
        kill -0 "$server" 2>/dev/null || fail "$1 ended: $(cat "$work/server")"
        sleep 0.1
    done
    fail "$1 does not say where it listens: $(cat "$work/server")"
}

# The guest, on what such a command serves.
run_guest() {
    echo "guest: on headstack $*"
    start_server "$@"
    timeout "$patience" qemu-system-x86_64 -accel tcg -cpu max -smp 2 -m 768 -nodefaults -nographic -no-reboot \
        -kernel "$tree/boot/vmlinuz-$version" -initrd "$work/initramfs" -serial stdio \
        -netdev user,id=net0 -device virtio-net-pci,netdev=net0,romfile= \
        -append "console=ttyS0 quiet panic=-1 nbd_port=$port nbd_connections=$connections" </dev/null |
        tr -d '\r' | tee "$work/console" | grep --line-buffered '^guest: ' || true
    kill -0 "$server" 2>/dev/null || fail "$1 ended: $(cat "$work/server")"
    grep -q '^guest: all is well$' "$work/console" || fail "what its console said last: $(tail -n 20 "$work/console")"
    kill "$server"
    wait "$server" || fail "$1 does not end well: $(cat "$work/server")"
    server=
}

fetch_kernel
build_initramfs "$here/init" "nbd-client mke2fs e2fsck" "virtio_pci virtio_net nbd ext4 crc32c_generic"
run_guest emulate "$drive" --data memory
run_guest serve --emulate "$drive"
