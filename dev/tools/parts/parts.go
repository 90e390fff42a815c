// Package parts knows what a clone may leave out, and takes it out of a tree.
//
// A part is a list of files and folders, and the lines that end with its mark: a comment "part: NAME". Between a line
// "part: NAME, begin" and one "part: NAME, end" every line is a part's, and so are the two. What follows from their
// absence goes by itself: files that import what is gone, imports that are used no more, files that are embedded, links
// on pages, and in ENGINE.md the promises that no test holds any more.
package parts

import (
	"fmt"
	"slices"
	"strings"
)

// Part is something that a clone may leave out.
type Part struct {
	Name  string
	What  string   // it is, in a few words
	Paths []string // that it consists of; a folder ends with a slash
	Takes []string // the parts that go with it: what they are about is gone
}

// All are the parts, in the order in which they are listed.
var All = []Part{
	{
		Name: "ops",
		What: "the operations on the admin listener, the operator's command, the console; " +
			"without them operators work on dead letters in SQL, and no command says why a service waits",
		Paths: []string{
			"internal/ops/", "cmd/twinbox/", "internal/verify/", "internal/kafka/admin/groups.go",
			"internal/outbox/operate/change.go", "internal/outbox/operate/entries.go", "internal/outbox/operate/republish.go",
			"internal/inbox/retention/stats.go",
			"internal/inbox/deadletter/operate/", "internal/inbox/replay/ordered.go",
			"internal/inbox/replay/ordered_test.go", "internal/inbox/lookup.go", "internal/inbox/pause/", "internal/audit/find.go",
			"internal/audit/change.go", "internal/lease/decide.go",
			"internal/outbox/restore/confirm.go", "internal/service/cause.go", "internal/service/eventing/cause.go",
			"internal/service/eventing/export_pause_test.go", "internal/notification/watch.go",
			"api/admin.yaml", "api/admin.gen.json", "api/admin-oapi.yaml",
			"api/operations.http", "api/operations_test.go", "internal/ops/console/chromium/", "docs/console.png",
			"dev/demo/", "dev/cmd/devstack/demo.go", "dev/cmd/devstack/demo_test.go",
			"docs/adr/0092-the-demo-breaks-its-own-system.md", "docs/adr/0110-what-waits-is-told-in-lines.md",
			"internal/service/eventing/operate.go",
			"docs/operations.md",
			"docs/adr/0075-operations-run-in-the-service.md", "docs/adr/0076-changes-need-yes-and-a-reason.md",
			"docs/adr/0077-the-operations-page-is-run.md", "docs/adr/0078-requests-are-checked-against-the-document.md",
			"docs/adr/0079-a-request-names-its-addressee.md", "docs/adr/0087-the-console-is-a-client.md",
			"docs/adr/0093-api-pages-from-the-running-service.md", "docs/adr/0098-a-pause-is-a-row.md",
			"docs/adr/0109-operations-answer-with-the-engines-types.md",
			"docs/adr/0108-a-command-is-its-flags-and-its-columns.md",
		},
	},
	{
		Name:  "bench",
		What:  "the measurements, and the page with their results",
		Paths: []string{"bench/", "docs/benchmarks.md", "docs/adr/0055-bench-path-calls-the-use-case.md"},
	},
	{
		Name:  "examples",
		What:  "three more services: orders and payments, a ledger, a webhook forwarder",
		Paths: []string{"examples/", "dev/cmd/devstack/examples.go", "dev/cmd/devstack/examples_none.go"},
	},
	{
		Name: "kv",
		What: "the inbox of handlers without a database, in NATS",
		Paths: []string{
			"internal/inbox/kv/", "dev/natstest/", "dev/local/natsserver/", "docs/kv-inbox.md",
			"examples/forwarder/", "examples/cmd/forwarder/",
			"docs/adr/0099-a-store-that-may-forget.md", "docs/adr/0100-claim-before-the-effect.md",
		},
	},
	{
		Name: "campaigns",
		What: "the campaigns of a quarter of an hour, and the end-to-end tests of outages and poison under load",
		Paths: []string{
			"test/e2e/outage_test.go", "test/e2e/poison_load_test.go", "internal/outbox/window/figures_test.go",
		},
	},
	{
		Name: "batch",
		What: "the project's own Kafka producer and consumer; without them it is watermill-kafka's, and `bench` goes too",
		Paths: []string{
			"internal/kafka/producer/", "internal/kafka/consumer/", "internal/kafka/internal/reader/tape.go",
			"internal/inbox/position.go", "internal/inbox/position_test.go",
			"internal/service/eventing/edge_batch.go", "internal/service/eventing/instance.go", "internal/service/eventing/instance_test.go",
			"internal/service/eventing/edges_test.go",
			"docs/adr/0040-own-kafka-client-edges.md", "docs/adr/0041-the-coordinator-has-its-own-connections.md",
			"docs/adr/0042-offsets-carry-the-topics-id.md", "docs/adr/0043-partitions-take-turns.md",
			"docs/adr/0045-positions-beside-the-effects.md", "docs/adr/0057-each-process-has-an-instance-id.md",
			"docs/adr/0080-two-kafka-edges.md", "docs/adr/0082-a-clone-without-batches.md",
		},
		Takes: []string{"bench"},
	},
	{
		Name: "observability",
		What: "spans sent to a collector, dashboards and alerts, and the containers that show them",
		Paths: []string{
			"internal/service/tracing/", "internal/event/cloudevent/spans.go", "deploy/observability/",
			"test/deploy/observability_test.go", "test/e2e/spans_test.go", "docs/adr/0088-alerts-are-fired-by-their-faults.md",
		},
	},
}

// joint are what two parts have in common: such a one goes with the last of them, and is not left out by its name.
var joint = []struct {
	Part
	of []string
}{
	{Part{
		Name: "standing",
		What: "how the reading of each topic-partition gets on, and which topic an offset is of",
		Paths: []string{
			"internal/kafka/progress/", "internal/kafka/internal/reader/topic_id.go",
			"internal/kafka/internal/reader/topic_id_test.go",
		},
	}, []string{"ops", "batch"}},
}

// withJoint adds what all the parts that it is of have left: now, or when the tree was made.
func (t Tree) withJoint(gone []Part) []Part {
	all := slices.Clone(gone)
	for _, j := range joint {
		if !slices.ContainsFunc(All, func(p Part) bool {
			isGone := slices.ContainsFunc(gone, func(g Part) bool { return g.Name == p.Name })
			return slices.Contains(j.of, p.Name) && !isGone && t.exists(strings.TrimSuffix(p.Paths[0], "/"))
		}) {
			all = append(all, j.Part)
		}
	}
	return all
}

// Names are those of all parts.
func Names() []string {
	var names []string
	for _, p := range All {
		names = append(names, p.Name)
	}
	return names
}

// Parse finds the parts by their names, which blanks or commas separate, and those that they take with them.
func Parse(list string) ([]Part, error) {
	var found []Part
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == ',' })
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		at := slices.IndexFunc(All, func(p Part) bool { return p.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no part %q; what can be left out: %s", name, strings.Join(Names(), ", "))
		}
		if !slices.ContainsFunc(found, func(p Part) bool { return p.Name == name }) {
			found = append(found, All[at])
			names = append(names, All[at].Takes...)
		}
	}
	return found, nil
}

// holds says whether the path is one of the part's.
func (p Part) holds(path string) bool {
	return slices.ContainsFunc(p.Paths, func(own string) bool {
		return path == own || strings.HasSuffix(own, "/") && strings.HasPrefix(path, own)
	})
}
