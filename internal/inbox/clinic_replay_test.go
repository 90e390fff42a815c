package inbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/inbox/deadletter"
	"example.com/twinbox/internal/inbox/replay"
)

func (c *clinic) replay(t *testing.T, f operate.Filter, options ...func(*replay.Options)) replay.Report {
	t.Helper()
	o := replay.Options{By: "ana", Reason: "fixed"}
	for _, set := range options {
		set(&o)
	}
	report, err := c.taker.Replay(t.Context(), f, o)
	require.NoError(t, err)
	return report
}

func forced(o *replay.Options) { o.Force = true }

func dry(o *replay.Options) { o.DryRun = true }
