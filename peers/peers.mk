# The targets of peers/: Kubernetes' own code as reference, opponent and control plane. Included by the root Makefile when
# this directory is there; nothing else depends on it. See peers/README.md.

PEERS_DIR := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
PEERS_ROOT := $(abspath $(PEERS_DIR)/..)
PEERS_OUT := $(PEERS_ROOT)/target/peers
PEERS_BIN := $(PEERS_OUT)/bin
PEERS_VECTORS := $(PEERS_ROOT)/conformance/vectors
# For example PEERS_GOFLAGS="-p 1" on a machine that is busy with something else.
PEERS_GOFLAGS ?=
PEERS_GO = nice -n 10 go
PEERS_KUBERNETES := $(shell sed -n 's|^\tk8s.io/kubernetes \(v[0-9.]*\).*|\1|p' $(PEERS_DIR)/go.mod)
# The version of Kubernetes that decides: that of go.mod, or one of versions/.
PEERS_DEFAULT := $(shell echo $(PEERS_KUBERNETES) | sed 's/^v\([0-9]*\.[0-9]*\)\..*/\1/')
KUBE ?= $(PEERS_DEFAULT)
PEERS_REFERENCE = $(PEERS_BIN)/reference-$(KUBE)
# An expression that makes upstream allocate without limit ends the program and not the machine.
PEERS_LIMIT = ulimit -v 12000000

# Programs that look inside upstream packages are built with the overlay, what we run of upstream without it.
PEERS_INSIDE = $(PEERS_DIR)/go.sh $(PEERS_OUT) $(KUBE)
PEERS_BUILD = -trimpath $(PEERS_GOFLAGS)
PEERS_UPSTREAM = cd $(PEERS_DIR) && GOWORK=off $(PEERS_GO) build $(PEERS_BUILD)
PEERS_VERSION = -X k8s.io/component-base/version.gitVersion=$(PEERS_KUBERNETES) \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(PEERS_KUBERNETES:v%=%))) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(PEERS_KUBERNETES:v%=%)))

.PHONY: peers peers-reference cel-suite vectors peers-go peers-prepare peers-verify peers-test peers-upstream

peers: peers-reference $(if $(filter $(PEERS_DEFAULT),$(KUBE)),cel-suite) ## the reference: Kubernetes' own decisions as JSON lines, and the CEL suite (needs Go, as do the peers below)

peers-reference: peers-prepare
	$(PEERS_INSIDE) build $(PEERS_BUILD) -o $(PEERS_REFERENCE) ./reference
	@$(if $(filter $(PEERS_DEFAULT),$(KUBE)),ln -sf $(notdir $(PEERS_REFERENCE)) $(PEERS_BIN)/reference)

# The published CEL conformance suite as JSON, from the Go module that has it, with what Kubernetes makes of each test.
cel-suite: peers-reference
	@cd $(PEERS_DIR)/celsuite && GOWORK=off $(PEERS_GO) build $(PEERS_BUILD) -o $(PEERS_BIN)/celsuite .
	@$(PEERS_BIN)/celsuite "$$(cd $(PEERS_DIR)/celsuite && GOWORK=off go list -m -f '{{.Dir}}' cel.dev/expr)/tests/simple/testdata" $(PEERS_OUT)/cel-conformance
	@$(PEERS_REFERENCE) suite $(PEERS_OUT)/cel-conformance

vectors: peers-reference ## records the decisions in conformance/vectors anew and says which have changed
	@$(PEERS_LIMIT) && $(PEERS_REFERENCE) record $(PEERS_VECTORS)

# For example `make kube-version KUBE=1.39 RELEASE=v0.39.0`.
RELEASE ?=
KUBERNETES ?=
.PHONY: kube-version
kube-version: peers-go ## takes on a version of Kubernetes (KUBE=1.39 RELEASE=v0.39.0): module, reference, vectors; prints what differs
	@$(PEERS_DIR)/add-version $(KUBE) "$(RELEASE)" $(KUBERNETES)

peers-verify: peers-reference ## replays the vectors through the reference and lists every line that differs
	@$(PEERS_LIMIT) && cd $(PEERS_DIR) && $(PEERS_REFERENCE) verify $(PEERS_VECTORS)

peers-test: peers-prepare
	$(PEERS_INSIDE) vet ./...
	$(PEERS_INSIDE) test $(PEERS_GOFLAGS) ./...
	cd $(PEERS_DIR)/celsuite && GOWORK=off $(PEERS_GO) vet . && GOWORK=off $(PEERS_GO) test $(PEERS_GOFLAGS) .

peers-upstream: peers-prepare ## reproduces the defects that docs/upstream describes, in one version of Kubernetes
	$(PEERS_INSIDE) test $(PEERS_BUILD) -vet=off -count=1 -v -run TestUpstream ./decide

peers-prepare: peers-go
	@mkdir -p $(PEERS_BIN)
	@$(PEERS_DIR)/prepare.sh $(PEERS_OUT) $(KUBE)

peers-go:
	@$(PEERS_ROOT)/scripts/require peers

# What these two need besides Go, checked before anything is built.
.PHONY: interop-needs race-needs
interop-needs race-needs: %-needs:
	@$(PEERS_ROOT)/scripts/require $*

# --- a control plane ---------------------------------------------------------------------------------------------------

