# Targets for developers. CI runs `make test`, which must pass on a fresh Debian machine with Go.
SHELL := /bin/bash
GO    ?= go
BIN   := bin/olafctl
LDFLAGS := -s -w
# Releases and all tools build without cgo, and share one build cache; only race tests need it.
export CGO_ENABLED := 0
# Same flags as for a release, so that the builds compared in internal/tools/sbom share the build cache of tests.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
# Property tests draw new cases in each run. CI uses a fixed seed, so that only changes can break it; 0 is a random seed.
ifeq ($(CI),true)
export RAPID_SEED ?= 1
endif

# Debian packages that tests use as real peers: package:program, or package:/path if there is no program.
PEERS := tshark:tshark z3:z3 cvc5:cvc5 verilator:verilator libreoffice-calc:soffice chromium:chromium build-essential:gcc \
	glpk-utils:glpsol coinor-cbc:cbc python3-scipy:/usr/lib/python3/dist-packages/scipy \
	python3-numpy:/usr/lib/python3/dist-packages/numpy python3-torch:/usr/lib/python3/dist-packages/torch \
	qemu-user-static:qemu-aarch64-static openssh-server:/usr/sbin/sshd openssh-client:ssh clang-14:clang-14 llvm-14:llvm-strip-14 shellcheck:shellcheck

# Packages with concurrent code. The race detector needs cgo and gcc.
RACE := ./capture/live ./fpga/realtime ./pktgen/attach ./experiments/testbed ./experiments/testbed/sshlink ./experiments/bench ./experiments/bench/slowmotion ./p4ctl/... ./cmd/olafctl/... ./experiments/sweep/... ./results/store ./fpga/remote ./tui/...

# Many tests wait for clocks, child processes and the kernel, so 1.5 packages per processor are tested in parallel.
SIDE := -p $(shell expr $$(nproc) \* 3 / 2 + $$(nproc) % 2)

.PHONY: build help test quick often unit race lint style generate bench sweeps kernel idle pci torn hosts attached losses fuzz faults campaign exactly mutate sbom licences reproducible peers clean

build: ## build olafctl without cgo, and olafctl-queue, the work queue for sweeps over several machines
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/olafctl
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(dir $(BIN))olafctl-queue ./cmd/olafctl-queue

help: ## show this list
	@sed -nE 's/^([a-z]+):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

test: peers lint unit race ## run everything that CI runs

# Root drops its capabilities, so that tests that need them are skipped as for other users.
quick: ## run the tests that need neither other programs nor rights; a minute once built
	$(if $(filter 0,$(shell id -u)),setpriv --bounding-set=-all --inh-caps=-all) $(GO) test $(SIDE) -short ./...

# Matches code that runs concurrently or after a delay: goroutines, child processes, clocks.
CONCURRENT := \bgo func|\.Go\(func|\bgo [A-Za-z_.]+\(|exec\.Command|errgroup|time\.(After|AfterFunc|Sleep|Tick|NewTimer|NewTicker)\b
TIMES  ?= 20

# cmd/olafctl gets one process per run: cobra keeps all command trees that were ever built, and each test builds some.
often: ## run short tests of packages with goroutines, child processes or clocks 20 times: PKG=./p4ctl TIMES=20; hours
	@work=$$(mktemp -d); trap 'rm -rf $$work' EXIT; all=0; \
	if [ "$(origin PKG)" = file ]; then packages=$$(git ls-files -z '*.go' | xargs -0 grep -lE '$(CONCURRENT)' | xargs -n1 dirname | sort -u | sed 's|^|./|'); \
	else packages="$(PKG)"; fi; \
	printf '%-36s %5s %8s\n' package runs failures; \
	for p in $$packages; do \
	  [ -n "$$($(GO) list -f '{{join .TestGoFiles ""}}{{join .XTestGoFiles ""}}' $$p)" ] || continue; \
	  $(GO) test -c -o $$work/test $$p || exit 1; runs=0; failures=0; each=$(TIMES); \
	  case $$p in */cmd/olafctl) each=1;; esac; \
	  while [ $$runs -lt $(TIMES) ]; do \
	    runs=$$((runs + each)); \
	    (cd $$p && $$work/test -test.short -test.count=$$each -test.timeout=4h) >$$work/output 2>&1 && continue; \
	    failed=$$(grep -c '^--- FAIL' $$work/output); failures=$$((failures + (failed > 0 ? failed : 1))); \
	    tail -n 200 $$work/output >&2; \
	  done; \
	  printf '%-36s %5d %8d\n' $${p#./} $$runs $$failures; all=$$((all + failures)); \
	done; [ $$all = 0 ]

unit: ## run all tests, including those of the build with AMD's driver; lint vets them
	$(GO) test $(SIDE) -vet=off -timeout 30m ./...
	$(GO) test -C internal/tools $(SIDE) -vet=off -timeout 30m ./...
	@# A separate build loads AMD's driver. The test uses a stand-in compiled from our C code.
	@if command -v gcc >/dev/null; then $(GO) test -vet=off -tags vnp4 -run StandIn ./cmd/olafctl; \
	 elif [ "$$CI" = true ]; then echo "the test of AMD's driver needs gcc" >&2; exit 1; \
	 else echo "skipped: the test of AMD's driver (no gcc)"; fi

# A program with the race detector waits a second before it exits, and scripts start hundreds of programs.
race: ## run tests of concurrent packages under the race detector, without the long campaigns
	@if command -v gcc >/dev/null; then GORACE=atexit_sleep_ms=10 CGO_ENABLED=1 $(GO) test $(SIDE) -vet=off -race -short -timeout 30m $(RACE); \
	 elif [ "$$CI" = true ]; then echo "race tests need gcc" >&2; exit 1; \
	 else echo "skipped: race tests (no gcc)"; fi

lint: ## check format, vet (also the driver's build and macOS on arm64), staticcheck and known vulnerabilities
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) vet -tags vnp4 ./cmd/olafctl/...
	$(GO) vet -C internal/tools ./...
	@# Renaming tools miss files for other systems and processors. One such build is enough, since a test in 'unit' builds
	@# for Linux on arm64.
	GOOS=darwin GOARCH=arm64 $(GO) vet ./cmd/olafctl
	$(GO) tool staticcheck ./...
	@check=$$($(GO) tool -n staticcheck) && cd internal/tools && $$check ./...
	@output=$$($(GO) tool govulncheck ./... 2>&1); code=$$?; case "$$output" in \
	 *"fetching vulnerabilities"*) echo "skipped: known vulnerabilities (govulncheck can't reach its database)";; \
	 *) [ $$code = 0 ] || { echo "$$output" >&2; exit 1; };; esac

