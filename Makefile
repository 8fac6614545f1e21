# The commands a newcomer needs. `make demo` shows what navicert does; `make test` is what has to pass.
.DEFAULT_GOAL := help
.PHONY: help demo test test-fast release install uninstall dist test-dist test-reproducible image test-image deb rpm test-packages test-release check-release check-crates package features semver test-quickstarts test-recipes test-monitoring test-chart deploy-example test-workflows dependencies book bench soak clients fuzz fresh

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## what navicert does, in a minute: everything embedded, nothing to configure
	@scripts/require demo
	@scripts/run-demo

test: ## everything that has to pass before a change lands
	@scripts/require test
	@scripts/test

test-fast: ## the inner loop: formatting and tests, without other people's programs
	@scripts/test --fast

release: ## the programs as they are shipped, in target/release
	@scripts/build-release

# The folders are checked before the build, so that a missing permission is not found out minutes later.
PREFIX ?= /usr/local
install: ## every program, manual pages, completions; PREFIX=~/.local needs no root (docs/install.md)
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install --check
	$(if $(NAVICERT_INSTALL_FROM),,@$(MAKE) --no-print-directory release)
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install

uninstall: ## remove what `make install` put into PREFIX
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install --uninstall

dist: ## archives of a release for every target that can be built here (TARGETS=… for some), in target/dist; the same bytes wherever they are built
	@scripts/dist $(if $(NAVICERT_INSTALL_FROM),,--build $(TARGETS))

test-dist: ## the archives in target/dist unpacked and their programs run, other processors' with qemu; sizes
	@scripts/require test-dist
	@scripts/test-dist

test-reproducible: ## two builds in different directories, by different users, give the same bytes (needs root, two full builds)
	@scripts/require test-reproducible
	@scripts/test-reproducible $(TARGETS)

image: ## OCI images of the static programs, in target/dist/image; the same bytes wherever they are built
	@scripts/require image
	@scripts/image

test-image: ## the images pushed to a registry on loopback, pulled by digest, unpacked and run with a read-only root
	@scripts/require test-image
	@scripts/test-image

deb rpm test-packages: TARGETS = host
deb: dist ## Debian packages of the archive, in target/dist/deb
	@scripts/require deb
	@scripts/deb

rpm: dist ## rpm packages of the archive, in target/dist/rpm
	@scripts/require rpm
	@scripts/rpm

test-packages: dist ## the deb and rpm packages installed, used, upgraded and removed in a minimal root (needs root)
	@scripts/require test-packages
	@scripts/test-packages

test-release: ## a signed release is accepted, changed ones are refused; with stand-ins for the programs
	@scripts/require test-release
	@scripts/test-release

test-quickstarts: ## every command of the quick starts, typed in a minimal Debian, each to its success line (needs root)
	@scripts/test-quickstarts

test-recipes: ## helm and an MCP server behind navicert, the YubiKey commands against ykman's help
	@scripts/require test-recipes
	@$(MAKE) --no-print-directory cluster-build
	@scripts/test-recipes

VERSION ?= $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$$/\1/p' Cargo.toml)
check-release: ## whether VERSION can be released: manifests, chart, docs, changelog and tags agree; writes the release notes to target/dist/NOTES.md
	@scripts/release $(VERSION) --check
	@mkdir -p target/dist && scripts/release $(VERSION) --notes >target/dist/NOTES.md

check-crates: package features semver ## whether the crates can be published: the three targets below

package: ## every published crate packaged as `cargo publish` would and built from its package; files and sizes
	@scripts/require package
	@scripts/package-crates

features: ## every combination of features of every published crate compiled
	@scripts/require features
	@scripts/check-features

semver: ## public APIs compared with the last release (BASE=REVISION: with another revision): whether the version is high enough
	@scripts/require semver
	@BASE='$(BASE)' scripts/check-semver

test-monitoring: ## Prometheus accepts alerts and dashboard, and each alert fires when it should
	@scripts/require test-monitoring
	@scripts/check-monitoring

test-chart: ## the Helm chart: lint, golden files, refusals, and installed, upgraded and rolled back in a real control plane
	@scripts/require test-chart
	@$(MAKE) --no-print-directory cluster-build
	@scripts/test-chart

deploy-example: ## write the chart's generated files, its golden files and examples/deploy again
	@scripts/require deploy-example
	@scripts/generate-chart
	@scripts/render-chart

book: ## the guides as a book with search, in target/book; builds mdbook once
	@scripts/require book
	@scripts/build-book

test-workflows: ## the forge's workflows are valid, and the script of its action accepts and rejects as it should
	@scripts/check-workflows

dependencies: ## licences, bans, sources and, where the database can be reached, advisories
	@scripts/install-tools cargo-deny
	@scripts/check-dependencies

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
	NAVICERT_SOAK=10 cargo test --release --locked --package navicert --test login_kill -- --nocapture --test-threads=1
	NAVICERT_SOAK=100 cargo test --release --locked --package navicert --test serve -- load:: floods:: --nocapture --test-threads=1
	NAVICERT_SOAK=100 cargo test --release --locked --package navicert --test serve_proxy -- faults:: floods:: memory:: victims:: --nocapture --test-threads=1

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
