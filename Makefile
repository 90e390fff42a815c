# Every target is one command that may be pasted; bare `make` lists them.
# With Go alone: run, test, lint, generate, bench (PostgreSQL is fetched where none is installed). With Docker: up, down.

GO      ?= go
# One workspace (go.work): the product in the root, and around it modules of their own. A tool has a module file of its
# own, which no workspace takes.
ALL      = ./... ./dev/...
MODULES  = . dev
ALL     += ./cmd/twinbox/...
MODULES += cmd/twinbox
ALL     += ./bench/...
MODULES += bench
ALL     += ./internal/inbox/kv/...
MODULES += internal/inbox/kv
ALL     += ./examples/...
MODULES += examples
# It is built outside the workspace and run in it: one run sees all modules, and each package once.
LINT     = CGO_ENABLED=0 $$(CGO_ENABLED=0 $(GO) tool -n -modfile=.ci/tools.mod golangci-lint)
LINT_API = CGO_ENABLED=0 $(GO) tool -modfile=.ci/tools.mod vacuum lint --no-banner --no-style --details
COMPOSE ?= docker compose
SERVICE ?= customer
NOTIFICATIONS ?= 1
SCAFFOLD = $(if $(DRY_RUN),-dry-run) $(if $(FORCE),-force)

# A job or a container may have no HOME, and Go keeps what it compiles there.
ifeq ($(HOME),)
export HOME := $(shell home=$$(eval "echo ~$$(id -un 2>/dev/null || id -u)"); [ ! -d "$$home" ] || echo "$$home")
endif

# The race detector needs a C compiler. Without one the tests run, without the detector, and say so.
RACE     = $(shell command -v "$$($(GO) env CC)" >/dev/null 2>&1 && echo -race)
TESTFLAGS ?=
GO_TEST  = $(if $(RACE),,echo "note: no C compiler found, testing without the race detector";) \
	CGO_ENABLED=$(if $(RACE),1,0) $(GO) test $(RACE) -tags faults $(TESTFLAGS)

GENERATED = find . \( -name '*.gen.*' -o -path ./docs/configuration.md -o -path ./engine/api.txt \) -not -path './.twinbox/*' -exec sha256sum {} + | \
	LC_ALL=C sort

.DEFAULT_GOAL := help
.PHONY: help build run up down reset test test-kafka test-pg18 test-parts kafka lint lint-api fmt vet generate verify migrate new new-service new-event new-consumer upgrade guide size clean
.PHONY: bench
.PHONY: demo test-console
.PHONY: test-edge
.PHONY: test-observability
.PHONY: test-long

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## every program of cmd/, in bin/
	@CGO_ENABLED=0 $(GO) build -o bin/ ./cmd/...
	@CGO_ENABLED=0 $(GO) build -o bin/ ./cmd/twinbox

run: ## the whole system in one process, without Docker; Ctrl-C stops it, .twinbox/ keeps its data
	@export GO="$(GO)"; exec sh dev/tools/start/start.sh run $(ARGS)

demo: ## a system of its own: people sign up, services are killed, Kafka and PostgreSQL go away; ends with a verdict
	@export GO="$(GO)"; exec sh dev/tools/start/start.sh demo $(ARGS)

up: ## the whole system in containers: Kafka, PostgreSQL, Mailpit and both services
	@export COMPOSE="$(COMPOSE)" NOTIFICATIONS="$(NOTIFICATIONS)"; exec sh deploy/containers.sh up

down: ## stop the containers; their data stays
	@export COMPOSE="$(COMPOSE)"; exec sh deploy/containers.sh down

reset: ## throw away all local data: .twinbox/ and the containers' volumes; refused while either runs
	@export COMPOSE="$(COMPOSE)"; sh deploy/containers.sh stopped && $(GO) run ./dev/tools/reset && \
		sh deploy/containers.sh reset

test: ## every test: real PostgreSQL, the Kafka protocol in process, nothing to set up
	@$(GO_TEST) -timeout 10m $(ALL)