style: ## count writing habits, list the worst places, and check the limits (CONTRIBUTING.md)
	@$(GO) build -C internal/tools -o $(CURDIR)/bin/tools/ ./prose
	bin/tools/prose -limits internal/tools/prose/limits.txt -top 20

generate: ## regenerate derived files; a test fails if they are stale
	$(GO) generate ./...

bench: ## measure the numbers in docs/notes/performance.md
	$(GO) test -run '^$$' -bench . -benchtime 0.3s -count 3 ./...

sweeps: build ## measure a sweep's overhead per cell, then kill, fill and disconnect programs (docs/guide/sweeps.md); root, an idle machine, five minutes
	$(GO) test ./cmd/olafctl -run '^$$' -bench Sweep -benchtime 1x -timeout 20m
	$(GO) test ./cmd/olafctl -run '^TestBuilt' -v -timeout 20m -built $(abspath $(dir $(BIN)))

kernel: ## measure the kernel's costs per packet for docs/notes/kernel.md; root, an idle machine, a minute
	$(GO) test -run '^$$' -bench . -benchtime 1s ./fpga/xdp ./fpga/realtime

.PHONY: xagg
xagg: ## measure XAgg's Figs. 6 to 11 in this kernel and in user space (docs/papers/xagg.md); root, an idle machine, three minutes
	$(GO) test -run '^$$' -bench Aggregator -benchtime 0.3s ./fpga/xdp
	$(GO) test ./experiments/testbed/saturate -run '^TestXAggOnThisKernel$$' -hop 5 -v -timeout 15m

idle: ## confirm with 30 runs of real packets when ages are withheld (docs/notes/kernel.md); root, an idle machine, three minutes
	$(GO) test ./experiments/bench -run '^TestIdleRuns$$' -idle 30 -v -timeout 15m

attached: build ## compare training through the kernel with gloo, and check sums while packets are lost (docs/notes/performance.md); root, python3-torch, five minutes
	$(GO) test ./experiments/rl/onwire -run '^TestAttached' -count=1 -v -attached $(abspath $(BIN)) -timeout 30m

losses: build ## check every sum of attached programs while packets are lost: FOR=10m; root
	$(GO) test ./experiments/rl/onwire -run '^TestAttachedExact$$' -count=1 -v -attached $(abspath $(BIN)) -exact $(FOR) -timeout 24h

torn: build ## train models in 1 to 64 frames (docs/notes/trainings.md) and store finished runs in bin/torn; six minutes, two cores
	nice $(BIN) experiment run olaf/fragments-reward --trainings $(dir $(BIN))torn

hosts: ## kill, stop and cut heads, ssh, agents, holders and cables of three hosts at 30 moments each; root, sshd, up to 20 minutes
	$(GO) test ./cmd/olafctl -run '^TestKilledA' -count=1 -v -timeout 40m -hosts 30

pci: ## test every state of a card on a PCI bus in virtual machines with Debian's kernel (fpga/pcie/pcivm); two minutes
	@# Native hot plug mostly waits, so the other machines run in parallel.
	$(GO) test ./fpga/pcie/pcivm -count=1 -v -matrix -parallel 3 -timeout 30m

