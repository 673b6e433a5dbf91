# make            the static binary bin/rdzv
# make install    copies it, with its manual page and completions, to PREFIX (/usr/local)
# make uninstall  removes them
# make demo       PyTorch trains on 4 ranks under Open MPI; run it again and it continues
# make check      before each commit: lint, and the tests that fail most: 200 s of CPU time
# make test       unit tests with -race, then tests with real launchers
# make matrix     the tests with real launchers, and each case under each launcher
# make chaos      500 faults in PyTorch ranks, and 500 in jobs that restart: tables of how many had
#                 the right report or effect
# make faults     faults of etcd clusters that are the store of 64 agents: a table of how the jobs end
# make kubernetes examples/kubernetes and other jobs on a Kubernetes cluster that it builds and starts
# make simulate   100,000 random schedules of the leader's decisions, what they cover, and faults that
#                 they must find; and of the election among agents without a launcher
# make mutants    a table of the seeded faults in dev/mutants, and whether the tests find them
# make kill-matrix  SIGKILL to each kind of process: a table of times and exit codes
# make hangs      PyTorch jobs that hang in many ways: what is said of each, and after what time
# make hosts      jobs that rdzv exec --hosts starts by ssh, also on 64 hosts, and 48 behind a jump host
# make kills      SIGKILL to processes of trees at random moments: what is left. KILLS=10000: how many
# make attack     attacks on jobs: a table of what they delay and how the jobs end
# make bench      comparison with torchrun, mpirun, mpiexec.hydra and srun: bin/performance.md
# make scale      thousands of simulated agents on one store: bin/scale.md; then 256 real ones
# make soak       does the use of resources grow in 10 minutes, or over 50 jobs of one launcher?
# make test-fresh  make demo and make test in minimal chroots of Debian 12 and 13, as root, and as a
#                 user with sudo who has an older Go; make unit with Docker's capabilities
# make release    archives, wheels, .deb and .rpm packages, image and checksums in dist/
# make test-release  make release twice, then installs and uses what it has made
# make gpu        on a machine with GPUs: the devices of workers, checks, an all_reduce with NCCL
# make docs       the generated parts of docs/reference: from the help, constants and types
# make figures    puts the tables of the last three into dev/, and draws the plots of docs/pictures
# make recording  docs/pictures/terminal.svg: a terminal, recorded from jobs that fail and hang
# make unit | integration | lint | govulncheck | fuzz | cover | clean
# demo, test, lint and most others install with apt-get what is missing, also Go.

# The version, its commit and the time of the commit; VERSION=1.0.0 replaces the first.
BUILD := $(shell scripts/version)
VERSION := $(word 1,$(BUILD))
COMMIT := $(word 2,$(BUILD))
FUZZTIME ?= 500x
export PYTHON REPS ARGS
# scripts/need-go puts Go into .cache/go if it is missing or too old. sudo removes /usr/local/go/bin.
export PATH := $(CURDIR)/.cache/go/bin:$(PATH):/usr/local/go/bin
# All but the race detector can use the packages that were compiled for bin/rdzv.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath $(GOFLAGS)
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c

build: bin/rdzv
.PHONY: build bin/rdzv install uninstall demo check test unit integration matrix lint govulncheck fuzz cover \
	kills attack bench scale soak docs figures recording chaos faults kubernetes kill-matrix hangs hosts \
	simulate mutants \
	test-fresh gpu release test-release clean

# go build knows what has changed. The version is set here, because a copy without git has one too.
bin/rdzv:
	@scripts/need-go
	go build -buildvcs=false \
		-ldflags "-s -w -X main.linkedVersion=$(VERSION) -X main.linkedCommit=$(COMMIT)" \
		-o $@ ./cmd/rdzv
	@touch $@ # go build leaves it as it is if nothing has changed

# go test and the shell create no directories for what they write.
bin:
	@mkdir -p $@

