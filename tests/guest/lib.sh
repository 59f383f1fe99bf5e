# What the tests in a QEMU guest share: `run.sh`, `md.sh` and `desk.sh` source this file. It needs `work`, a folder for one run, and
# `cache`, where the kernel's package is kept.

fail() {
    echo "guest: FAILED: $*" >&2
    exit 1
}

# need_programs PROGRAM…: ends the run where one of them is missing.
need_programs() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null && continue
        echo "guest: CANNOT RUN: $program is missing (scripts/install-test-packages guest)" >&2
        exit 1
    done
}

# before_others PRIORITY COMMAND…: runs a command before programs without real-time priority, where that is allowed.
before_others() {
    local priority=$1
    shift
    if chrt -f "$priority" true 2>/dev/null; then exec chrt -f "$priority" "$@"; fi
    exec "$@"
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

# fetch_programs PACKAGE…: fetches and unpacks Debian packages into $cache/programs, unless they are there, and finds their programs
# from now on. A package that apt does not list is looked for in Debian's section non-free, with lists of its own. Installs nothing.
fetch_programs() {
    local package folder=$cache/programs
    mkdir -p "$folder"
    PATH=$PATH:$folder/usr/bin:$folder/usr/sbin:$folder/sbin
    for package in "$@"; do
        [ -e "$folder/$package" ] && continue
        rm -rf "$cache/fetched"
        mkdir -p "$cache/fetched"
        (cd "$cache/fetched" && fetch_package "$package") || fail "$package: $(tail -n 1 "$work/apt")"
        dpkg-deb --extract "$cache/fetched/$package"_*.deb "$folder"
        rm -rf "$cache/fetched"
        touch "$folder/$package"
    done
}

# Fetches a package into the current folder.
fetch_package() {
    apt-get -q download "$1" >"$work/apt" 2>&1 && return
    local lists=$work/non-free release
    release=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
    mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $release non-free" >"$lists/sources.list"
    set -- "$1" -o "Dir::Etc::sourcelist=$lists/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o "Dir::State::lists=$lists/lists" -o "Dir::Cache=$lists/cache"
    apt-get -q "${@:2}" update >"$work/apt" 2>&1 && apt-get -q "${@:2}" download "$1" >"$work/apt" 2>&1
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

# build_initramfs INIT "PROGRAM…" "MODULE…": packs the guest's first process, programs and modules, and what $work/files has.
build_initramfs() {
    local program
    root=$work/root
    mkdir -p "$root"/{bin,dev,proc,sys,mnt,modules,tools,etc}
    cp "$(command -v busybox)" "$root/bin/busybox"
    cp "$1" "$root/init"
    chmod 755 "$root/init"
    for program in $2; do take_program "$program"; done
    # The names are meant to be split.
    # shellcheck disable=SC2086
    take_modules $3
    [ -d "$work/files" ] && cp -r "$work/files" "$root/files"
    (cd "$root" && find . | cpio --quiet --create --format=newc | gzip -1) >"$work/initramfs"
}
