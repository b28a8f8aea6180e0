# Everything a developer runs. `make test` is what CI runs; it must pass on a fresh Debian machine with Go.
SHELL := /bin/bash
GO    ?= go
BIN   := bin/olafctl
LDFLAGS := -s -w
# Releases and all tools build without cgo, and share one build cache; only race tests need it.
export CGO_ENABLED := 0
# As in a release, so that what tests compile serves the builds that are compared (internal/tools/sbom), too.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
# Property tests draw other cases in every run; in CI the same ones, so that only a change can break it (0 is at random).
ifeq ($(CI),true)
export RAPID_SEED ?= 1
endif

# Debian packages that the suites use as real peers, as package:program, or package:/path where there is no program.
PEERS := tshark:tshark z3:z3 cvc5:cvc5 verilator:verilator libreoffice-calc:soffice chromium:chromium build-essential:gcc \
	glpk-utils:glpsol coinor-cbc:cbc python3-scipy:/usr/lib/python3/dist-packages/scipy \
	python3-numpy:/usr/lib/python3/dist-packages/numpy python3-torch:/usr/lib/python3/dist-packages/torch \
	qemu-user-static:qemu-aarch64-static openssh-server:/usr/sbin/sshd openssh-client:ssh clang-14:clang-14 llvm-14:llvm-strip-14 shellcheck:shellcheck

# Packages whose code runs on several goroutines; the race detector needs cgo and gcc.
RACE := ./capture/live ./fpga/realtime ./pktgen/attach ./experiments/testbed ./experiments/testbed/sshlink ./experiments/bench ./experiments/bench/slowmotion ./p4ctl/... ./cmd/olafctl/... ./experiments/sweep/... ./results/store ./fpga/remote ./tui/...

# Many tests wait for clocks, children and the kernel: half as many packages again as there are processors keep these busy.
SIDE := -p $(shell expr $$(nproc) \* 3 / 2 + $$(nproc) % 2)

.PHONY: build help test quick often unit race lint style generate bench sweeps kernel idle pci torn hosts attached losses fuzz faults campaign exactly mutate sbom licences reproducible peers clean

build: ## the binary, without cgo, and the work queue of sweeps over several machines beside it
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/olafctl
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(dir $(BIN))olafctl-queue ./cmd/olafctl-queue

help: ## this list
	@sed -nE 's/^([a-z]+):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

test: peers lint unit race ## what CI runs

# Root goes without its rights there: what needs the kernel's is left out as for anybody else.
quick: ## the tests that need neither other programs nor rights; a minute once built
	$(if $(filter 0,$(shell id -u)),setpriv --bounding-set=-all --inh-caps=-all) $(GO) test $(SIDE) -short ./...

# What goes on beside the code that asks for it, or after a time: goroutines, child processes, clocks.
BESIDE := \bgo func|\.Go\(func|\bgo [A-Za-z_.]+\(|exec\.Command|errgroup|time\.(After|AfterFunc|Sleep|Tick|NewTimer|NewTicker)\b
TIMES  ?= 20

# One process of cmd/olafctl for each time: cobra keeps every tree of commands that was ever built, and each test builds some.
often: ## short tests of all that has goroutines, children or clocks, 20 times each: a row a package; PKG=./p4ctl TIMES=20, hours
	@work=$$(mktemp -d); trap 'rm -rf $$work' EXIT; all=0; \
	if [ "$(origin PKG)" = file ]; then packages=$$(git ls-files -z '*.go' | xargs -0 grep -lE '$(BESIDE)' | xargs -n1 dirname | sort -u | sed 's|^|./|'); \
	else packages="$(PKG)"; fi; \
	printf '%-36s %5s %8s\n' package runs failures; \
	for p in $$packages; do \
	  [ -n "$$($(GO) list -f '{{join .TestGoFiles ""}}{{join .XTestGoFiles ""}}' $$p)" ] || continue; \
	  $(GO) test -c -o $$work/test $$p || exit 1; runs=0; failures=0; each=$(TIMES); \
	  case $$p in */cmd/olafctl) each=1;; esac; \
	  while [ $$runs -lt $(TIMES) ]; do \
	    runs=$$((runs + each)); \
	    (cd $$p && $$work/test -test.short -test.count=$$each -test.timeout=4h) >$$work/said 2>&1 && continue; \
	    failed=$$(grep -c '^--- FAIL' $$work/said); failures=$$((failures + (failed > 0 ? failed : 1))); \
	    tail -n 200 $$work/said >&2; \
	  done; \
	  printf '%-36s %5d %8d\n' $${p#./} $$runs $$failures; all=$$((all + failures)); \
	done; [ $$all = 0 ]

unit: ## all tests, and those of the driver's own build; lint vets them
	$(GO) test $(SIDE) -vet=off -timeout 30m ./...
	$(GO) test -C internal/tools $(SIDE) -vet=off -timeout 30m ./...
	@# AMD's driver is loaded by a build of its own; a stand-in compiled from our C takes its place in the test.
	@if command -v gcc >/dev/null; then $(GO) test -vet=off -tags vnp4 -run StandIn ./cmd/olafctl; \
	 elif [ "$$CI" = true ]; then echo "the driver's test needs gcc" >&2; exit 1; \
	 else echo "skipped: the driver's test (no gcc)"; fi

# A program with the race detector waits for a second at its end, and scripts start hundreds of them.
race: ## what runs on several goroutines, under the race detector; the long campaigns run without it
	@if command -v gcc >/dev/null; then GORACE=atexit_sleep_ms=10 CGO_ENABLED=1 $(GO) test $(SIDE) -vet=off -race -short -timeout 30m $(RACE); \
	 elif [ "$$CI" = true ]; then echo "race tests need gcc" >&2; exit 1; \
	 else echo "skipped: race tests (no gcc)"; fi

lint: ## format, vet (the driver's build and macOS on arm64 too), staticcheck, known vulnerabilities
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags vnp4 ./cmd/olafctl/...
	$(GO) vet -C internal/tools ./...
	@# A renaming misses files for other systems and processors. One build of both kinds is enough: a test of 'unit' builds
	@# for Linux on arm64.
	GOOS=darwin GOARCH=arm64 $(GO) vet ./cmd/olafctl
	$(GO) tool staticcheck ./...
	@check=$$($(GO) tool -n staticcheck) && cd internal/tools && $$check ./...
	@said=$$($(GO) tool govulncheck ./... 2>&1); code=$$?; case "$$said" in \
	 *"fetching vulnerabilities"*) echo "skipped: known vulnerabilities (govulncheck can't reach its database)";; \
	 *) [ $$code = 0 ] || { echo "$$said" >&2; exit 1; };; esac