# make install PREFIX=$HOME/.local DESTDIR=: after make, so that "sudo make install" needs no Go. It
# builds again if sources are newer, as after git pull, or if GOARCH is given; under sudo as the user.
PREFIX ?= /usr/local
RDZV := bin/rdzv
SOURCES := Makefile go.mod go.sum cmd envmap internal rdzv wrap
install:
	@[ "$(RDZV)" != bin/rdzv ] || \
		{ [ -x bin/rdzv ] && [ -z "$$GOOS$$GOARCH$$(find $(SOURCES) -newer bin/rdzv -print -quit)" ]; } || \
		$${SUDO_USER:+sudo -u "$$SUDO_USER"} $(MAKE) --no-print-directory bin/rdzv \
			GOOS="$$GOOS" GOARCH="$$GOARCH"
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" scripts/install "$(RDZV)"

uninstall:
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" scripts/install --remove

demo:
	@scripts/need-go
	@scripts/install-missing demo
	@$(MAKE) --no-print-directory bin/rdzv
	@scripts/demo

# The packages in which mistakes are found most often, for their CPU time, without the tests that need
# most of it, and one job that fails under mpirun.
CHECKED := ./wrap ./rdzv/agent ./cmd/rdzv ./internal/repo ./envmap ./rdzv/internal/job
UNCHECKED := TestEmbed|TestContinuedTree|TestManyWorkersEndTogether|HungFileSystem|Completion|$\
	TestScripts/(install|completion|gpu|skipped|storefull|$\
		exec-(consequence|noderank|platforms|progress|settling|stall|torchrun))
check: lint
	@scripts/install-missing test
	@$(MAKE) --no-print-directory bin/rdzv
	$(GOTESTSUM) --format pkgname --packages '$(CHECKED)' -- \
		-vet=off -p 3 -parallel 4 -skip '$(UNCHECKED)'
	$(INTEGRATION) -vet=off -all -run '^TestFails$$/^exit7$$/^openmpi$$'

test:
	@scripts/need-go
	@scripts/install-missing test
	@$(SUDO) integration/testbed/hosts check
	@$(MAKE) --no-print-directory unit integration

# These tests take minutes: they run first, while others are compiled. Those of three packages run
# at the same time, because many tests wait.
LONG_TESTS := ./wrap ./rdzv ./wrap/tasks

# It needs only Go. make test installs the C compiler that the race detector needs, and python3. The
# tests of the command line run without -race, beside the others, because a job of rdzv takes three
# times the CPU time with it. make unit CMD_RACE=-race runs them with it. In
# tools/kubernetes Go does not know that the tests read examples/, hence -count=1.
CMD_RACE ?=
unit: | bin
	@scripts/need-go
	@race=-race cgo=1; $$(go env CC) -E -x c -include stdlib.h /dev/null >/dev/null 2>&1 || { \
		race= cgo=0; \
		echo "$$(go env CC) does not work, or finds no C library: running the tests without -race"; }; \
	CGO_ENABLED=$(if $(CMD_RACE),1,0) $(GOTESTSUM) --format pkgname --jsonfile bin/unit-cmd.json \
		--packages ./cmd/rdzv -- $(CMD_RACE) & cmd=$$!; \
	CGO_ENABLED=$$cgo $(GOTESTSUM) --format pkgname --jsonfile bin/unit.json \
		--packages "$(LONG_TESTS) $$(go list ./... | \
			grep -vxF "$$(go list $(LONG_TESTS) ./cmd/rdzv)" | grep -v '/integration\(/\|$$\)')" -- \
		$$race -p 3 -parallel 4; \
	code=$$?; \
	wait $$cmd && exit $$code
	@go -C tools tool gotestsum --format pkgname -- ./release
	go -C tools/kubernetes test -count=1 .
	@if command -v python3 >/dev/null; then python3 -m unittest discover -s bench -p '*_test.py'; \
	else echo "python3 not found: not testing bench/"; fi

