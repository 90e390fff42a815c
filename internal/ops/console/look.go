package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

// call asks all services for the same.
func call[T any](c *Console, r *http.Request, asked client.Request) []client.Answer[T] {
	return client.Ask(c.cfg.Services, func(s *client.Service) (T, error) { return client.Call[T](r.Context(), s, asked) })
}

// service is the one that the address names.
func (c *Console) service(r *http.Request) (*client.Service, error) {
	return c.serviceOf(r.PathValue("service"))
}

func (c *Console) serviceOf(name string) (*client.Service, error) {
	i := slices.IndexFunc(c.cfg.Services, func(s *client.Service) bool { return s.Name == name })
	if i < 0 {
		return nil, missing("there is no such service")
	}
	return c.cfg.Services[i], nil
}

func (c *Console) showGroups(r *http.Request) (content, error) {
	groups := call[adminapi.DeadLetterGroups](c, r,
		client.Post("/admin/v1/dead-letters/groups", adminapi.DeadLetterFilter{State: "waiting"}))
	return content{"groups", "Dead letters", groups}, nil
}

// showDeadLetters lists the dead letters that the address's conditions pick, in the order in which a replay takes them.
func (c *Console) showDeadLetters(r *http.Request) (content, error) {
	query := r.URL.Query()
	filter, err := filterOf(query)
	s, none := c.service(r)
	if err != nil || none != nil {
		return content{}, missing("there is no such list")
	}
	filter.State = "waiting"
	after, _ := strconv.ParseInt(query.Get("after"), 10, 64)
	found, err := client.Call[adminapi.DeadLetters](r.Context(), s, client.Post("/admin/v1/dead-letters/query",
		adminapi.DeadLetterQuery{Filter: filter, After: after}))
	next := ""
	if found.More && len(found.Items) > 0 {
		query.Set("after", strconv.FormatInt(found.Items[len(found.Items)-1].ID, 10))
		next = "?" + query.Encode()
	}
	query.Del("after")
	return content{"dead-letters", "Dead letters of " + s.Name, map[string]any{
		"Service": s.Name, "Found": found, "Query": query, "Next": next, "Back": r.URL.RequestURI(),
	}}, err
}

// showDeadLetter shows one, and what was done to it. What people wrote is shown when it is asked for.
func (c *Console) showDeadLetter(r *http.Request) (content, error) {
	s, err := c.service(r)
	if err != nil {
		return content{}, err
	}
	payload := r.URL.Query().Get("payload") != ""
	found, err := client.Call[adminapi.DeadLetterDetail](r.Context(), s, client.Get(
		"/admin/v1/dead-letters/"+url.PathEscape(r.PathValue("id")), adminapi.GetDeadLetterParams{Payload: payload}))
	data := map[string]any{
		"Service": s.Name, "Letter": found.Letter, "History": found.History, "Shown": payload, "Back": r.URL.RequestURI(),
	}
	if payload {
		original, edited := pretty(found.Letter.Payload), pretty(found.Letter.EditedPayload)
		data["Current"] = original
		if found.Letter.EditedPayload != nil {
			data["Current"], data["Diff"] = edited, diff(original, edited)
		}
	}
	return content{"dead-letter", "Dead letter " + s.Name + "/" + r.PathValue("id"), data}, err
}

// pretty is a payload as text, JSON with a member a line.
func pretty(payload []byte) string {
	var indented bytes.Buffer
	if json.Indent(&indented, payload, "", "  ") == nil {
		return indented.String()
	}
	return string(bytes.ToValidUTF8(payload, []byte("�")))
}

// showMails lists the mails in a state.
func (c *Console) showMails(r *http.Request) (content, error) {
	state := adminapi.MailState(r.URL.Query().Get("state"))
	params := adminapi.ListMailsParams{State: state, After: r.URL.Query().Get("after")}
	answers := slices.DeleteFunc(call[adminapi.Mails](c, r, client.Get("/admin/v1/mails", params)),
		func(a client.Answer[adminapi.Mails]) bool {
			problem, is := errors.AsType[*client.ProblemError](a.Err)
			return is && problem.Problem.Code == "no_mails"
		})
	return content{"mails", "Mails", map[string]any{
		"State": string(state), "Answers": answers, "Back": r.URL.RequestURI(),
		"States": []string{"uncertain", "failed", "skipped", "pending", "claimed", "submitting", "sent"},
	}}, nil
}

// showLost lists the events that the databases lost and their topics hold: of each service a hundred.
func (c *Console) showLost(r *http.Request) (content, error) {
	answers := call[adminapi.LostEvents](c, r, client.Get("/admin/v1/outbox/lost", adminapi.ListLostParams{}))
	return content{"lost", "Lost events", answers}, nil
}

// deed is an action with the service that it was done in.
type deed struct {
	Service string
	adminapi.Action
}

// showAudit lists what was done by hand, the newest first.
func (c *Console) showAudit(r *http.Request) (content, error) {
	answers := call[adminapi.Actions](c, r, client.Get("/admin/v1/audit", adminapi.ListAuditParams{Newest: true}))
	var deeds []deed
	for _, a := range answers {
		for _, action := range a.Value.Items {
			deeds = append(deeds, deed{a.Service, action})
		}
	}
	slices.SortStableFunc(deeds, func(a, b deed) int { return b.At.Compare(a.At) })
	return content{"audit", "Audit", map[string]any{"Answers": answers, "Deeds": deeds}}, nil
}

// step is a step of a story, with how long it came after the first.
type step struct {
	adminapi.StoryStep
	After time.Duration
}

// showStory tells what all services know of an event, a user or a mail, and of what they name.
func (c *Console) showStory(r *http.Request) (content, error) {
	id := r.PathValue("id")
	told, err := client.Story(r.Context(), c.cfg.Services, id, adminapi.GetStoryParams{})
	taken := make([]step, len(told.Steps))
	for i, s := range told.Steps {
		taken[i] = step{s, s.At.Sub(told.Steps[0].At)}
	}
	return content{"story", "Story of " + id, map[string]any{
		"ID": id, "Kind": string(told.Kind), "Steps": taken, "Related": told.Related, "Note": told.Note, "Err": err,
	}}, nil
}

// find leads from the search box to a story.
func find(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/events/"+url.PathEscape(r.URL.Query().Get("id")), http.StatusSeeOther)
}

// diffLine is a line of two texts: "-" is in the first alone, "+" in the second, " " in both.
type diffLine struct{ Sign, Text string }

// diff compares two texts line by line: what they begin and end with is the same, and what is between is not.
func diff(before, after string) (lines []diffLine) {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	begin, end, most := 0, 0, min(len(a), len(b))
	for begin < most && a[begin] == b[begin] {
		begin++
	}
	for end < most-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for _, part := range []struct {
		sign  string
		lines []string
	}{{" ", a[:begin]}, {"-", a[begin : len(a)-end]}, {"+", b[begin : len(b)-end]}, {" ", a[len(a)-end:]}} {
		for _, text := range part.lines {
			lines = append(lines, diffLine{part.sign, text})
		}
	}
	return lines
}
