//go:build faults

package inbox_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/crashtest"
)

// How many deaths TestAProcessThatDiesAroundAnyStatement tries in each story. `make test-long` asks for more.
var statements = flag.Int("inbox.statements", 3, "deaths per story, around random statements; 0: around every one")

// The stories: one event per transaction, several, and both behind an owner that died, whose events are counted before
// they run.
var statementStories = map[string]struct {
	batch   int
	suspect bool
	most    int // statements in such a life, or a few more
}{
	"one by one":      {1, false, 45},
	"batches":         {5, false, 30},
	"suspects":        {1, true, 120},
	"suspect batches": {5, true, 105},
}

// The crash points have names, and between two of them there may be another statement. Here the process dies before or
// after its nth statement, and is started again.
func TestAProcessThatDiesAroundAnyStatement(t *testing.T) {
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
			at := &crashtest.Statement{Nth: 1 + n/2, After: n%2 == 1}
			t.Run(fmt.Sprintf("%s, %d, after %t", name, at.Nth, at.After), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				job := b.job(traffic(12))
				job.Batch = story.batch
				if story.suspect {
					b.Exec(t, `insert into inbox_owner (consumer, topic, partition, owner, in_flight)
						values ('test', 'topic-1', 0, 'a dead process', 8)`)
				}
				armed := job
				armed.Statement = at
				if err := crashtest.Start(t, armed).Wait(t); err != nil { // else its life was too short for it
					require.EqualError(t, err, crashtest.Killed)
				}
				require.NoError(t, crashtest.Start(t, job).Wait(t))
				b.requireOnceInOrder(t, 12)
				require.Equal(t, []string{"id_conflict"}, b.List(t, `select code from dead_letter`))
				require.Zero(t, b.Count(t, `select count(*) from inbox_attempt`))
				require.Zero(t, b.Count(t, `select count(*) from inbox_owner`), "the last one stopped cleanly")
			})
		}
	}
}
