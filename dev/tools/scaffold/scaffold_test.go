package main

import (
	"bytes"
	"errors"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/tools/parts"
)

const root = "../../.."

func thisTree(t *testing.T) parts.Tree {
	t.Helper()
	tree, err := parts.Read(root)
	require.NoError(t, err)
	return tree
}

// What the tests make is not the page's, which may have been followed in this tree.
var (
	probe    = order{kind: "service", name: "probe", port: "8999"}
	seen     = order{kind: "event", name: "ProbeSeen", topic: "probe.seen.v1", service: "probe"}
	welcomed = order{kind: "consumer", service: "probe", event: "UserRegistered"}
)

// after is the tree with what the orders make.
func after(t *testing.T, tree parts.Tree, orders ...order) parts.Tree {
	t.Helper()
	for _, o := range orders {
		made, err := o.plan(tree)
		require.NoError(t, err, o.kind)
		tree = made.tree
	}
	return tree
}

// The page's commands fit the tree as it is, make what the page shows, and a second time nothing. That it is compiled
// and works is make guide's to say.
func TestThePageCanBeFollowed(t *testing.T) {
	t.Parallel()
	before := thisTree(t)
	made, err := follow(before)
	if errors.Is(err, errFollowed) { // in place: the owner has the result
		return
	}
	require.NoError(t, err)
	require.Greater(t, len(made), len(before)+15)
	requireInForm(t, before, made)
}

// The longest names that there can be are not too long for a line.
func TestLongNames(t *testing.T) {
	t.Parallel()
	before := thisTree(t)
	service := strings.Repeat("s", 20)
	event := "W" + strings.Repeat("w", 15) + "H" + strings.Repeat("h", 13)
	requireInForm(t, before, after(t, before, order{kind: "service", name: service, port: probe.port},
		order{kind: "event", name: event, topic: service + ".points-of-a-kind.v1", service: service},
		order{kind: "consumer", service: service, event: event},
		order{kind: "consumer", service: "customer", event: event}))
}

// requireInForm requires the form of gofmt, and no long lines, of what is new.
func requireInForm(t *testing.T, before, made parts.Tree) {
	t.Helper()
	for name, file := range made {
		if _, old := before[name]; strings.HasSuffix(name, ".go") && !old {
			formatted, err := format.Source(file.Content)
			require.NoError(t, err, name)
			require.Equal(t, string(formatted), string(file.Content), name)
			for line := range strings.Lines(string(file.Content)) {
				if !strings.Contains(line, `env:"`) {
					require.LessOrEqual(t, len(line), 121, name)
				}
			}
		}
	}
}

