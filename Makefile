# make            the static binary bin/rdzv
# make demo       PyTorch trains on 4 ranks under Open MPI; again, and it continues
# make test       unit tests and stories with -race, then real launchers
# make chaos      500 faults in PyTorch ranks: is the reason told the true one? A table
# make kill-matrix  who was killed, how long until the last process was gone, who exited with what: a table
# make bench      rdzv beside torchrun, mpirun, mpiexec.hydra and srun: tables in bin/performance.md
# make scale      thousands of simulated agents on one store: tables in bin/scale.md; then 256 real ones
# make soak       does anything grow in 10 minutes, or over 50 jobs in one launcher?
# make figures    the tables of the last three into docs/
# make unit | integration | lint | govulncheck | fuzz | cover | clean
# Go is presupposed; what else is missing, demo, test and lint install with apt-get, saying so.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
FUZZTIME ?= 500x
export PYTHON REPS
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

build: bin/rdzv
.PHONY: build bin/rdzv demo test unit integration lint govulncheck fuzz cover bench scale soak figures chaos kill-matrix clean

# go knows what has changed; the version is ours to stamp, for a copy without git has one too.
bin/rdzv:
	@scripts/need-go
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags "-s -w -X main.release=$(VERSION)" -o $@ ./cmd/rdzv

demo:
	@scripts/install-missing demo
	@$(MAKE) --no-print-directory bin/rdzv
	@scripts/demo

test:
	@scripts/need-go
	@scripts/install-missing test
	@$(MAKE) --no-print-directory unit integration

unit:
	CGO_ENABLED=1 go test -race $$(go list ./... | grep -v '^rdzv/integration')
	python3 -m unittest discover -s bench -p '*_test.py'

# The fault campaign is for make chaos.
integration: bin/rdzv
	go test -count=1 -timeout 20m ./integration -rdzvbin "$(CURDIR)/bin/rdzv" -skip '^TestChaos$$'

SHELL_FILES = .ci/run scripts/* integration/testbed/hosts integration/testbed/slurm bench/*.sh

lint:
	@scripts/need-go
	@scripts/install-missing lint
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "gofmt -w these:" $$unformatted; exit 1; }
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	shellcheck $(SHELL_FILES)

# A short look by default; FUZZTIME=1000000x by hand.
fuzz:
	@mkdir -p bin
	@scripts/fuzz $(FUZZTIME)

# Beside lint, for it asks vuln.go.dev.
govulncheck:
	go tool -modfile=tools/go.mod govulncheck ./...

cover:
	@mkdir -p bin
	go test -coverprofile bin/cover.out $$(go list ./... | grep -v '^rdzv/integration')
	go tool cover -func bin/cover.out | tail -n 1

# BENCH="latency fail": these parts alone. REPS=9: how often each case is run. See bench/suite.py.
bench: bin/rdzv
	@scripts/install-missing bench
	bench/suite.py $(BENCH)

# 64 to 10 000 simulated agents on one store, then 256 real ones. SCALE=64,256 MOST=1024 MANY=32: fewer.
SCALE ?= 64,256,1024,4096
MOST ?= 10000
MANY ?= 256
scale: bin/rdzv
	@scripts/install-missing test
	go build -o bin/scale ./bench/scale
	@set -e; for way in "" -tls "-end loss -reps 1" "-end done -reps 1" "-tls -idle 10s -reps 1" "-n $(MOST) -reps 1"; do \
		bin/scale -n $(SCALE) $$way; done | tee bin/scale.md
	go test -count=1 ./integration -rdzvbin "$(CURDIR)/bin/rdzv" -run ManyAgents -many $(MANY) -v

# DURATION=30s, AGENTS=8, JOBS=10: shorter.
DURATION ?= 10m
AGENTS ?= 64
JOBS ?= 50
soak: bin/rdzv
	@scripts/install-missing test
	go test -count=1 -timeout 24h ./integration -rdzvbin "$(CURDIR)/bin/rdzv" -run 'NothingGrows|JobsInOneLauncher' \
		-soak $(DURATION) -soak-agents $(AGENTS) -soak-jobs $(JOBS) -v | tee bin/soak.log
	@sed -n -e 's/^ *soak_test.go:[0-9]*: |/|/p' -e 's/^ *soak_test.go:[0-9]*: \([0-9]* jobs:\)/\n\1/p' bin/soak.log >bin/soak.md

# The tables of the last bench, soak and scale, into the pages that hold them.
figures:
	scripts/figures docs/performance.md docs/scale.md

# CHAOS="-n 50 -seed 7": fewer faults, others. CHAOS="-seed 7 -run Chaos/^12_": number 12 of them alone.
chaos: bin/rdzv
	@scripts/install-missing test
	go test -count=1 -timeout 24h ./integration -rdzvbin "$(CURDIR)/bin/rdzv" -run '^TestChaos$$' -at-once 2 \
		-chaos-n 500 $(patsubst -n,-chaos-n,$(CHAOS)) -v | grep -v '^ *=== RUN\|^ *--- PASS'

kill-matrix: bin/rdzv
	@scripts/install-missing test
	go test -count=1 -timeout 15m ./integration -rdzvbin "$(CURDIR)/bin/rdzv" -run 'KillMatrix|KilledWhileWaiting|NodeCutOff' -at-once 1 -v | \
		grep -v '^ *=== \|^ *--- PASS'

clean:
	rm -rf bin snapshot.pt snapshot.pt.new
