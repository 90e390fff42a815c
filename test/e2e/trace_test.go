package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/test/testkit"
)

func TestTheTraceReachesTheEndOfTheStory(t *testing.T) {
	parallel(t)
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	h := newStack(t)
	h.start(t, customerService)
	h.start(t, notificationService)
	h.client().insist(t, http.StatusCreated, http.MethodPost, "/v1/signups", signUpBody, map[string]string{
		"Idempotency-Key": `"k1"`, "X-Correlation-Id": "order-7", "tracestate": "vendor=1",
		"traceparent": "00-" + traceID + "-00f067aa0ba902b7-01",
	})
	registered := h.headersOf(t, contract.TopicUsers)
	require.Equal(t, "order-7", registered["ce_correlationid"])
	require.NotContains(t, registered, "ce_causationid", "a request led to it, no event")
	require.Equal(t, traceID, strings.Split(registered["traceparent"], "-")[1])
	require.Equal(t, "vendor=1", registered["tracestate"])

	sent := h.headersOf(t, contract.TopicMails)
	require.Equal(t, "order-7", sent["ce_correlationid"])
	require.Equal(t, registered["ce_id"], sent["ce_causationid"])
	require.Equal(t, traceID, strings.Split(sent["traceparent"], "-")[1])
	require.Equal(t, "vendor=1", sent["tracestate"])

	testkit.Until(t, func() bool {
		return count(t, h.customerDB,
			`select count(distinct event_id) from inbox where metadata->>'correlation_id' = 'order-7'`) == 2
	}, "the consumers remember it")
}

func TestARequestIsItsOwnCorrelation(t *testing.T) {
	inProcess(t)
	h := newStack(t)
	h.start(t, customerService)
	h.start(t, notificationService)
	h.client().insist(t, http.StatusCreated, http.MethodPost, "/v1/signups", signUpBody,
		map[string]string{"X-Correlation-Id": "no id\tat all"})
	registered := h.headersOf(t, contract.TopicUsers)
	require.Len(t, registered["ce_correlationid"], 36)
	sent := h.headersOf(t, contract.TopicMails)
	require.Equal(t, registered["ce_correlationid"], sent["ce_correlationid"])
	require.NotEmpty(t, sent["traceparent"])
}