# How long and how often, as in make test-long CHAOS=1m.
CHAOS      ?= 4m
OUTAGE     ?= 2m
OUTAGES    ?= 10
CHURN      ?= 1m
STATEMENTS ?= 40
CHECKS     ?= 500
RUNS       ?= 200
POISON     ?= 20s

test-long: ## campaigns of a quarter of an hour: chaos, random schedules, a death around every statement, churn, outages, poison
	@$(GO_TEST) -count=1 -timeout 30m ./internal/outbox/window -run 'Random|UsualWays|QuietServer' \
		-rapid.checks=$(CHECKS) -outbox.figures=10s
	@$(GO_TEST) -count=1 -timeout 30m ./internal/outbox/relay -run 'Chaos|LongOutage|AnyStatement' \
		-outbox.chaos=$(CHAOS) -outbox.outage=$(OUTAGE) -outbox.statements=$(STATEMENTS)
	@$(GO_TEST) -count=1 -timeout 10m ./internal/verify -run 'Moves' -verify.runs=$(RUNS)
	@$(GO_TEST) -count=1 -timeout 10m ./internal/inbox -run 'AnyStatement|FoundByHalving' \
		-inbox.statements=$(STATEMENTS) -inbox.matrix
	@$(GO_TEST) -count=1 -timeout 10m ./internal/service/eventing -run 'Churn|Zombie' -eventing.churn=$(CHURN)
	@$(GO_TEST) -count=1 -timeout 10m ./test/e2e -run 'IsAway' -v -e2e.outage=$(OUTAGE)
	@$(GO_TEST) -count=1 -timeout 10m -parallel 1 ./test/e2e -run 'IsAway' -v -e2e.outages=$(OUTAGES)
	@$(GO_TEST) -count=1 -timeout 10m ./test/e2e -run 'PoisonUnderLoad' -v -e2e.poison=$(POISON)
	@$(GO_TEST) -count=1 -timeout 10m ./dev/cmd/devstack -run 'Demo' -v -devstack.demo=20s

test-kafka: ## the Kafka, verify, relay and end-to-end tests against a real Apache Kafka, started without Docker
	@export TWINBOX_TEST_KAFKA=real; $(GO_TEST) -count=1 -p 1 -timeout 10m ./internal/kafka/... ./test/e2e/...
	@export TWINBOX_TEST_KAFKA=real; $(GO_TEST) -count=1 -timeout 5m ./internal/verify
	@export TWINBOX_TEST_KAFKA=real; $(GO_TEST) -count=1 -timeout 5m -run ToAnyBroker ./internal/outbox/relay

test-edge: ## every test of consumers and of both services on Watermill's Kafka edge, in process and on a real Apache Kafka
	@export TWINBOX_TEST_EDGE=watermill; $(GO_TEST) -count=1 -timeout 15m ./internal/service/eventing ./test/e2e
	@export TWINBOX_TEST_KAFKA=real TWINBOX_TEST_EDGE=watermill; $(GO_TEST) -count=1 -p 1 -timeout 10m ./test/e2e

test-observability: ## dashboards against the real /metrics, and each alert in its fault, with Prometheus' own engine
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	CGO_ENABLED=0 $(GO) test -count=1 -timeout 10m ./test/e2e -run 'Fault|Recorded' -e2e.recordings="$$dir" && \
	cd deploy/observability && export CGO_ENABLED=0 && $(GO) mod tidy -diff && $(GO) vet . && \
	$(GO) test -count=1 -timeout 5m . -recordings="$$dir"

test-console: ## the console in a real Chromium: sign up, stop Kafka, mend poison; the README's picture: ARGS=-screenshot=$PWD/docs/console.png
	@$(GO) vet -tags console ./internal/ops/console/chromium && $(GO) test -count=1 -timeout 10m -tags console ./internal/ops/console/chromium $(ARGS)

