package e2e

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/contract"
	"example.com/twinbox/internal/ops/admin/adminapi"
	operations "example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/test/testkit"
)

func (h *stack) operated(t *testing.T, name string, log *slog.Logger) *operations.Service {
	t.Helper()
	const token = "a-token-for-operators-0123456789"
	at, _ := h.startWith(t, name, append(h.environ(name), "ADMIN_TOKEN="+token, "LOG_LEVEL=debug"), log)
	s, err := operations.New(name, at.Admin, token)
	require.NoError(t, err)
	return s
}

func awaitStory(
	t *testing.T, services []*operations.Service, id string, whole func(adminapi.Story) bool,
) (story adminapi.Story) {
	t.Helper()
	testkit.Until(t, func() bool {
		found, err := operations.Story(t.Context(), services, adminapi.StoryQuery{ID: id})
		require.NoError(t, err)
		story = found
		return whole(story)
	}, "the story of %s: %v", id, &story)
	return story
}

// The service that reports a record is left out: either may read it first.
func told(s adminapi.StoryStep) string {
	who := cmp.Or(s.Consumer, s.Service)
	if s.Station == adminapi.StoryStepStationRecord {
		who = ""
	}
	kind := strings.TrimSuffix(s.EventType[strings.LastIndexByte(strings.TrimSuffix(s.EventType, ".v1"), '.')+1:], ".v1")
	return strings.Join(strings.Fields(string(s.Station)+" "+who+" "+s.Outcome+" "+kind), " ")
}

func TestOneStoryByItsIDs(t *testing.T) {
	parallel(t)
	h := newStack(t)
	services := []*operations.Service{
		h.operated(t, customerService, quiet()), h.operated(t, notificationService, quiet()),
	}
	user := h.client().signUp(t).Body["user_id"].(string)
	want := []string{
		"request customer signed_up user-registered",
		"outbox customer published user-registered",
		"record read user-registered",
		"inbox customer.profile applied user-registered",
		"inbox notification.users applied user-registered",
		"mail notification pending",
		"outbox notification published verification-email-sent",
		"mail notification sent",
		"record read verification-email-sent",
		"inbox customer.mail applied verification-email-sent",
	}
	profile := "inbox customer.profile applied" // the row itself
	story := awaitStory(t, services, user, tells(append(want, profile)...))
	require.Equal(t, adminapi.StoryKindUser, story.Kind)
	told := toldOf(story)
	require.ElementsMatch(t, append(want, profile), told)
	for _, way := range [][]int{{0, 1, 2, 3}, {2, 4, 5, 6, 8, 9}} {
		for i, next := range way[1:] {
			first, second := want[way[i]], want[next]
			require.Less(t, slices.Index(told, first), slices.Index(told, second), "%s, then %s: %v", first, second, told)
		}
	}
	for _, s := range story.Steps {
		require.Equal(t, user, cmp.Or(s.Key, user), "of this user alone")
	}

	registered := eventOf(t, story, contract.UserRegistered.Type)
	sent := eventOf(t, story, contract.VerificationEmailSent.Type)
	mail := story.Steps[slices.IndexFunc(story.Steps, func(s adminapi.StoryStep) bool {
		return s.Station == adminapi.StoryStepStationMail
	})].Subject
	for _, other := range []struct {
		id   string
		kind adminapi.StoryKind
	}{{registered, adminapi.StoryKindEvent}, {sent, adminapi.StoryKindEvent}, {mail, adminapi.StoryKindMail}} {
		same := awaitStory(t, services, other.id,
			tells(append([]string{"request customer user-registered"}, want[1:]...)...))
		require.Equal(t, other.kind, same.Kind, other.id)
		require.Len(t, same.Steps, len(want))
	}
	text, err := json.Marshal(story)
	require.NoError(t, err)
	for _, secret := range []string{"Ada", "ada@", "example.org", "example.com"} {
		require.NotContains(t, string(text), secret, "it shows what a person wrote")
	}
	unknown, err := operations.Story(t.Context(), services,
		adminapi.StoryQuery{ID: "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"})
	require.NoError(t, err)
	require.Empty(t, unknown.Steps)
	require.Empty(t, unknown.Kind)
}

func toldOf(story adminapi.Story) (all []string) {
	for _, s := range story.Steps {
		all = append(all, told(s))
	}
	return all
}

func TestOneCorrelationIDLeadsThroughTheLogs(t *testing.T) {
	inProcess(t)
	h := newStack(t)
	log := &logLines{}
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	services := []*operations.Service{
		h.operated(t, customerService, logger.With("service", customerService)),
		h.operated(t, notificationService, logger.With("service", notificationService)),
	}
	signedUp := h.client().insist(t, http.StatusCreated, http.MethodPost, "/v1/signups", signUpBody,
		map[string]string{"X-Correlation-Id": "order-7"})
	user := signedUp.Body["user_id"].(string)
	story := awaitStory(t, services, user, tells("inbox customer.mail applied verification-email-sent"))
	registered := eventOf(t, story, contract.UserRegistered.Type)
	sent := eventOf(t, story, contract.VerificationEmailSent.Type)
	type logged struct{ service, msg, event, correlation string }
	want := []logged{
		{customerService, "request", "", "order-7"},
		{customerService, "event added", registered, "order-7"},
		{customerService, "event published", registered, "order-7"},
		{customerService, "event settled", registered, "order-7"},
		{notificationService, "event settled", registered, "order-7"},
		{notificationService, "event added", sent, "order-7"},
		{notificationService, "effect done", registered, "order-7"},
		{notificationService, "event published", sent, "order-7"},
		{customerService, "event settled", sent, "order-7"},
	}
	distinct := func() (seen []logged) { // a second consumer of an event writes the same line
		for _, l := range log.lines() {
			is := logged{l.Service, l.Msg, l.EventID, l.CorrelationID}
			if is.correlation == "order-7" && !slices.Contains(seen, is) {
				seen = append(seen, is)
			}
		}
		return seen
	}
	testkit.Until(t, func() bool { return len(distinct()) >= len(want) })
	require.ElementsMatch(t, want, distinct())
	for _, s := range story.Steps { // the story has it with each step of an event
		if s.EventID != "" {
			require.Equal(t, "order-7", s.CorrelationID, told(s))
		}
	}
	for _, line := range log.lines() {
		require.True(t, line.EventID == "" || line.CorrelationID != "", "%v names an event and no correlation", line)
	}
}

func eventOf(t *testing.T, story adminapi.Story, eventType string) string {
	t.Helper()
	i := slices.IndexFunc(story.Steps, func(s adminapi.StoryStep) bool { return s.EventType == eventType })
	require.GreaterOrEqual(t, i, 0, eventType)
	return story.Steps[i].EventID
}

func tells(steps ...string) func(adminapi.Story) bool {
	return func(s adminapi.Story) bool {
		told := toldOf(s)
		return !slices.ContainsFunc(steps, func(step string) bool { return !slices.Contains(told, step) })
	}
}
