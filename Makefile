# `make demo` shows what Headstack does. `make test` runs the tests. `make check` looks at format, lints and documentation. Continuous
# integration runs the last two (`.ci/run`). `make long` runs all cases of the tests of which `make test` runs a part, and the golden runs in release.

CARGO ?= cargo
OUT ?= out
FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local

.PHONY: demo test test-python check reproduce packages lint doc golden evidence probe-full node-full rearrange-full shingled-full slowness-full tune-full docs-formats docs-picture planted cuts bench emulate-speed streams serve-speed explore-hour explore-frames speed command fuzz guest guest-md-full cuts-real emulate-agreement order-gain layout-gain layout-large desk-real install clean

demo:
	$(CARGO) build --profile demo --package headstack-cli --no-default-features
	$${CARGO_TARGET_DIR:-target}/demo/headstack demo --out $(OUT)

# One build, all tests, then the list of the tests that were skipped and why.
test: packages
	scripts/run-tests

# The wheel of the Python package, built for release and tested in a new environment: minutes, and the Python index. `make test` runs the
# same tests with the extension of its own build.
test-python: packages
	scripts/test-python

check: lint doc

# What continuous integration leaves out: every case of the tests that run a part a day, an hour of search, and the golden runs in release.
.PHONY: long
long: golden search
	HEADSTACK_LONG=1 $(CARGO) test --release --workspace --test node_simulation --test node --test slowness --test probed

# The golden runs in release: the same bytes as in the tests' own profile.
golden:
	$(CARGO) test --release --package headstack-sim --test golden

# Every study at full size; TRACES is a folder with the traces that `validation` needs. Fails where a row is off.
reproduce:
	$(CARGO) build --release --package headstack-cli
	$${CARGO_TARGET_DIR:-target}/release/headstack reproduce all --out $(OUT) $(if $(TRACES),--traces $(TRACES))

# Writes the tables of docs/evidence.md, each with commit and date. TRACES as above; ORACLE: the folder with the synthetic loads
# that DiskSim answered; DISKSIM: the folder with its parameter files, in `rigs` and `specs`.
evidence:
	$(CARGO) run --release --package headstack-bench --bin evidence -- $(if $(TRACES),--traces $(TRACES)) $(if $(ORACLE),--oracle $(ORACLE)) $(if $(DISKSIM),--disksim $(DISKSIM))

packages:
	scripts/install-test-packages

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

# Code lines of each crate, without blank lines, comments and tests.
.PHONY: lines
lines:
	scripts/code-lines

# What a layer, an order, a key, a trace format and a counter take: applies each patch of `tests/extend/` to a copy of the tree, and tests it.
.PHONY: extend
extend:
	scripts/extend

# One-line faults, each of which some test must catch: `tests/planted/`.
planted:
	scripts/planted-bugs.sh

# Ten thousand power cuts from seeds; `make test` does some hundred.
cuts:
	$(CARGO) test --release --package headstack-sim --test laws -- --ignored cuts::
	$(CARGO) test --release --package headstack-host --test cuts -- --ignored

# Clients of a storage node with its scheduler and without, over the whole list of loads: half an hour.
node-full:
	$(CARGO) test --release --package headstack-sim --test node_clients -- --ignored --nocapture

# Block rearrangement under ten thousand seeded loads, without crashes and with them, and a node under fifty kills.
rearrange-full:
	$(CARGO) test --release --package headstack-streams --test rearrange -- --ignored
	$(CARGO) test --release --package headstack-host --test rearrange_crashes -- --ignored
	$(CARGO) test --release --package headstack-cli --test serve -- --ignored rearrange::

# The translation layer of shingled disks in ten thousand worlds with power cuts.
shingled-full:
	$(CARGO) test --release --package headstack-sim --test shingled -- --ignored