# gotestsum prints a line for each package or test when it has ended, at the end the failed and the
# skipped tests with their output, and returns the exit code of go test. RERUN=3, in CI: it runs
# failed tests of a suite once more, unless they are more than 3. scripts/rerun.py checks that.
GOTESTSUM := go tool -modfile=tools/go.mod gotestsum $(if $(RERUN),--rerun-fails=1 \
	--rerun-fails-max-failures=$(RERUN) --rerun-fails-run-root-test --rerun-fails-abort-on-data-race)
RDZV_BIN := -rdzvbin "$(CURDIR)/bin/rdzv"
INTEGRATION := go test -count=1 ./integration $(RDZV_BIN)

SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

# The tests mostly wait: three run at the same time. make chaos runs TestChaos and
# TestChaosOfRestarts, make scale TestScale, make attack TestAttackClocks, make faults
# TestEtcdCampaign.
integration: bin/rdzv
	$(GOTESTSUM) --format testname --jsonfile bin/integration.json --packages ./integration -- \
		-count=1 -parallel 3 -timeout $(LIMIT) \
		-skip '^(TestChaos.*|TestScale|TestAttackClocks|TestEtcdCampaign)$$' -args $(RDZV_BIN) $(ALL)

# By default a test with several cases runs each under one launcher, so that each launcher has some.
LIMIT ?= 40m
matrix:
	@scripts/install-missing test
	@$(MAKE) --no-print-directory integration ALL=-all LIMIT=3h

# MUTANTS='^01|job': only these. FIND=1: which tests of the mutated package, and of those that import
# it, find each.
mutants:
	@scripts/need-go
	@mkdir -p bin
	@go build -C tools -o "$(CURDIR)/bin/mutants" ./mutants
	@bin/mutants -root "$(CURDIR)" -run '$(MUTANTS)' $(if $(FIND),-find)

