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

for program in qemu-system-x86_64 nbd-client cpio busybox depmod modprobe mke2fs e2fsck; do
    command -v "$program" >/dev/null && continue
    echo "guest: CANNOT RUN: $program is missing (scripts/install-test-packages guest)" >&2
    exit 1
done

finish() {
    [ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
fail() {
    echo "guest: FAILED: $*" >&2
    exit 1
}

# Fetches and unpacks the kernel's package, unless it is there.
fetch_kernel() {
    local package
    package=$(apt-cache depends linux-image-6.12-cloud-amd64 linux-image-cloud-amd64 2>/dev/null |
        awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
    [ -n "$package" ] || fail "apt knows no kernel (apt-get update?)"
    version=${package#linux-image-}
    tree=$cache/$version
    [ -e "$tree/boot/vmlinuz-$version" ] && return
    mkdir -p "$cache/fetched"
    (cd "$cache/fetched" && apt-get -q download "$package" 2>"$work/apt") || fail "$(tail -n 1 "$work/apt")"
    rm -rf "$tree.part"
    dpkg-deb --extract "$cache/fetched/$package"_*.deb "$tree.part"
    depmod --basedir "$tree.part" "$version"
    rm -rf "$cache/fetched" "$tree"
    mv "$tree.part" "$tree"
}

# Copies a program into the guest's /tools, and the libraries it needs to where it looks for them.
take_program() {
    local library
    cp -L "$(command -v "$1")" "$root/tools/"
    for library in $(ldd "$(command -v "$1")" 2>/dev/null | grep -o '/[^ ]*'); do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
}

# Copies modules and what they depend on, unpacked, and lists them in the order in which they are to be loaded.
take_modules() {
    local module file
    for module in "$@"; do
        modprobe --dirname "$tree" --set-version "$version" --show-depends "$module" 2>/dev/null || fail "no module $module"
    done | awk '$1 == "insmod" && !met[$2]++ { print $2 }' >"$work/modules"
    while read -r file; do
        module=$(basename "$file" | sed 's/\.ko.*/.ko/')
        case $file in
        *.xz) xz -dc "$file" ;;
        *.zst) zstd -dqc "$file" ;;
        *) cat "$file" ;;
        esac >"$root/modules/$module"
        echo "$module" >>"$root/modules/order"
    done <"$work/modules"
}

build_initramfs() {
    root=$work/root
    mkdir -p "$root"/{bin,dev,proc,sys,mnt,modules,tools,etc}
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp "$here/init" "$root/init"
    chmod 755 "$root/init"
    for program in nbd-client mke2fs e2fsck; do take_program "$program"; done
    take_modules virtio_pci virtio_net nbd ext4 crc32c_generic
    (cd "$root" && find . | cpio --quiet --create --format=newc | gzip -1) >"$work/initramfs"
}

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
build_initramfs
run_guest emulate "$drive" --data memory
run_guest serve --emulate "$drive"