style: ## count habits of language, list the worst places, and check the limits (CONTRIBUTING.md)
	@$(GO) build -C internal/tools -o $(CURDIR)/bin/tools/ ./prose
	bin/tools/prose -limits internal/tools/prose/limits.txt -top 20

generate: ## regenerate what is derived; a test fails when it is stale
	$(GO) generate ./...

bench: ## the numbers of docs/notes/performance.md, medians by benchstat if you have it
	$(GO) test -run '^$$' -bench . -benchtime 0.3s -count 3 ./...

sweeps: build ## what a sweep costs a cell, and beside a loop in one process (docs/guide/sweeps.md); then the built programs are killed, filled and cut off (root); five minutes on a quiet machine
	$(GO) test ./cmd/olafctl -run '^$$' -bench Sweep -benchtime 1x -timeout 20m
	$(GO) test ./cmd/olafctl -run '^TestBuilt' -v -timeout 20m -built $(abspath $(dir $(BIN)))

kernel: ## what the kernel takes for packets, beside the goals of docs/notes/kernel.md; root, a quiet machine, a minute
	$(GO) test -run '^$$' -bench . -benchtime 1s ./fpga/xdp ./fpga/realtime

.PHONY: xagg
xagg: ## XAgg's Figs. 6 to 11 on this kernel, the program in the kernel beside user space (docs/papers/xagg.md); root, a quiet machine, three minutes
	$(GO) test -run '^$$' -bench Aggregator -benchtime 0.3s ./fpga/xdp
	$(GO) test ./experiments/testbed/saturate -run '^TestXAggOnThisKernel$$' -hop 5 -v -timeout 15m

idle: ## 30 runs of real packets that confirm when ages are withheld (docs/notes/kernel.md); root, an idle machine, three minutes
	$(GO) test ./experiments/bench -run '^TestIdleRuns$$' -idle 30 -v -timeout 15m

attached: build ## programs that train through the kernel beside gloo (docs/notes/performance.md), and sums compared while packets are lost; root, python3-torch, five minutes
	$(GO) test ./experiments/rl/onwire -run '^TestAttached' -count=1 -v -attached $(abspath $(BIN)) -timeout 30m

losses: build ## every sum of attached programs compared with all inputs while packets are lost, FOR=10m; root
	$(GO) test ./experiments/rl/onwire -run '^TestAttachedExact$$' -count=1 -v -attached $(abspath $(BIN)) -exact $(FOR) -timeout 24h

torn: build ## rewards of models in 1 to 64 frames (docs/notes/trainings.md), finished ones kept in bin/torn; six minutes of two cores
	nice $(BIN) experiment run olaf/fragments-reward --trainings $(dir $(BIN))torn

hosts: ## heads, ssh, agents and cables of three hosts killed, stopped and cut, at 30 moments each, and 20 benches there: progress and a table (root, sshd); up to 20 minutes
	$(GO) test ./cmd/olafctl -run '^Test(KilledA|FarKernel)' -count=1 -v -timeout 40m -hosts 30

pci: ## every state of a card on a real PCI bus, in virtual machines with Debian's kernel (fpga/pcie/pcivm); two minutes
	@# Native hot plug mostly waits, so the other machines run beside it.
	$(GO) test ./fpga/pcie/pcivm -count=1 -v -matrix -parallel 3 -timeout 30m

