package testkit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// WaitLimit is how long a test waits before it fails: far longer than anything takes on a busy machine. It does not say
// how soon something has to happen.
const WaitLimit = 2 * time.Minute

// A condition is asked again after a tenth of the time that it has been waited for, within these.
const (
	soonest = time.Millisecond
	latest  = 100 * time.Millisecond
)

// Until returns when the condition holds, and fails the test when it does not within [WaitLimit]. The condition runs in
// the caller's goroutine, so it may use require, and it no longer runs after the test has failed. The condition of
// require.Eventually may, and then logs for a test that has ended.
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
