# The commands a newcomer needs. `make demo` shows what navicert does; `make test` is what has to pass.
.DEFAULT_GOAL := help
.PHONY: help demo test test-fast release install uninstall bench soak clients fuzz fresh

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## what navicert does, in a minute: everything embedded, nothing to configure
	@scripts/require demo
	@scripts/run-demo

test: ## everything that has to pass before a change lands
	@scripts/require test
	@scripts/test

test-fast: ## the inner loop: formatting and tests, without other people's programs
	@scripts/test --fast

release: ## the programs as they are shipped, in target/release
	cargo build --release --locked --package navicert --package navicert-signer --bins
	@scripts/build-image-helper
	@scripts/build-registries

# The folders are checked before the build, so that a missing permission is not found out minutes later.
PREFIX ?= /usr/local
install: ## every program, manual pages, completions; PREFIX=~/.local needs no root (docs/install.md)
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install --check
	$(if $(NAVICERT_INSTALL_FROM),,@$(MAKE) --no-print-directory release)
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install

uninstall: ## remove what `make install` put into PREFIX
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install --uninstall

bench: ## ratios against peers and against the physical limit, one table
	@scripts/require bench
	@scripts/build-image-helper
	cargo build --release --locked --package navicert --bins
	@scripts/build-registries
	cargo run --release --locked --package navicert-bench

soak: ## the long forms of faults, floods and leak counts; `make test` runs their short forms
	@scripts/require soak
	NAVICERT_SOAK=50 cargo test --release --locked --package navicert-plugin --test leaks --test processes
	NAVICERT_SOAK=50 cargo test --release --locked --package navicert-client --test soak -- --nocapture
	cargo test --release --locked --package navicert-client --lib -- --ignored config::
	NAVICERT_SOAK=100 cargo test --release --locked --package navicert --test serve -- load:: floods:: --nocapture --test-threads=1
	NAVICERT_SOAK=100 cargo test --release --locked --package navicert --test serve_proxy -- faults:: floods:: --nocapture --test-threads=1

clients: ## what kubectl, Python, Node, kube-rs and navicert do when credentials expire, are revoked or rotate
	@scripts/require clients
	@scripts/install-clients
	@cargo run --locked --package navicert-kube --example clients -- --check docs/clients.md
	cargo test --locked --package navicert --test serve_proxy -- --ignored libraries::

FUZZ_SECONDS ?= 60
fuzz: ## every fuzz target for FUZZ_SECONDS (nightly toolchain)
	@scripts/run-fuzz $(FUZZ_SECONDS)

fresh: ## both commands of README.md in a minimal Debian, as root and as an ordinary user without sudo (needs root)
	scripts/fresh-machine make demo
	scripts/fresh-machine make test
	scripts/fresh-machine --user make demo
	scripts/fresh-machine --user make test

-include peers/peers.mk
