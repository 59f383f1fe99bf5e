#!/bin/sh
# Plants one-line faults, one at a time, in a copy of the tree, and runs the tests that should catch each.
#
#   scripts/planted-bugs.sh [NAME…]
#
# Every file of tests/planted/ is one fault: what it is, the file, the tests (arguments of `cargo test`), the old line and
# the new one, without their indentation. Prints a table; fails when a fault survives, no longer fits, or does not build.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
copy=$target/planted
rm -rf "$copy" && mkdir -p "$copy"
git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "$copy"
CARGO_TARGET_DIR=$target
CARGO_PROFILE_TEST_DEBUG=none
# Some faults are met by one of thousands of seeds.
HEADSTACK_LONG=1
export CARGO_TARGET_DIR CARGO_PROFILE_TEST_DEBUG HEADSTACK_LONG
# Seconds after which tests that go on are taken not to end: with some faults a request never comes back.
patience=180

field() { sed -n "s/^$1: //p" "$2"; }

# Puts the new line in place of the old one, which must be there once.
plant() {
	OLD=$(field old "$1") NEW=$(field new "$1") awk '
		{ line = $0; sub(/^[ \t]+/, "", line); indent = substr($0, 1, length($0) - length(line)) }
		line == ENVIRON["OLD"] { print indent ENVIRON["NEW"]; met++; next }
		{ print }
		END { exit met != 1 }
	' "$2" >"$2.planted" && mv "$2.planted" "$2"
}

# What becomes of one fault.
verdict() {
	file=$copy/$(field file "$1")
	cp "$file" "$copy/unspoilt"
	tests=$(field test "$1")
	if ! plant "$1" "$file"; then
		rm -f "$file.planted"
		echo "no longer fits"
	# The arguments are meant to be split.
	# shellcheck disable=SC2086
	elif ! (cd "$copy" && cargo test --quiet $tests --no-run >"$copy/log" 2>&1); then
		echo "does not build"
	# shellcheck disable=SC2086
	elif (cd "$copy" && timeout "$patience" cargo test --quiet $tests >"$copy/log" 2>&1); then
		echo "SURVIVED"
	elif [ $? -eq 124 ]; then
		echo "caught by a run that does not end"
	else
		caught=$(sed -n 's/^---- \(.*\) stdout ----$/\1/p' "$copy/log" | wc -l)
		first=$(sed -n 's/^---- \(.*\) stdout ----$/\1/p' "$copy/log" | head -n 1)
		echo "caught by $caught: ${first:-a crash}"
	fi
	cp "$copy/unspoilt" "$file"
}

failed=0
printf '%-22s  %s\n' fault verdict
for fault in "$root"/tests/planted/*.fault; do
	name=$(basename "$fault" .fault)
	if [ $# -gt 0 ]; then
		case " $* " in *" $name "*) ;; *) continue ;; esac
	fi
	result=$(verdict "$fault")
	printf '%-22s  %s\n' "$name" "$result"
	case $result in caught*) ;; *) failed=1 ;; esac
done
rm -rf "$copy"
exit $failed
