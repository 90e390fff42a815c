package local

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheScreenShowsWarningsAlone(t *testing.T) {
	t.Parallel()
	for verbose, want := range map[bool]string{
		false: "level=WARN msg=late part=customer consumer=customer.profile event_id=1\n",
		true: "level=INFO msg=said part=customer consumer=customer.profile\n" +
			"level=WARN msg=late part=customer consumer=customer.profile event_id=1\n",
	} {
		out := &strings.Builder{}
		s := &screen{out: out, verbose: verbose}
		log := slog.New(s.handler("customer")).With("consumer", "customer.profile")
		log.Info("said")
		log.Warn("late", "event_id", 1)
		require.Equal(t, want, out.String())
		s.silence()
		log.Warn("late")
		require.Equal(t, want, out.String())
	}
}