test-pg18: ## every test on a fetched PostgreSQL 18, beside any installed one; PG_BIN=DIR make test takes another one
	@export TWINBOX_TEST_FETCH=1; $(GO_TEST) -count=1 -timeout 10m $(ALL)

kafka: ## a real Apache Kafka in the foreground, to try things by hand
	@export GO="$(GO)"; exec sh dev/tools/start/start.sh kafka $(ARGS)

lint: ## golangci-lint with the rules of .golangci.yml
	@$(LINT) run $(ALL)

lint-api: ## vacuum on the APIs' documents, with the rules of api/vacuum.yaml
	@for document in $(wildcard api/openapi.yaml api/admin.yaml examples/*/openapi.yaml); do \
		$(LINT_API) --ruleset api/vacuum.yaml --fail-severity warn --remote=false $$document || exit 1; done

fmt: ## format the Go files
	@for module in $(MODULES); do (cd $$module && $(LINT) fmt ./...) || exit 1; done

vet: ## go vet, with and without the crash points
	$(GO) vet $(ALL)
	$(GO) vet -tags faults $(ALL)

generate: ## write the generated files anew
	$(GO) generate $(ALL)

verify: ## fail when generated files, a go.mod or a go.sum are not what they should be
	@before=$$($(GENERATED)); $(GO) generate $(ALL); after=$$($(GENERATED)); \
	if [ "$$before" != "$$after" ]; then echo "a generated file was stale; commit what make generate wrote"; exit 1; fi
	@for module in $(MODULES); do (cd $$module && $(GO) mod tidy -diff) || exit 1; done
	$(GO) mod verify

migrate: ## bring a database up to date: make migrate SERVICE=notification, settings from the environment
	$(GO) run ./cmd/$(SERVICE) migrate

new: ## make the tree yours, names and all: make new MODULE=github.com/you/name [DIR=../name] [WITHOUT="ops bench batch"]
	@$(GO) run ./dev/tools/clone new -module "$(MODULE)" -name "$(NAME)" -dir "$(DIR)" -without "$(WITHOUT)"

upgrade: ## merge a newer tree into yours: make upgrade FROM=../upstream (or an address, a tag, a commit) [DRY_RUN=1]
	@$(GO) run ./dev/tools/clone upgrade -from "$(FROM)" $(if $(DRY_RUN),-dry-run)

test-parts: ## leave each part out in turn, and all at once, run what is left, and upgrade a clone; PARTS="ops bench" takes these alone
	@$(GO) run ./dev/tools/clone test -without "$(PARTS)"
	@$(GO) test -count=1 -timeout 10m ./dev/tools/clone -run AnUpgrade -clone.upgrade

new-service: ## a service of your own: make new-service NAME=loyalty PORT=8083 [DRY_RUN=1] [FORCE=1]
	@$(GO) run ./dev/tools/scaffold service $(SCAFFOLD) -name "$(NAME)" -port "$(PORT)"

new-event: ## an event of a service: make new-event NAME=PointsGranted TOPIC=loyalty.points.v1 SERVICE=loyalty
	@$(GO) run ./dev/tools/scaffold event $(SCAFFOLD) -name "$(NAME)" -topic "$(TOPIC)" -service "$(SERVICE)"

new-consumer: ## the handler of an event in a service: make new-consumer SERVICE=loyalty EVENT=UserRegistered
	@$(GO) run ./dev/tools/scaffold consumer $(SCAFFOLD) -service "$(SERVICE)" -event "$(EVENT)"

guide: ## follow docs/building.md in a copy of the tree: make its service, and run the tests and the service there
	@$(GO) run ./dev/tools/scaffold guide

size: ## lines, methods and requirements of the tree, and what one signup runs, beside their goals
	@$(GO) run ./dev/tools/size

bench: ## measure: make bench WHAT=relay
	$(GO) run ./bench $(or $(WHAT),relay) $(ARGS)

clean: ## remove what was built
	rm -rf bin coverage*
	$(GO) clean -testcache