CLUSTER_DIR ?= $(PEERS_OUT)/cluster
CLUSTER_FLAGS ?=

.PHONY: cluster cluster-build cluster-down interop

cluster: cluster-build ## etcd, kube-apiserver and a test issuer on loopback, with kubeconfigs
	@$(PEERS_BIN)/cluster up -dir $(CLUSTER_DIR) $(CLUSTER_FLAGS)

cluster-down: ## stops that cluster and removes its directory
	@if [ -x $(PEERS_BIN)/cluster ]; then $(PEERS_BIN)/cluster down -dir $(CLUSTER_DIR); else echo "No cluster is up."; fi

cluster-build: peers-go $(PEERS_BIN)/etcd-$(PEERS_KUBERNETES) $(PEERS_BIN)/kube-apiserver-$(PEERS_KUBERNETES) $(PEERS_BIN)/kubectl-$(PEERS_KUBERNETES)
	@$(PEERS_UPSTREAM) -o $(PEERS_BIN)/ ./cluster

interop: interop-needs cluster-build ## the suites that need a real control plane: tests/interop_*.rs of every crate
	cd $(PEERS_ROOT) && NAVICERT_PEERS=$(PEERS_BIN) NAVICERT_PEERS_TOOLS=$(PEERS_OUT)/tools \
		cargo test --workspace --locked --features navicert/interop,navicert-kube/interop,navicert-testkit/interop --test 'interop_*'

# Upstream's programs are built once per version; the plain name is a link to the version in use.
$(PEERS_BIN)/etcd-$(PEERS_KUBERNETES): PEERS_PACKAGE = go.etcd.io/etcd/server/v3
$(PEERS_BIN)/kube-apiserver-$(PEERS_KUBERNETES): PEERS_PACKAGE = k8s.io/kubernetes/cmd/kube-apiserver
$(PEERS_BIN)/kubectl-$(PEERS_KUBERNETES): PEERS_PACKAGE = k8s.io/kubernetes/cmd/kubectl
$(PEERS_BIN)/etcd-$(PEERS_KUBERNETES) $(PEERS_BIN)/kube-apiserver-$(PEERS_KUBERNETES) $(PEERS_BIN)/kubectl-$(PEERS_KUBERNETES):
	@mkdir -p $(PEERS_BIN)
	$(PEERS_UPSTREAM) -ldflags "-s -w $(PEERS_VERSION)" -o $@ $(PEERS_PACKAGE)
	@ln -sf $(notdir $@) $(@:%-$(PEERS_KUBERNETES)=%)

# --- differential ------------------------------------------------------------------------------------------------------

KIND ?=
N ?= 10000
SEED ?= 1
NAVICERT ?= $(firstword $(wildcard $(PEERS_ROOT)/target/release/navicert $(PEERS_ROOT)/target/debug/navicert) $(PEERS_ROOT)/target/release/navicert)

.PHONY: differential

differential: peers-prepare ## generated questions to Kubernetes and to navicert: KIND=cel N=100000 SEED=7
	@$(PEERS_INSIDE) build $(PEERS_BUILD) -o $(PEERS_BIN)/differential-$(KUBE) ./differential
	@$(PEERS_LIMIT) && cd $(PEERS_DIR) && $(PEERS_BIN)/differential-$(KUBE) $(if $(filter $(PEERS_DEFAULT),$(KUBE)),,-kube-version $(KUBE)) -kind "$(KIND)" -n $(N) -seed $(SEED) -navicert "$(NAVICERT)" -out $(PEERS_OUT)/differential

# --- the race ----------------------------------------------------------------------------------------------------------

# For example ROW=cel: only the rows whose name contains it.
ROW ?=
# Our side, called as `NAVICERT_BENCH --json ROW`; rows it does not have stay empty.
NAVICERT_BENCH ?= $(PEERS_ROOT)/target/release/navicert-bench

.PHONY: race

race: race-needs peers-prepare ## Go's figures and ours, row by row in turns, as one table of ratios, and the claims about them
	@cd $(PEERS_ROOT) && cargo build --release --locked --quiet --package navicert-bench
	@cc -O2 -static -o $(PEERS_BIN)/race-plugin $(PEERS_DIR)/bench/plugin/race-plugin.c
	@$(PEERS_INSIDE) test -c $(PEERS_BUILD) -o $(PEERS_BIN)/bench.test ./bench
	@$(PEERS_INSIDE) build $(PEERS_BUILD) -o $(PEERS_BIN)/ ./bench/race
	$(if $(ROW),,@cd $(PEERS_ROOT) && scripts/build-registries && { $(NAVICERT_BENCH) registries || [ $$? -eq 3 ]; })
	@$(PEERS_BIN)/race -bench $(PEERS_BIN)/bench.test -plugin $(PEERS_BIN)/race-plugin -navicert "$(NAVICERT_BENCH)" -row "$(ROW)" \
		-inputs $(PEERS_VECTORS)/bench

# --- other people's programs -------------------------------------------------------------------------------------------

.PHONY: peers-tools

peers-tools: peers-go ## dex, toxiproxy, kubelogin, ECR's providers, crane; says what does not install
	@PEERS_GOFLAGS="$(PEERS_GOFLAGS)" $(PEERS_DIR)/tools.sh $(PEERS_OUT)/tools
