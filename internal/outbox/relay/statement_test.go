package relay

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"example.com/twinbox/test/crashtest"
)

// Deaths that TestRelayDiesAroundAnyStatement tries per story. `make test-long` sets more.
var statements = flag.Int("outbox.statements", 3, "deaths per story, around random statements; 0: around every one")

// Together the stories send every statement of a relay.
var statementStories = map[string]struct {
	prepare string
	fail    []string
	late    int

	scheduled int

	most int // statements in such a life, or a few more
}{
	"a backlog":          {most: 75},
	"two windows":        {late: 2, most: 80},
	"a parked key":       {fail: []string{"k3"}, most: 110},
	"a restored cluster": {prepare: restored, most: 90},
	"scheduled events":   {scheduled: 3, most: 90},
	"old partitions":     {prepare: partitionsPublished, most: 110},
}

func TestRelayDiesAroundAnyStatement(t *testing.T) {
	t.Parallel()
	seed := uint64(rand.Uint32())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for name, story := range statementStories {
		deaths := rng.Perm(2 * story.most)
		if *statements > 0 {
			deaths = deaths[:min(*statements, len(deaths))]
		}
		for _, n := range deaths {
			p := crashPoint{
				prepare: story.prepare, fail: story.fail, late: story.late,
				scheduled: story.scheduled,
				runOn:     story.prepare == partitionsPublished, statement: &crashtest.Statement{Nth: 1 + n/2, After: n%2 == 1},
			}
			t.Run(fmt.Sprintf("%s, %d, after %t", name, p.statement.Nth, p.statement.After), func(t *testing.T) {
				t.Parallel()
				crash(t, p)
			})
		}
	}
}
