# Every target is one command that may be pasted; bare `make` lists them.
# Go alone: run, demo, build, test*, bench, lint, generate. Go and git: new-service, and perl too: new. Docker: up, down;
# reset with or without it.

GO      ?= go
COMPOSE ?= docker compose
TOOLS    = -modfile=.ci/tools.mod

# The race detector needs a C compiler. Without one, or with RACE=, the tests run without the detector.
RACE      = $(shell command -v "$$($(GO) env CC)" >/dev/null 2>&1 && echo -race)
TESTFLAGS ?=
GO_TEST   = sh dev/test.sh env CGO_ENABLED=$(if $(RACE),1,0) $(GO) test $(RACE) -tags faults $(TESTFLAGS)

# How long and how often the campaigns of test-long run: make test-long CHAOS=1m.
CHAOS      ?= 4m
OUTAGE     ?= 2m
OUTAGES    ?= 10
CHURN      ?= 1m
STATEMENTS ?= 40
CHECKS     ?= 500
HISTORIES  ?= 200
RUNS       ?= 200
POISON     ?= 20s
STATES     ?= 1000000

# The campaign ends with the first round of faults behind one of them.
EVENTS  ?= 100000
MINUTES ?= 15

# A job or a container may have no HOME, and Go keeps what it compiles there.
ifeq ($(HOME),)
export HOME := $(shell home=$$(eval "echo ~$$(id -un 2>/dev/null || id -u)"); [ ! -d "$$home" ] || echo "$$home")
endif

.DEFAULT_GOAL := help
.PHONY: help run demo up down reset build test test-kafka test-long test-campaign test-models test-console test-observability test-kubernetes bench lint generate new new-service

help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## the whole system in one process, without Docker; Ctrl-C stops it, .twinbox/ keeps its data
	@export GO="$(GO)"; exec sh dev/start.sh run $(ARGS)

demo: ## a system of its own: people sign up, services are killed, Kafka and PostgreSQL go away; ends with a verdict
	@export GO="$(GO)"; exec sh dev/start.sh demo $(ARGS)

up: ## the whole system in containers; WITH="examples observability ui" adds these
	@COMPOSE="$(COMPOSE)" NOTIFICATIONS="$(NOTIFICATIONS)" WITH="$(WITH)" sh deploy/containers.sh up

down: ## stop the containers; their data stays
	@COMPOSE="$(COMPOSE)" sh deploy/containers.sh down

reset: ## delete all local data: .twinbox/ and the containers' volumes; refused while either runs
	@COMPOSE="$(COMPOSE)" GO="$(GO)" sh deploy/containers.sh reset

build: ## every program of cmd/, in bin/
	@CGO_ENABLED=0 $(GO) build -o bin/ ./cmd/...

test: ## every test: real PostgreSQL, the Kafka protocol in process, nothing to set up
	@$(GO_TEST) -timeout 10m ./...

test-kafka: ## the Kafka, verify, relay and end-to-end tests that a real Apache Kafka may change, started without Docker
	@export TWINBOX_TEST_KAFKA=real; $(GO_TEST) -count=1 -timeout 20m \
		$(patsubst %,./%/...,$(wildcard internal/kafka internal/verify test/e2e))
	@export TWINBOX_TEST_KAFKA=real; $(GO_TEST) -count=1 -timeout 5m -run ToAnyBroker ./internal/outbox/relay

