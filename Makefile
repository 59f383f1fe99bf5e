# The commands of the house. `make demo` shows what Headstack does; `make test` is what must pass.

CARGO ?= cargo
OUT ?= out
FUZZ_SECONDS ?= 60

.PHONY: demo test packages lint doc docs-formats bench speed fuzz clean

demo:
	$(CARGO) build --release --package headstack-cli
	$${CARGO_TARGET_DIR:-target}/release/headstack demo --out $(OUT)

test: packages lint doc
	$(CARGO) test --workspace
	$(CARGO) test --release --package headstack-sim --test golden

packages:
	scripts/install-test-packages

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps

# Brings docs/formats/drive-file.md up to date with the definitions in crates/model/src/spec.
docs-formats:
	HEADSTACK_UPDATE=1 $(CARGO) test --package headstack-cli --test cli keys::

# Requests a CPU second on the loads that DiskSim was measured on; `bench/runs/` keeps the results.
speed:
	$(CARGO) run --release --package headstack-bench --bin speed

bench:
	$(CARGO) bench --workspace

# Each fuzz target for FUZZ_SECONDS. Needs a nightly toolchain and cargo-fuzz.
fuzz:
	for target in $$($(CARGO) +nightly fuzz list); do \
		$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

clean:
	$(CARGO) clean
	rm -rf $(OUT)