# Random loads on all shipped drives against relations that hold on any disk: an hour, or SEARCH_SECONDS. A line that it prints
# replays a failure; SEARCH_SEED draws the same loads again.
SEARCH_SECONDS ?= 3600
.PHONY: search
search:
	HEADSTACK_SEARCH_SECONDS=$(SEARCH_SECONDS) $(if $(SEARCH_SEED),HEADSTACK_SEARCH_SEED=$(SEARCH_SEED)) $(CARGO) test --release --package headstack --test search -- --ignored --nocapture hour

# False alarms of the detector of slow disks on all shipped drives, and alarms on slow ones.
slowness-full:
	$(CARGO) test --release --package headstack-sim --test slowness -- --include-ignored --nocapture --test-threads 1

# What `tune` advises for eight systems against the best of all combinations: minutes, after `make test-python`. The table is
# python/bench/tune_cases.tsv.
tune-full:
	$${CARGO_TARGET_DIR:-target}/python/clean/bin/python python/bench/tune_cases.py --write

# A sweep of 1,000 points of 50 ms on one worker and on two, from Python and by the command: some minutes of a quiet machine, after
# `make test-python`. Fails where two workers are less than 1.8 times as fast, or Python takes 5 % more CPU time than the command.
.PHONY: sweep-speed
sweep-speed:
	$(CARGO) build --release --package headstack-cli
	HEADSTACK_COMMAND=$${CARGO_TARGET_DIR:-target}/release/headstack $${CARGO_TARGET_DIR:-target}/python/clean/bin/python python/bench/sweep_speed.py

# What `tune --verify` measures of its advice on an emulated disk behind the kernel, against what it predicts: ten minutes of a quiet machine, and
# root. Fails where a gain is more than 10 % off.
.PHONY: tune-real
tune-real: packages
	$(CARGO) test --release --package headstack-cli --test emulate -- --ignored --test-threads 1 --nocapture tuned::

# Learns all shipped drives from outside, and says how well.
probe-full:
	$(CARGO) test --release --no-fail-fast --package headstack-probe -- --ignored --nocapture

# Brings the pages of docs/formats that tell keys up to date with the definitions in the code.
docs-formats:
	HEADSTACK_UPDATE=1 $(CARGO) test --package headstack-cli --test cli keys::
	HEADSTACK_UPDATE=1 $(CARGO) test --package headstack-workload --test fio page::

# Draws docs/img/demo.png, the first charts of the demo's page. Needs chromium.
docs-picture: demo
	sed '0,/<\/style>/s##header, nav, footer, body > p, section:not(\#section-1), section > :not(.charts) { display: none } section { margin: 0 } body { padding: 1rem }</style>#' $(OUT)/demo.html > $(OUT)/picture.html
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1180,474 --virtual-time-budget=8000 --screenshot=docs/img/demo.png file://$(abspath $(OUT))/picture.html

# Requests a CPU second on the loads that DiskSim was measured on; `bench/runs/` keeps the results. With AGAINST, each load is run in
# turns by this commit and by another's program, which `scripts/build-speed COMMIT` makes; the last column is the ratio of the medians.
speed:
	$(CARGO) run --release --package headstack-bench --bin speed -- $(if $(AGAINST),--against $(AGAINST)) $(SPEED)

# Requests a CPU second and peak memory of `headstack sim` itself, from 1 to 50 million requests: some minutes.
command:
	$(CARGO) build --release --package headstack-cli --package headstack-bench
	$${CARGO_TARGET_DIR:-target}/release/command

# What the way to an emulated disk costs, and how late its answers are: some minutes, on a machine that does nothing else.
emulate-speed:
	$(CARGO) build --release --package headstack-cli
	scripts/emulate-speed

# What many sequential streams get of emulated disks, by every way there is: an hour of a quiet machine, and root. The short form
# is STREAMS=--quick.
streams: packages
	$(CARGO) build --release --package headstack-cli
	scripts/streams --out $(OUT)/streams.json $(STREAMS)