test-long: ## campaigns: chaos, random schedules, a death around every statement, churn, outages, poison, models
	@$(GO_TEST) -count=1 -timeout 30m ./internal/outbox/relay -run 'Random|Landmarks|UsualWays|QuietServer' \
		-rapid.checks=$(CHECKS) -outbox.figures=10s -outbox.orders=$(HISTORIES) -outbox.heals=$(HISTORIES)
	@$(GO_TEST) -count=1 -timeout 30m ./internal/outbox/relay -run 'Chaos|LongOutage|AnyStatement' \
		-outbox.chaos=$(CHAOS) -outbox.outage=$(OUTAGE) -outbox.statements=$(STATEMENTS)
	@$(if $(wildcard internal/verify),$(GO_TEST) -count=1 -timeout 10m ./internal/verify -run 'Moves' -verify.runs=$(RUNS))
	@$(GO_TEST) -count=1 -timeout 30m ./internal/inbox -run 'AnyStatement|LosesIts|LostConnections|ABatch|TwoOwners' \
		-inbox.statements=$(STATEMENTS) -rapid.checks=$(CHECKS)
	@$(GO_TEST) -count=1 -timeout 10m ./internal/service/eventing -run 'Churn|Zombie' -eventing.churn=$(CHURN)
	@$(GO_TEST) -count=1 -timeout 10m ./test/e2e -run 'IsAway' -v -e2e.outage=$(OUTAGE)
	@$(GO_TEST) -count=1 -timeout 10m -parallel 1 ./test/e2e -run 'IsAway' -v -e2e.outages=$(OUTAGES)
	@$(GO_TEST) -count=1 -timeout 10m ./test/e2e -run 'PoisonUnderLoad' -v -e2e.poison=$(POISON)
	@$(if $(wildcard dev/operations),$(GO_TEST) -count=1 -timeout 10m ./dev/operations -run 'Demo' -v -operations.demo=20s)
	@CGO_ENABLED=0 $(GO) test -count=1 -timeout 10m ./docs/models -models.states=$(STATES)

test-campaign: ## everything goes wrong under load: three real brokers, two replicas of each service; EVENTS=1000000 MINUTES=60
	@export TWINBOX_TEST_KAFKA=real CGO_ENABLED=0; $(GO) test -tags faults -count=1 -timeout $$(($(MINUTES) + 30))m -v ./test/e2e \
		-run '^TestCampaign$$' -e2e.events=$(EVENTS) -e2e.minutes=$(MINUTES)

test-models: ## every run of docs/models, the model of servers that went back: half an hour, 6 GB
	@GOMEMLIMIT=6GiB $(GO) run ./docs/models $(ARGS)

test-console: ## the console in a real Chromium; ARGS=-screenshot=$PWD/docs/console.png makes the README's picture
	@$(GO) test -count=1 -timeout 10m -tags console ./internal/ops/console/chromium $(ARGS)

test-observability: ## dashboards against the real /metrics, and each alert in its fault, with Prometheus' own engine
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && export CGO_ENABLED=0 && \
	$(GO) test -count=1 -timeout 10m ./test/e2e -run 'Fault|Recorded' -e2e.recordings="$$dir" && \
	cd deploy && $(GO) mod tidy -diff && $(GO) vet ./... && \
	$(GO) test -count=1 -timeout 5m ./observability -recordings="$$dir"

test-kubernetes: ## the manifests against the API's types, and each pod's environment against its program
	@cd deploy && CGO_ENABLED=0 $(GO) test -count=1 -timeout 5m ./kubernetes

bench: ## measure against stock Watermill and by hand: make bench WHAT=relay|inbox|path
	@$(GO) run ./bench $(or $(WHAT),relay) $(ARGS)

lint: ## golangci-lint with the rules of .golangci.yml; FIX=1 formats and mends what it can
	@CGO_ENABLED=0 $(GO) build $(TOOLS) -v -o bin/ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@$(if $(FIX),CGO_ENABLED=0 bin/golangci-lint fmt ./... &&) CGO_ENABLED=0 bin/golangci-lint run $(if $(FIX),--fix) ./...
	@$(if $(wildcard deploy/go.mod),cd deploy && CGO_ENABLED=0 ../bin/golangci-lint run $(if $(FIX),--fix) ./...)

generate: ## write the generated files anew, and put go.mod in order
	@$(GO) generate -run oapi-codegen ./... && $(GO) generate -skip oapi-codegen ./... && $(GO) mod tidy

new: ## make the tree yours, names and all: make new MODULE=github.com/you/name [NAME=name]
	@sh dev/rename.sh "$(MODULE)" "$(NAME)"

new-service: ## a service of your own, a copy of examples/hello: make new-service NAME=loyalty PORT=8083
	@sh dev/new-service.sh "$(NAME)" "$(PORT)"
