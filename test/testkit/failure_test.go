package testkit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/test/testkit"
)

func TestWhatATestFailsWithIsKept(t *testing.T) {
	t.Parallel()
	for want, do := range map[string]func(testing.TB){
		"":       func(testing.TB) {},
		"a 1":    func(t testing.TB) { t.Fatalf("a %d", 1) },
		"b":      func(t testing.TB) { t.Fatal("b") },
		"a\nb":   func(t testing.TB) { t.Errorf("a"); t.Error("b"); t.FailNow() },
		"failed": func(t testing.TB) { t.Fail() },
	} {
		through := false
		require.Equal(t, want, testkit.FailureText(t, func(t testing.TB) { do(t); through = true }))
		require.Equal(t, want == "" || want == "failed", through, "a failure ends the assertion")
	}
	require.False(t, t.Failed())
	require.Contains(t, testkit.FailureText(t, func(t testing.TB) { require.Equal(t, 1, 2) }), "Not equal")
}