# 4 KiB reads of a disk in memory through the node, beside nbdkit: a minute of a quiet machine. Needs libnbd-dev and a C compiler.
serve-speed: packages
	$(CARGO) build --release --package headstack-cli
	scripts/serve-speed

# Whether the explorer's live page and its server keep their memory: an hour, or EXPLORE="--minutes 10". Needs fio and Chromium.
explore-hour: packages
	$(CARGO) build --release --package headstack-cli
	scripts/explore-hour --out $(OUT)/explore-hour.json $(EXPLORE)

# Times between frames of the explorer's page with 1,024 queued requests, simulated and live.
explore-frames: packages
	$(CARGO) build --release --package headstack-cli
	scripts/explore-hour --frames --out $(OUT)/explore-frames.json

bench:
	$(CARGO) bench --workspace

# Each fuzz target for FUZZ_SECONDS. Needs a nightly toolchain and cargo-fuzz.
fuzz:
	for target in $$($(CARGO) +nightly fuzz list); do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

# In a QEMU guest: the Linux kernel's own NBD client on an emulated disk and on a node, then md's RAID-0 and RAID-5 over emulated disks, with
# chunks of 16 to 512 KiB. Fails where the chunk of `headstack stripe advise` is more than 5 % slower than the best. Under ten minutes. Fetches
# Debian's kernel once.
guest: guest-programs
	tests/guest/run.sh $${CARGO_TARGET_DIR:-target}/release/headstack
	tests/guest/md.sh $${CARGO_TARGET_DIR:-target}/release/headstack

# The arrays of md with more chunks, loads and passes: an hour.
guest-md-full: guest-programs
	tests/guest/md.sh $${CARGO_TARGET_DIR:-target}/release/headstack --full

.PHONY: guest-programs
guest-programs:
	scripts/install-test-packages guest
	$(CARGO) build --release --package headstack-cli

# Two hundred power cuts of emulated disks under fio, ext4, SQLite and a client of our own. Needs root.
cuts-real: packages
	$(CARGO) test --release --package headstack-cli --test emulate -- --ignored --test-threads 1 --nocapture cuts::

# Response times that fio measures on emulated disks, beside those of `headstack sim`: ten minutes of a quiet machine, and root.
emulate-agreement: packages
	$(CARGO) test --release --package headstack-cli --test emulate -- --ignored --test-threads 1 --nocapture agreement

# Debian's hdparm -t, Bonnie++ and IOzone on emulated disks with ext2 in a QEMU guest, against what the simulator predicts: about ten minutes of a quiet
# machine. Fails where a figure is more than 10 % off. DESK_REAL names other drives.
desk-real: guest-programs
	tests/guest/desk.sh $${CARGO_TARGET_DIR:-target}/release/headstack $(DESK_REAL)

# What a node's order by cylinder or position gains on emulated disks, and what the simulator predicts: eight minutes of a quiet machine.
# The short form is ORDER_GAIN=--quick.
order-gain: packages
	$(CARGO) build --release --package headstack-cli
	scripts/order-gain --out $(OUT)/order-gain.json $(ORDER_GAIN)

# What reads gain that keep to tracks, through the kernel and in the simulator: three minutes of a quiet machine, and root.
layout-gain: packages
	$(CARGO) build --release --package headstack-cli
	scripts/layout-gain --out $(OUT)/layout-gain.json

# An ext4 of 20 TB with no extent over a track boundary, made and checked: a minute, and 2 GB of memory.
layout-large: packages
	$(CARGO) test --release --package headstack-cli --test layout -- --ignored --nocapture twenty

# The command without symbols, and the units of systemd that start it as a storage node. DESTDIR is where a package is put together.
install:
	$(CARGO) build --release --package headstack-cli
	install -D -s -m 755 $${CARGO_TARGET_DIR:-target}/release/headstack $(DESTDIR)$(PREFIX)/bin/headstack
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	for unit in headstack.service headstack.socket; do \
		sed 's|/usr/local/bin/|$(PREFIX)/bin/|' contrib/systemd/$$unit > $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit || exit 1; \
		chmod 644 $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit; \
	done