fuzz: ## run every fuzz target, for FOR in total: FOR=10m
	@mapfile -t targets < <(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sed -E 's|/[^/:]*:func | |' | sort); \
	case $(FOR) in *h) s=$$(( $(FOR:h=) * 3600 ));; *m) s=$$(( $(FOR:m=) * 60 ));; *) s=$(FOR:s=);; esac; \
	each=$$(( s / $${#targets[@]} )); [ $$each -gt 0 ] || each=1; echo "$${#targets[@]} targets, $$each s each"; \
	for t in "$${targets[@]}"; do echo "$$t"; $(GO) test -run '^$$' -fuzz "^$${t#* }$$" -fuzztime $${each}s "$${t% *}" || exit 1; done

# 'make mutate' tests a random sample of mutants per package. SEEN="1,2 3" excludes the mutants that seeds 1 and 2 drew,
# and those that seed 3 drew. Each survivor is printed with its reason in internal/tools/mutate/survivors.txt.
FOR  ?= 5m
PKG  ?= $(MUTATED)
N    ?= 100
SEED ?= 1
SEEN ?=
MUTATED := fpga/engine fpga/twin fpga/program fpga/program/atp fpga/program/iswitch fpga/program/p4inc fpga/program/switchml fpga/program/vector fpga/program/xagg \
	results results/archive results/obsfile results/compare results/export results/inference results/metric results/paper results/report results/sheets results/store results/table results/xlsx \
	experiments/netsim experiments/netsim/closedloop experiments/netsim/node experiments/aomcheck pktgen pktgen/endpoint pktgen/trace capture capture/replay p4ctl p4ctl/agent

mutate: ## list wrong changes that no test detects: PKG=./fpga/engine N=100 SEED=1
	@$(GO) build -C internal/tools -o $(CURDIR)/bin/tools/ ./mutate
	@for p in $(PKG); do bin/tools/mutate -pkg $$p -n $(N) -seed $(SEED) $(SEEN:%=-seen %) || exit 1; done

# Twenty processes, for the same reason as in 'often': 10,000 scripts in one process took more than 20 GB.
faults: ## run commands with 10,000 scripts of faults on a simulated card (docs/notes/reliability.md): SEED=14
	@work=$$(mktemp -d); trap 'rm -rf $$work' EXIT; $(GO) test -c -o $$work/test ./cmd/olafctl && cd cmd/olafctl && \
	for i in $$(seq 0 19); do \
	  $$work/test -test.run '^TestFaults$$' -test.v -test.timeout 30m -rapid.checks=500 -rapid.seed=$$(( 20 * $(SEED) + i )) >$$work/output 2>&1 || { cat $$work/output; exit 1; }; \
	  sed -nE 's/^ *faults_test.go:[0-9]+: ([0-9]+ right.*)/500 scripts, seed '$$(( 20 * $(SEED) + i ))': \1/p' $$work/output; \
	done

campaign: ## send a million packets over unreliable links to switch programs, and vary every input of predictions
	$(GO) test ./fpga/program/switchml ./fpga/program/atp ./fpga/program/iswitch -run '^TestUnreliable' -v -packets=1000000 -timeout 30m
	$(GO) test ./experiments/paper/p4inc -run PredictionsDependOnInputs -campaign -timeout 30m

exactly: ## check that sums contain each gradient once: 300 seeds, five loss rates, three topologies (docs/notes/reliability.md)
	@set -o pipefail; $(GO) test ./experiments/netsim/closedloop -run ExactlyOnce -v -count=1 -timeout 30m | grep -v '^ \+--- PASS\|^=== '

peers: ## install the programs that tests use as peers (root on Debian), or name those whose tests are skipped
	@missing=(); for p in $(PEERS); do command -v $${p#*:} >/dev/null || [ -e $${p#*:} ] || missing+=($${p%%:*}); done; \
	if [ $${#missing[@]} -gt 0 ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $${missing[@]} >/dev/null; \
	  else echo "not installed, so their tests are skipped: $${missing[*]}"; fi; fi

sbom: build ## write the programs' bills of materials in CycloneDX
	@$(GO) build -C internal/tools -o $(CURDIR)/bin/tools/ ./sbom && mkdir -p dist && for p in olafctl olafctl-queue; do \
	 bin/tools/sbom -binary $(dir $(BIN))$$p -o dist/$$p.cdx.json && echo dist/$$p.cdx.json || exit 1; done

licences: ## update the list of all modules' licences
	@$(GO) build -C internal/tools -o $(CURDIR)/bin/tools/ ./sbom
	bin/tools/sbom -licences docs/reference/licences.md

reproducible: ## check that builds in two folders with separate caches are equal; minutes
	@set -e; t=$$(mktemp -d); trap 'chmod -R u+w $$t; rm -rf $$t' EXIT; for d in a b; do mkdir $$t/$$d; \
	 git ls-files -z | xargs -0 cp --parents -t $$t/$$d; \
	 GOCACHE=$$t/cache-$$d GOFLAGS=-buildvcs=false $(MAKE) -s -C $$t/$$d build; (cd $$t/$$d/bin && sha256sum *) | tee $$t/$$d.sum; done; \
	 cmp $$t/a.sum $$t/b.sum

clean: ## remove build output
	rm -rf bin dist