SHELL_FILES := .ci/run $(filter-out %.py,$(wildcard scripts/*)) integration/testbed/hosts integration/testbed/slurm \
	integration/testbed/sshd cmd/rdzv/internal/starter/login/bootstrap.sh bench/*.sh \
	$(addprefix tools/kubernetes/,build cluster images) examples/*/*.sh \
	examples/slurm/train.sbatch cmd/rdzv/internal/completion/program.bash

# SCHEDULES=N runs as many; go test -args -seed N prints one.
SCHEDULES ?= 100000
simulate: | bin
	@scripts/need-go
	go test ./rdzv/internal/job -run '^TestSimulation$$' -count=1 -v -timeout 0 \
		-coverprofile=bin/simulate.cover -args -schedules $(SCHEDULES)
	go tool cover -func=bin/simulate.cover
	go test ./rdzv/internal/job -run '^TestSimulationFindsFaults$$' -count=1 -v -timeout 0 -args -faults
	go test ./rdzv/meet -run '^TestElectionSchedules$$' -count=1 -v -timeout 0 -args -schedules $(SCHEDULES)

lint:
	@scripts/need-go
	@scripts/install-missing lint
	@files=$$(gofmt -l .) || exit; [ -z "$$files" ] || { echo "not formatted (gofmt -w):" $$files; exit 1; }
	@! awk 'length > 100 { print FILENAME ":" FNR ": longer than 100 columns" }' \
		$$(find . -path ./.cache -prune -o -name '*.go' ! -name '*_test.go' -print) | grep .
	go vet ./...
	go tool -modfile=tools/go.mod staticcheck ./...
	go -C tools vet ./...
	go -C tools tool staticcheck ./...
	go -C tools/kubernetes vet ./...
	go -C tools/kubernetes tool -modfile=../go.mod staticcheck ./...
	shellcheck $(SHELL_FILES)

KILLS ?= 1000
kills: bin/rdzv
	@scripts/install-missing test
	$(INTEGRATION) -timeout 24h -run '^TestKillCampaign$$' -at-once 3 -v \
		-killed-jobs $$(($(KILLS) / 10)) | grep --line-buffered -v '^ *=== RUN\|^ *--- PASS'
	go test -count=1 -timeout 0 -v -run 'TestKills$$' ./wrap ./wrap/tasks -kills $$(($(KILLS) / 2)) | \
		grep --line-buffered -v '^ *=== RUN\|^ *--- PASS'

# FUZZTIME=1000000x: more inputs.
fuzz: | bin
	@scripts/need-go
	@scripts/fuzz $(FUZZTIME)

# Not part of lint, because it needs vuln.go.dev.
govulncheck:
	@scripts/need-go
	go tool -modfile=tools/go.mod govulncheck ./...

cover: | bin
	@scripts/need-go
	go test -coverprofile=bin/cover.out $$(go list ./... | grep -v '/integration\(/\|$$\)')
	go tool cover -func bin/cover.out | tail -n 1

# BENCH="latency fail": only these parts. REPS=9: runs of each case. ARGS: more options of
# bench/bench.py, such as "--n 4 --minutes 30 --resume". See bench/suite.py.
bench: bin/rdzv
	@scripts/install-missing bench
	bench/suite.py $(BENCH)

# 64 to 10 000 simulated agents on one store, then 256 real ones. Fewer: SCALE=64,256 MOST=1024
# MANY=32.
SCALE ?= 64,256,1024,4096
MOST ?= 10000
MANY ?= 256
scale: bin/rdzv
	@scripts/install-missing test
	{ $(INTEGRATION) -timeout 24h -run '^TestScale$$' \
		-scale $(SCALE) -scale-runs 3 -scale-idle 10s -v && \
	$(INTEGRATION) -timeout 24h -run '^TestScale$$/^plain' -scale $(MOST) -v && \
	$(INTEGRATION) -run ManyAgents -many $(MANY) -v; } | tee bin/scale.log
	@sed -n -e 's/^ *| agents/\n| agents/p;t' -e 's/^ *|/|/p' bin/scale.log >bin/scale.md

# DURATION=30s, AGENTS=8, JOBS=10: shorter.
DURATION ?= 10m
AGENTS ?= 64
JOBS ?= 50
soak: bin/rdzv
	@scripts/install-missing test
	$(INTEGRATION) -timeout 24h -run 'ResourcesDoNotGrow|ManyJobsInOneLauncher' \
		-soak $(DURATION) -soak-agents $(AGENTS) -soak-jobs $(JOBS) -v | tee bin/soak.log
	@sed -n -e 's/^ *soak_test.go:[0-9]*: |/|/p' \
		-e 's/^ *soak_test.go:[0-9]*: \([0-9]* jobs:\)/\n\1/p' bin/soak.log >bin/soak.md

# make unit fails if they are not up to date.
docs:
	@scripts/need-go
	go test ./envmap ./rdzv/agent ./cmd/rdzv -run '^TestGenerated' -count=1 -update

# Puts the tables of the last bench, soak and scale into the pages that contain them, and draws the
# plots of their runs. Look at them before you commit them.
figures:
	scripts/figures dev/bench.md dev/scale.md
	bench/plots.py

recording: bin/rdzv
	@scripts/install-missing recording
	$(SUDO) bench/terminal.py docs/pictures/terminal.svg

# CHAOS="-n 50 -seed 7": 50 other faults. CHAOS="-seed 7 -run Chaos$$/^12_": only number 12 of them;
# with -run Restarts/^12_ only job 12 of those that restart.
chaos: bin/rdzv
	@scripts/install-missing test
	$(INTEGRATION) -timeout 24h -run '^TestChaos' -at-once 2 \
		-chaos-n 500 $(patsubst -n,-chaos-n,$(CHAOS)) -v | grep --line-buffered -v '^ *=== RUN\|^ *--- PASS'

# FAULTS="-etcd-agents 16 -etcd-for 1m -etcd-runs 3": fewer agents, shorter, more runs of each.
faults: bin/rdzv
	@scripts/install-missing faults
	$(INTEGRATION) -timeout 24h -run '^TestEtcdCampaign$$' -etcd-agents 64 -etcd-for 10m $(FAULTS) -v | \
		grep --line-buffered -v '^ *=== \|^ *--- PASS'

# CASES=deleted: only the cases whose names contain this. What kubectl tells about each case is in
# bin/kubernetes. The cluster is stopped in any case.
kubernetes: bin/rdzv
	@scripts/install-missing kubernetes
	@tools/kubernetes/build
	@tools/kubernetes/images $(RDZV)
	@mkdir -p bin/kubernetes
	@cd tools/kubernetes && go test -c -o ../../bin/kubernetes/cases ./cases
	@$(SUDO) env "PATH=$$PATH" tools/kubernetes/cluster run 2 .cache/kubernetes/images/*.tar -- \
		sh -c 'cd tools/kubernetes/cases && exec "$$0" "$$@"' \
		"$(CURDIR)/bin/kubernetes/cases" -logs "$(CURDIR)/bin/kubernetes" \
		-test.timeout 1h -test.run '/$(CASES)'

hangs: bin/rdzv
	@scripts/install-missing test
	$(INTEGRATION) -timeout 60m -run '^(TestHangs|TestHangInNCCL)$$' -hangs -at-once 2 -v | \
		grep --line-buffered -v '^ *=== '

hosts: bin/rdzv
	@scripts/install-missing test
	$(INTEGRATION) -timeout 60m -run '^TestHosts|^TestSSHBed' -all -v | grep --line-buffered -v '^ *=== '

kill-matrix: bin/rdzv
	@scripts/install-missing test
	$(INTEGRATION) -timeout 30m -all -run 'KillMatrix|KilledWhileWaiting|NodeCutOff' -at-once 1 -v | \
		grep --line-buffered -v '^ *=== \|^ *--- PASS'

# ATTACK=Replay: only the tests whose names contain this. The table is printed if a test fails too.
attack: bin/rdzv
	@scripts/install-missing test
	$(INTEGRATION) -timeout 2h -run '^TestAttack.*$(ATTACK)' -attack -all -v | tee bin/attack.log; \
	failed=$$?; \
	{ printf '| attack | hosts | form | delay | outcome |\n|---|---|---|---|---|\n'; \
		sed -n 's/^ *[a-z]*_test\.go:[0-9]*: |/|/p' bin/attack.log; } | tee bin/attack.md; \
	exit $$failed

# FRESH_DIR=/scratch: where the chroots are unpacked (5 GB), a directory in which only root can write.
# COMMAND="make demo": less than all.
test-fresh:
	@scripts/install-missing fresh
	scripts/test-fresh bookworm $(COMMAND)
	scripts/test-fresh -g -u bookworm $(COMMAND)
	scripts/test-fresh trixie $(COMMAND)
	scripts/test-fresh -g -u trixie $(COMMAND)
	scripts/test-fresh -c trixie make unit

clean:
	rm -rf bin dist snapshot.pt snapshot.pt.new

# VERSION=1.0.0 COMMIT=... SOURCE_DATE_EPOCH=...: in a copy of the sources without git. Always the Go
# release of go.mod's toolchain line, because another one makes other programs.
SOURCE_DATE_EPOCH ?= $(or $(word 3,$(BUILD)),0)
release:
	@scripts/need-go
	@GOTOOLCHAIN=$$(awk '$$1 == "toolchain" { print $$2 }' go.mod) go run -C tools ./release \
		-source "$(CURDIR)" -dist "$(CURDIR)/dist" -version "$(VERSION)" -commit "$(COMMIT)" \
		-epoch "$(SOURCE_DATE_EPOCH)"

# As root, or with sudo. It takes minutes, because programs for two architectures are built twice.
test-release: release
	@scripts/install-missing test-release
	scripts/same-release
	cd tools && go test -count=1 -v ./installed -dist "$(CURDIR)/dist" -root "$(CURDIR)" $(ARGS)
	cd tools && go test -count=1 ./modulepath -root "$(CURDIR)"

# On a machine with GPUs. docs/compatibility.md says where it has run.
gpu: bin/rdzv
	@scripts/gpu bin/rdzv