# Licences of all outside crates, and two versions of one crate: deny.toml. Installs cargo-deny where it is missing.
.PHONY: deny
deny:
	$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install cargo-deny --locked
	$(CARGO) deny check licenses bans sources

# Changes of the public crates' interfaces since another commit that would break their users: minutes. AGAINST is the commit. Installs
# cargo-semver-checks where it is missing, which takes ten minutes.
.PHONY: semver
semver:
	$(CARGO) semver-checks --version >/dev/null 2>&1 || $(CARGO) install cargo-semver-checks --locked
	$(CARGO) semver-checks --workspace --exclude headstack-bench --exclude headstack-prerequisites --exclude headstack-py --exclude headstack-tidy --exclude headstack-cli --exclude headstack-explorer-wasm --baseline-rev $(AGAINST) $(SEMVER)

# Known vulnerabilities of all outside crates. Needs GitHub, where their list is.
.PHONY: advisories
advisories:
	$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install cargo-deny --locked
	$(CARGO) deny check advisories

# The crates as crates.io would have them, each built from its package alone: minutes. Nothing is published. The links to `drives/`, `rigs/`
# and `studies/` are folders in the packages.
.PHONY: package
package:
	$(CARGO) package --workspace --allow-dirty --exclude headstack-bench --exclude headstack-prerequisites --exclude headstack-py --exclude headstack-tidy $(PACKAGE)

# The Debian package: command, manual pages, completions, units of systemd, a system user. Installs cargo-deb where it is missing.
.PHONY: deb test-deb
deb:
	CARGO="$(CARGO)" scripts/build-deb $(OUT)

# What is in the package, and how it is installed, runs and is removed; the last in a Debian of its own, with root and mmdebstrap. Not in
# `make test`, because it needs a release build: minutes.
test-deb: deb
	for package in $(OUT)/headstack_*.deb; do scripts/test-deb $$package || exit 1; done

# The package under a systemd that runs: its services start, reload and stop, and a purge leaves nothing. Needs root, mmdebstrap and
# systemd-nspawn.
.PHONY: test-services
test-services: deb
	for package in $(OUT)/headstack_*.deb; do scripts/test-services $$package || exit 1; done

# The example container's instructions in a Debian that mmdebstrap makes. Needs root.
.PHONY: test-container
test-container: deb
	for package in $(OUT)/headstack_*.deb; do scripts/test-container $$package || exit 1; done

# The examples for Kubernetes and libvirt against the definitions of their formats. Needs the Python index.
.PHONY: test-contrib
test-contrib:
	scripts/test-contrib

# The example for QEMU: what a guest sees of an emulated disk's rotation. Minutes.
.PHONY: guest-rotation
guest-rotation: guest-programs
	tests/guest/rotation.sh $${CARGO_TARGET_DIR:-target}/release/headstack

# What fio-plot draws of `headstack sim --json`, against the results. Needs the Python index. The pictures stay in OUT.
.PHONY: test-fio-plot
test-fio-plot:
	$(CARGO) build --release --package headstack-cli
	scripts/test-fio-plot $${CARGO_TARGET_DIR:-target}/release/headstack $(OUT)/fio-plot

# The command as one static file for any Linux of this processor, and a trial of it in an empty root. Needs rustup and Debian's musl-tools; the
# trial needs root.
.PHONY: static test-static
static:
	CARGO="$(CARGO)" scripts/build-static $(OUT)

test-static: static
	scripts/test-static $(OUT)/headstack-static

# All crates of the command with their licences, as CycloneDX.
.PHONY: sbom
sbom:
	CARGO="$(CARGO)" scripts/sbom $(OUT)

clean:
	$(CARGO) clean
	rm -rf $(OUT)
