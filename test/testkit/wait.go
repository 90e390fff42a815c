package testkit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// WaitLimit is how long a test waits before it fails: far longer than anything takes.
const WaitLimit = 2 * time.Minute

// Until looks again after a tenth of the time waited, within these bounds.
const (
	soonest = time.Millisecond
	latest  = 100 * time.Millisecond
)

// Until returns when the condition holds, and fails the test after [WaitLimit]. The condition runs in the caller's
// goroutine, so it may use require. It never runs after the test has ended, unlike that of require.Eventually.
func Until(t testing.TB, condition func() bool, msgAndArgs ...any) {
	t.Helper()
	for began := time.Now(); !condition(); {
		waited := time.Since(began)
		if waited >= WaitLimit {
			require.FailNow(t, "what was waited for has not happened", msgAndArgs...)
		}
		<-time.After(min(max(waited/10, soonest), latest))
	}
}