fuzz: ## every fuzz target, for as long together as FOR says: FOR=10m
	@mapfile -t targets < <(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sed -E 's|/[^/:]*:func | |' | sort); \
	case $(FOR) in *h) s=$$(( $(FOR:h=) * 3600 ));; *m) s=$$(( $(FOR:m=) * 60 ));; *) s=$(FOR:s=);; esac; \
	each=$$(( s / $${#targets[@]} )); [ $$each -gt 0 ] || each=1; echo "$${#targets[@]} targets, $$each s each"; \
	for t in "$${targets[@]}"; do echo "$$t"; $(GO) test -run '^$$' -fuzz "^$${t#* }$$" -fuzztime $${each}s "$${t% *}" || exit 1; done

# A sample of mutants a package: make mutate PKG=./fpga/engine N=100 SEED=1; SEEN="1,2 3" draws none that
# 1 and 2 drew, nor 3 without these. Each survivor is printed with its reason in internal/tools/mutate/survivors.txt.
FOR  ?= 5m
PKG  ?= $(MUTATED)
N    ?= 100
SEED ?= 1
SEEN ?=
MUTATED := fpga/engine fpga/twin fpga/program fpga/program/atp fpga/program/iswitch fpga/program/p4inc fpga/program/switchml fpga/program/vector fpga/program/xagg \
	results results/archive results/obsfile results/compare results/export results/inference results/metric results/paper results/report results/sheets results/store results/table results/xlsx \
	experiments/netsim experiments/netsim/closedloop experiments/netsim/node experiments/aomcheck pktgen pktgen/endpoint pktgen/trace capture capture/replay p4ctl p4ctl/agent

mutate: ## wrong changes that no test notices: PKG=./fpga/engine N=100 SEED=1
	@$(GO) build -C internal/tools -o $(CURDIR)/bin/tools/ ./mutate
	@for p in $(PKG); do bin/tools/mutate -pkg $$p -n $(N) -seed $(SEED) $(SEEN:%=-seen %) || exit 1; done

# Twenty processes, for the reason that often has: 10,000 scripts in one took more than 20 GB.
faults: ## 10,000 scripts of faults, played to the commands on a card made of software (docs/notes/reliability.md): SEED=14
	@work=$$(mktemp -d); trap 'rm -rf $$work' EXIT; $(GO) test -c -o $$work/test ./cmd/olafctl && cd cmd/olafctl && \
	for i in $$(seq 0 19); do \
	  $$work/test -test.run '^TestFaults$$' -test.v -test.timeout 30m -rapid.checks=500 -rapid.seed=$$(( 20 * $(SEED) + i )) >$$work/said 2>&1 || { cat $$work/said; exit 1; }; \
	  sed -nE 's/^ *faults_test.go:[0-9]+: ([0-9]+ right.*)/500 scripts, seed '$$(( 20 * $(SEED) + i ))': \1/p' $$work/said; \
	done

campaign: ## a million packets over an unreliable way to every switch program, slow references, and every input of the predictions
	$(GO) test ./fpga/program/switchml ./fpga/program/atp ./fpga/program/iswitch -run '^TestUnreliable' -v -packets=1000000 -timeout 30m
	$(GO) test ./experiments/paper/p4inc -run PredictionsDependOnInputs -campaign -timeout 30m

exactly: ## every sum of 300 seeds, five losses and three topologies holds each gradient once (docs/notes/reliability.md)
	@set -o pipefail; $(GO) test ./experiments/netsim/closedloop -run ExactlyOnce -v -count=1 -timeout 30m | grep -v '^ \+--- PASS\|^=== '

peers: ## install the programs the suites test against (root on Debian), or name what will be skipped
	@missing=(); for p in $(PEERS); do command -v $${p#*:} >/dev/null || [ -e $${p#*:} ] || missing+=($${p%%:*}); done; \
	if [ $${#missing[@]} -gt 0 ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $${missing[@]} >/dev/null; \
	  else echo "not installed, so their tests are skipped: $${missing[*]}"; fi; fi

sbom: build ## what the programs consist of, as CycloneDX
	@$(GO) build -C internal/tools -o $(CURDIR)/bin/tools/ ./sbom && mkdir -p dist && for p in olafctl olafctl-queue; do \
	 bin/tools/sbom -binary $(dir $(BIN))$$p -o dist/$$p.cdx.json && echo dist/$$p.cdx.json || exit 1; done

licences: ## list the licences of all modules anew
	@$(GO) build -C internal/tools -o $(CURDIR)/bin/tools/ ./sbom
	bin/tools/sbom -licences docs/reference/licences.md

reproducible: ## two builds in two folders with caches of their own, which must be equal; minutes
	@set -e; t=$$(mktemp -d); trap 'chmod -R u+w $$t; rm -rf $$t' EXIT; for d in a b; do mkdir $$t/$$d; \
	 git ls-files -z | xargs -0 cp --parents -t $$t/$$d; \
	 GOCACHE=$$t/cache-$$d GOFLAGS=-buildvcs=false $(MAKE) -s -C $$t/$$d build; (cd $$t/$$d/bin && sha256sum *) | tee $$t/$$d.sum; done; \
	 cmp $$t/a.sum $$t/b.sum

clean: ## remove what was built
	rm -rf bin dist
