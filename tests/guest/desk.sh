#!/usr/bin/env bash
# hdparm -t, Bonnie++ and IOzone on disks of `headstack emulate` with ext2, in a QEMU guest, each figure with what `headstack sim` predicts
# for the same requests. Fails where the two differ by more than 10 %.
#
#   tests/guest/desk.sh HEADSTACK [DRIVE…]        (make desk-real)
#
# The programs are Debian's; they and the kernel are fetched once and kept in target/guest. The same programs also run on a disk that
# takes no time, which measures what the guest's processor costs: without KVM it is many times slower than a real one.
# As root, emulator and QEMU have real-time priority; others need fusermount3 to mount the disk.
#
# QEMU opens the disk as a file of the emulator's mount. Its NBD client (7.2) keeps a finished read back until the next one is finished,
# so that of four reads of the guest the drive has fewer than three to choose among.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
headstack=${1:?usage: tests/guest/desk.sh HEADSTACK [DRIVE…]}
shift
[ $# -gt 0 ] || set -- maxtor-92048u8 wde18300
here=$(cd "$(dirname "$0")" && pwd)
cache=${CARGO_TARGET_DIR:-$here/../../target}/guest
work=$(mktemp -d)
server=
# Seconds after which a guest that still runs has failed.
patience=1800
# Memory of the guest in MiB. The file of Bonnie++ is more than twice as large, so that little of it is in memory when it is read.
memory=160

# shellcheck source=tests/guest/lib.sh
. "$here/lib.sh"
need_programs qemu-system-x86_64 cpio busybox depmod modprobe mke2fs filefrag python3
[ "$(id -u)" = 0 ] || need_programs fusermount3
[ -w /dev/fuse ] || fail "/dev/fuse cannot be opened"

finish() {
    [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT

# Starts the disk of a drive, or `null` for one that takes no time.
start_disk() {
    local tries
    mkdir -p "$work/mount"
    before_others 10 "$headstack" emulate "$1" --data memory --mount "$work/mount" --stats=600s >"$work/server" 2>"$work/stats" &
    server=$!
    for ((tries = 0; tries < 100; tries++)); do
        [ -e "$work/mount/disk0" ] && return
        kill -0 "$server" 2>/dev/null || fail "the emulator ended: $(cat "$work/server" "$work/stats")"
        sleep 0.1
    done
    fail "the emulator mounts no disk: $(cat "$work/server")"
}

# The guest, with the disk of a drive. QEMU neither merges nor sorts requests, and no page cache of the host is in their way: the mount
# bypasses it.
run_guest() {
    local drive=$1 name
    name=$(basename "$drive" .toml)
    echo "guest: on $name"
    start_disk "$drive"
    before_others 5 timeout "$patience" qemu-system-x86_64 -accel tcg -cpu max -smp 1 -m "$memory" -nodefaults -nographic -no-reboot \
        -kernel "$tree/boot/vmlinuz-$version" -initrd "$work/initramfs" -serial stdio \
        -drive "if=none,id=d0,format=raw,cache=writeback,aio=threads,file=$work/mount/disk0" \
        -device "virtio-blk-pci,drive=d0,serial=$name,num-queues=1,request-merging=off" \
        -append "console=ttyS0 quiet panic=-1" </dev/null |
        tr -d '\r' | tee "$work/said" | grep --line-buffered '^guest: [^s]' || true
    kill -0 "$server" 2>/dev/null || fail "the emulator ended: $(cat "$work/server" "$work/stats")"
    grep -q '^guest: all is well$' "$work/said" || fail "what its console said last: $(tail -n 20 "$work/said")"
    kill "$server"
    wait "$server" || fail "the emulator does not end well: $(cat "$work/server" "$work/stats")"
    server=
    # What the guest said, and what the emulator says of its lateness at the end.
    { cat "$work/said" && sed "s/^/guest: end $name /" "$work/server" "$work/stats"; } >>"$work/console"
}

fetch_programs bonnie++ hdparm iozone3
fetch_kernel
mkdir -p "$work/files"
cp "$here/desk.plan" "$work/files/plan"
build_initramfs "$here/init-desk" "bonnie++ hdparm iozone mke2fs filefrag" "virtio_pci virtio_blk ext2 crc32c_generic"
for drive in null "$@"; do run_guest "$drive"; done
# What the programs said stays in target/guest/desk: `desk.py judge` reads it again without a run.
rm -rf "$cache/desk"
mkdir -p "$cache/desk"
cp "$work/console" "$here/desk.plan" "$cache/desk/"
python3 "$here/desk.py" judge "$cache/desk" --headstack "$headstack" "$@"