// A plan changes nothing of the tree that it was made for.
func TestAPlanLeavesTheTree(t *testing.T) {
	t.Parallel()
	tree := thisTree(t)
	before := maps.Clone(tree)
	after(t, tree, probe, seen, welcomed)
	require.Equal(t, before, tree)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	tree := thisTree(t)
	made := after(t, tree, probe, seen, welcomed)
	service := func(name, port string) order { return order{kind: "service", name: name, port: port} }
	event := func(name, topic, service string) order {
		return order{kind: "event", name: name, topic: topic, service: service}
	}
	for _, c := range []struct {
		order order
		in    parts.Tree
		says  string
	}{
		{service("Loyalty", "8083"), tree, "is no name for a service"},
		{service("my-shop", "8083"), tree, "is no name for a service"},
		{service("l", "8083"), tree, "is no name for a service"},
		{service("func", "8083"), tree, "a word of Go"},
		{service("string", "8083"), tree, "a word of Go"},
		{service("order", "8083"), tree, "a word of SQL"},
		{service("user", "8083"), tree, "a word of SQL"},
		{service("kafka", "8083"), tree, "a package that services import"},
		{service("customer", "8083"), tree, "stands there already"},
		{service("postgres", "8083"), tree, "a container of docker-compose.yml"},
		{service("outbox", "8083"), tree, "a package that services import"},
		{service("audits", "80"), tree, "is no port"},
		{service("audits", "08083"), tree, "is no port"},
		{service("audits", "65536"), tree, "is no port"},
		{service("audits", "8080"), tree, "the port 8080 is taken, by a line of"},
		{service("audits", "9092"), tree, "the port 9092 is taken, by a line of"},
		{service("audits", "8999"), made, "the port 8999 is taken, by a line of"},
		{service("probe", "8998"), made, "stands there already"},
		{event("Granted", "probe.seen.v1", "probe"), made, "two words or more"},
		{event("ProbeURL", "probe.seen.v1", "probe"), made, "capitals begin words"},
		{event("ProbeGone", "probe.seen.v1", "shop"), made, `no service "shop"`},
		{event("ProbeGone", "points", "probe"), made, "is no topic for events of probe: it would be named"},
		{event("ProbeGone", "customer.points.v1", "probe"), made, "is no topic for events of probe: it would be named"},
		{event("ProbeGone", "customer.users.v1", "probe"), made, "is Customer's"},
		{event("ProbeGone", "probe.users.v1", "probe"), made, "the constant TopicUsers is taken"},
		{event("UserRegistered", "probe.seen.v1", "probe"), made, "the name UserRegistered is taken"},
		{event("ProbeSeen", "customer.users.v1", "customer"), made, "stands there already"},
		{order{kind: "consumer", service: "shop", event: "UserRegistered"}, made, `no service "shop"`},
		{order{kind: "consumer", service: "probe", event: "UserGone"}, made, "there is no event UserGone"},
		{order{kind: "consumer", service: "notification", event: "UserRenamed"}, made, "handles UserRenamed already, in"},
	} {
		before := maps.Clone(c.in)
		_, err := c.order.plan(c.in)
		require.ErrorContains(t, err, c.says, "%+v", c.order)
		require.Equal(t, before, c.in, "nothing is half made")
	}
}

// Names come in the forms that people type.
func TestEventOf(t *testing.T) {
	t.Parallel()
	for _, given := range []string{"PointsGranted", "points-granted", "points_granted", "Points granted"} {
		name, err := eventOf(given)
		require.NoError(t, err, given)
		require.Equal(t, "PointsGranted", name)
	}
	require.Equal(t, "points-granted", kebab("PointsGranted"))
	require.Equal(t, "points_granted", snake("PointsGranted"))
}

// markers are those that some command needs, in the tree as it is.
func markers(t *testing.T, tree parts.Tree) (list []marker) {
	t.Helper()
	p, err := readProject(tree)
	require.NoError(t, err)
	list = []marker{
		markService, markTopic, markSource, markEvent, markListed, markCase, markMeant, markChannel, markOperation,
		markMessage, markContainer, markJobs, markImage, markDatabase, markLint,
		markScrape, // part: observability
	}
	for _, service := range p.services() {
		list = append(list, markTables(service), markConsumers(service), markWritten(service))
	}
	for constant, topic := range p.topics() {
		list = append(list, markChannelMessage(topic))
		for _, service := range p.services() {
			if reads, _ := p.holding(p.filesOf(service), "Topic: contract."+constant+","); reads != "" {
				at, _ := p.holding(p.filesOf(service), markHandlers(reads, constant).comment())
				require.NotEmpty(t, at, "%s reads %s and has no marker for its handlers", service, constant)
			}
		}
	}
	return list
}

// Each marker stands, once, and CONTRIBUTING.md says where.
func TestEveryMarkerStands(t *testing.T) {
	t.Parallel()
	tree := thisTree(t)
	contributing := string(tree["CONTRIBUTING.md"].Content)
	for _, m := range markers(t, tree) {
		require.Equal(t, 1, strings.Count(string(tree[m.file].Content), m.comment()), "%s of %s", m.comment(), m.file)
		if !strings.Contains(m.what, " of ") {
			require.Regexp(t, "(?m)^.*`"+m.what+"`.*$", contributing)
		}
	}
}

