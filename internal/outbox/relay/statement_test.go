package relay

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"example.com/twinbox/test/crashtest"
)

// Deaths that TestRelayDiesAroundAnyStatement tries per story. `make test-long` sets more.
var statements = flag.Int("outbox.statements", 2, "deaths per story, around random statements; 0: around every one")

// Together the stories send every statement of a relay.
var statementStories = map[string]struct {
	crashPoint
	most int // statements in such a life, or a few more
}{
	"a backlog":                {crashPoint{}, 75},
	"two windows":              {crashPoint{late: 2}, 80},
	"a parked key":             {crashPoint{fail: []string{"k3"}}, 110},
	"a restored cluster":       {crashPoint{prepare: restored}, 90},
	"scheduled events":         {crashPoint{scheduled: 3}, 90},
	"old partitions":           {crashPoint{prepare: partitionsPublished, runOn: true}, 110},
	"a follower":               {crashPoint{follows: true}, 8},
	"a log":                    {crashPoint{log: true}, 60},
	"a log's end is not known": {crashPoint{log: true, prepare: endUnsure}, 75},
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
			p := story.crashPoint
			p.statement = &crashtest.Statement{Nth: 1 + n/2, After: n%2 == 1}
			t.Run(fmt.Sprintf("%s, %d, after %t", name, p.statement.Nth, p.statement.After), func(t *testing.T) {
				t.Parallel()
				crash(t, p)
			})
		}
	}
}
