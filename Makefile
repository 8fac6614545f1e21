# The commands a newcomer needs. `make demo` shows what navicert does; `make test` is what has to pass.
.DEFAULT_GOAL := help
.PHONY: help demo test tools fmt lint unit docs deny release bench soak clients fuzz

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## the story in a minute: everything embedded, nothing to configure
	@cargo build --quiet --package navicert --package navicert-image --package navicert-signer --package navicert-testkit --bins
	@target/debug/demo

test: tools fmt lint unit docs deny ## everything that has to pass before a change lands

tools:
	@scripts/install-tools

fmt:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings

# Where nextest is installed it runs the tests (doctests are not its business); where not, cargo does.
unit:
	@scripts/run-tests

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet

deny:
	@scripts/check-dependencies

release: ## the binaries as they are shipped, in target/release
	cargo build --release --locked --package navicert
	@scripts/build-image-helper
	@scripts/build-registries

bench: ## ratios against peers and against the physical limit, one table
	@scripts/build-image-helper
	cargo build --release --locked --package navicert --bins
	@scripts/build-registries
	cargo run --release --locked --package navicert-bench

soak: ## the long forms of faults, floods and leak counts; `make test` runs their short forms
	NAVICERT_SOAK=50 cargo test --release --locked --package navicert-plugin --test leaks --test processes
	NAVICERT_SOAK=50 cargo test --release --locked --package navicert-client --test soak -- --nocapture
	NAVICERT_SOAK=100 cargo test --release --locked --package navicert --test serve -- load:: floods:: --nocapture --test-threads=1
	NAVICERT_SOAK=100 cargo test --release --locked --package navicert --test serve_proxy -- faults:: floods:: --nocapture --test-threads=1

clients: ## what kubectl, Python, Node, kube-rs and navicert do when credentials expire, are revoked or rotate
	@scripts/install-clients
	@cargo run --quiet --locked --package navicert-kube --example clients -- --check docs/clients.md

FUZZ_SECONDS ?= 60
fuzz: ## every fuzz target for FUZZ_SECONDS (nightly toolchain)
	@scripts/run-fuzz $(FUZZ_SECONDS)

-include peers/peers.mk
