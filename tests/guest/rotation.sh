#!/usr/bin/env bash
# The example of QEMU, contrib/qemu/emulated-disk, with Debian's kernel as guest: does the guest see a rotating disk of the emulated drive's
# size and speed, as a SCSI disk and as an ATA disk, and does it get back what it writes? Without root
# and without KVM.
#
#   tests/guest/rotation.sh HEADSTACK        (make guest-rotation)
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
headstack=$(realpath "${1:?usage: tests/guest/rotation.sh HEADSTACK}")
here=$(cd "$(dirname "$0")" && pwd)
cache=${CARGO_TARGET_DIR:-$here/../../target}/guest
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Seconds after which a guest that still runs has failed.
patience=240
drive=wd800jd
rpm=7200

# shellcheck source=tests/guest/lib.sh
. "$here/lib.sh"
need_programs qemu-system-x86_64 cpio busybox depmod modprobe

# run_guest DEVICE: boots it and has it look at the disk.
run_guest() {
    echo "guest: $1"
    DEVICE=$1 HEADSTACK=$headstack timeout "$patience" "$here/../../contrib/qemu/emulated-disk" "$drive" "$rpm" \
        -accel tcg -cpu max -m 512 -nodefaults -nographic -no-reboot -serial stdio \
        -kernel "$tree/boot/vmlinuz-$version" -initrd "$work/initramfs" \
        -append "console=ttyS0 quiet panic=-1 rpm=$rpm" </dev/null 2>"$work/errors" |
        tr -d '\r' | tee "$work/console" | grep --line-buffered '^guest: ' || true
    grep -q '^guest: all is well$' "$work/console" || fail "$(tail -n 20 "$work/console" "$work/errors")"
}

fetch_kernel
build_initramfs "$here/init-rotation" "" "virtio_pci virtio_scsi sd_mod ahci"
run_guest scsi-hd
run_guest ide-hd
