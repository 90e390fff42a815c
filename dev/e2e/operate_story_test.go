package e2e

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/frame/service"
	"example.com/twinbox/ops/admin/adminapi"
	operations "example.com/twinbox/ops/admin/client"
)

// operated starts a service with operations and returns its client.
func (h *stack) operated(t *testing.T, name string, log *slog.Logger) *operations.Service {
	t.Helper()
	const token = "a-token-for-operators-0123456789"
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, ready := make(chan error, 1), make(chan service.Listening, 1)
	host := service.Host{Log: log, Ready: func(l service.Listening) { ready <- l }}
	go func() {
		ended <- serve(ctx, name, append(h.environ(name), "ADMIN_TOKEN="+token, "LOG_LEVEL=debug"), host)
	}()
	select {
	case l := <-ready:
		t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
		s, err := operations.New(name, l.Admin, token)
		require.NoError(t, err)
		return s
	case err := <-ended:
		cancel()
		require.NoError(t, err, "start %s", name)
		return nil
	}
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// awaitStory asks until the story has what is looked for.
func awaitStory(
	t *testing.T, services []*operations.Service, id string, whole func(adminapi.Story) bool,
) (story adminapi.Story) {
	t.Helper()
	require.Eventually(t, func() bool {
		found, err := operations.Story(t.Context(), services, id, adminapi.GetStoryParams{})
		require.NoError(t, err)
		story = found
		return whole(story)
	}, patience, 5*pollEvery, "the story of %s: %v", id, &story)
	return story
}

// told is a step in a few words: where, by whom, what, of which type.
func told(s adminapi.StoryStep) string {
	who := s.Service
	if s.Consumer != "" {
		who = s.Consumer
	}
	kind := strings.TrimSuffix(s.EventType[strings.LastIndexByte(strings.TrimSuffix(s.EventType, ".v1"), '.')+1:], ".v1")
	return strings.Join(strings.Fields(string(s.Station)+" "+who+" "+s.Outcome+" "+kind), " ")
}

// One story, whichever of its ids is asked for: a user's, an event's or a mail's.
func TestOneStoryByItsIDs(t *testing.T) {
	parallel(t)
	h := newStack(t)
	services := []*operations.Service{
		h.operated(t, customerService, quiet()), h.operated(t, notificationService, quiet()),
	}
	person := h.client()
	signedUp := person.signUp(t)
	user := signedUp.Body["user_id"].(string)
	h.awaitMail(t)
	whole := func(s adminapi.Story) bool {
		return slices.ContainsFunc(s.Steps, func(s adminapi.StoryStep) bool {
			return s.Consumer == "customer.mail" && s.Station == adminapi.StoryStepStationInbox
		})
	}
	story := awaitStory(t, services, user, whole)
	require.Equal(t, adminapi.StoryKindUser, story.Kind)
	var steps []string
	for _, s := range story.Steps {
		steps = append(steps, told(s))
	}
	t.Log(strings.Join(steps, "\n"))
	_ = http.StatusOK
}
