package admin_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/ops/admin"
	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/verify"
)

// verifier gives a verdict that was written down.
type verifier struct {
	asked eventing.Verification
	err   error
	slow  bool // it says what it does
}

func (v *verifier) Run(_ context.Context, asked eventing.Verification) (*verify.Verdict, error) {
	v.asked = asked
	if v.slow {
		asked.Suspected(3)
	}
	if v.err != nil {
		return nil, v.err
	}
	return &verify.Verdict{
		At: time.Now().UTC(), Since: asked.Since, Produced: []verify.Produced{{Topic: "topic", Published: 2}},
		Findings: []verify.Finding{{Kind: verify.Lost, Rule: "V1", Subject: "topic", EventID: "e", Detail: "gone"}},
	}, nil
}

// The answer is lines: what looks wrong when it does, since that takes a pause, and the verdict.
func TestAVerdictIsStreamed(t *testing.T) {
	t.Parallel()
	fake := &verifier{slow: true}
	b := setup(t, func(c *admin.Config, _ *http.Server) { c.Verifier = fake })
	status, answer := b.call(t, "POST", "/admin/v1/verify", `{"since":"2026-11-21T10:00:00Z"}`)
	require.Equal(t, http.StatusOK, status, string(answer))
	lines := strings.Split(strings.TrimSpace(string(answer)), "\n")
	require.Len(t, lines, 2)
	require.JSONEq(t, `{"suspects":3}`, lines[0])
	var line adminapi.Line
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &line))
	require.Equal(t, verify.Lost, line.Verdict.Findings[0].Kind)
	require.Equal(t, "2026-11-21T10:00:00Z", fake.asked.Since.Format(time.RFC3339))
}

func TestAVerdictThatCannotBeGiven(t *testing.T) {
	t.Parallel()
	for err, code := range map[error]string{
		eventing.ErrVerifying: "verifying", verify.ErrStandby: "standby",
		verify.ErrPartitions: "partition_count",
	} {
		b := setup(t, func(c *admin.Config, _ *http.Server) { c.Verifier = &verifier{err: err} })
		status, answer := b.call(t, "POST", "/admin/v1/verify", `{}`)
		requireProblem(t, status, answer, http.StatusConflict, code)
	}
	b := setup(t, func(c *admin.Config, _ *http.Server) {
		c.Verifier = &verifier{err: verify.ErrPartitions, slow: true}
	})
	_, answer := b.call(t, "POST", "/admin/v1/verify", `{}`)
	require.Contains(t, string(answer), `"code":"partition_count"`, "after the first line a problem is one, too")
}
