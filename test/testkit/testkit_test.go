package testkit_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		testkit.Until(t, func() bool { asked++; return time.Since(began) >= time.Minute })
		require.LessOrEqual(t, time.Since(began), time.Minute+100*time.Millisecond)
		require.Less(t, asked, 1000, "it does not keep a processor busy")
	})
}

func TestUntilFailsWhatDoesNotHappen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		text := testkit.FailureText(t, func(t testing.TB) {
			testkit.Until(t, func() bool { asked++; return false }, "asked: %d", &asked)
		})
		require.GreaterOrEqual(t, time.Since(began), testkit.WaitLimit)
		require.Contains(t, text, "has not happened")
		require.Contains(t, text, fmt.Sprintf("asked: %d\n", asked))
		before := asked
		<-time.After(time.Minute) // by the clock of the bubble
		require.Equal(t, before, asked, "a condition is not asked after the end")
	})
}