// everywhere is an order for each place at which something may be made.
func everywhere(t *testing.T, tree parts.Tree) []order {
	t.Helper()
	p, err := readProject(tree)
	require.NoError(t, err)
	orders := []order{probe, seen}
	for _, service := range append(p.services(), probe.name) {
		orders = append(orders,
			order{kind: "consumer", service: service, event: seen.name},
			order{kind: "event", name: upperFirst(service) + "Met", topic: service + "." + service + "met.v1", service: service})
	}
	for constant, topic := range p.topics() {
		owner := p.first(definitions, `\b`+constant+`, Source(\w+),`)
		orders = append(orders, order{
			kind: "event", name: strings.TrimPrefix(constant, "Topic") + "Gone", topic: topic, service: lowerFirst(owner),
		})
	}
	return orders
}

// A marker that is gone is said, with the line to add and where; nothing is written.
func TestAMissingMarkerIsSaid(t *testing.T) {
	t.Parallel()
	tree := thisTree(t)
	orders := everywhere(t, tree)
	for _, m := range markers(t, tree) {
		broken := maps.Clone(tree)
		text := strings.Replace(string(tree[m.file].Content), m.comment(), "", 1)
		broken[m.file] = parts.File{Content: []byte(text), Mode: tree[m.file].Mode}
		var refused error
		for _, o := range orders {
			made, err := o.plan(broken)
			if err != nil {
				refused = err
				break
			}
			broken = made.tree
		}
		require.ErrorContains(t, refused, m.file+" has no marker: add a line \""+m.comment()+"\" "+m.where, m.comment())
	}
}

// In a tree that git knows: a change is shown or made; what git has not been told of is not mixed with it; a second
// time changes nothing, whatever git knows.
func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, after(t, thisTree(t), probe).Write(dir))
	git(t, dir, "init", "-q")
	git(t, dir, "add", "-A")
	scaffold := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := command(t.Context(), &out, dir, args)
		return out.String(), err
	}
	args := []string{"event", "-name", "ProbeSeen", "-topic", "probe.seen.v1", "-service", "probe"}
	shown, err := scaffold(append(args, "-dry-run")...)
	require.NoError(t, err)
	require.Contains(t, shown, "+type ProbeSeen struct {")
	require.Contains(t, shown, "+	TopicSeen ")
	require.Empty(t, git(t, dir, "diff", "--stat"), "it was only shown")

	note := filepath.Join(dir, "note.txt")
	require.NoError(t, os.WriteFile(note, []byte("mine\n"), 0o600))
	_, err = scaffold(args...)
	require.ErrorContains(t, err, "note.txt first: commit them or `git add` them")
	require.NotContains(t, git(t, dir, "status", "--porcelain"), "probe_seen")
	git(t, dir, "add", "-A")
	said, err := scaffold(args...)
	require.NoError(t, err)
	require.Contains(t, said, "created internal/domain/probe_seen.go\n")
	require.Contains(t, said, "changed api/asyncapi.yaml\n")
	changed := git(t, dir, "diff", "--stat")
	require.Contains(t, changed, "internal/contract/definitions.go")

	said, err = scaffold(args...)
	require.NoError(t, err)
	require.Equal(t, "nothing to do: all of it is there\n", said)
	require.Equal(t, changed, git(t, dir, "diff", "--stat"))
	_, err = scaffold("consumer", "-service", "probe", "-event", "UserRegistered", "-force")
	require.NoError(t, err, "FORCE takes the tree as it is")
	for _, wrong := range [][]string{
		{}, {"topic"}, {"service", "-name", "x"}, {"event", "-port", "1"}, append(args, "more"),
	} {
		_, err = scaffold(wrong...)
		require.ErrorIs(t, err, errUsage)
	}
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}
