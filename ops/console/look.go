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
	"sync"
	"time"

	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// answer is what one service said.
type answer[T any] struct {
	Service string
	Value   T
	Err     error
}

// ask asks all services at once. One that cannot say it is an answer with an error.
func ask[T any](services []*client.Service, of func(*client.Service) (T, error)) []answer[T] {
	answers := make([]answer[T], len(services))
	var all sync.WaitGroup
	for i, s := range services {
		all.Go(func() {
			value, err := of(s)
			answers[i] = answer[T]{s.Name, value, err}
		})
	}
	all.Wait()
	return answers
}

// call asks all services for the same.
func call[T any](c *Console, r *http.Request, asked client.Request) []answer[T] {
	return ask(c.cfg.Services, func(s *client.Service) (T, error) { return client.Call[T](r.Context(), s, asked) })
}

// service is the one of the name; nil: there is none.
func (c *Console) service(name string) *client.Service {
	i := slices.IndexFunc(c.cfg.Services, func(s *client.Service) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return c.cfg.Services[i]
}

func (c *Console) showGroups(w http.ResponseWriter, r *http.Request) {
	waiting := adminapi.DeadLetterFilter{State: "waiting"}
	c.page(w, r, http.StatusOK, "groups", "Dead letters",
		call[adminapi.DeadLetterGroups](c, r, client.Post("/admin/v1/dead-letters/groups", waiting)))
}

// showDeadLetters lists the dead letters that the address's conditions pick, in the order in which a replay takes them.
func (c *Console) showDeadLetters(w http.ResponseWriter, r *http.Request) {
	s, query := c.service(r.PathValue("service")), r.URL.Query()
	filter, err := filterOf(query)
	if s == nil || err != nil {
		c.fail(w, r, http.StatusNotFound, errors.New("there is no such list"))
		return
	}
	picked := filter
	filter.State = "waiting"
	after, _ := strconv.ParseInt(query.Get("after"), 10, 64)
	found, err := client.Call[adminapi.DeadLetters](r.Context(), s, client.Post("/admin/v1/dead-letters/query",
		adminapi.DeadLetterQuery{Filter: filter, After: after}))
	if err != nil {
		c.fail(w, r, statusOf(err), err)
		return
	}
	next := ""
	if found.More && len(found.Items) > 0 {
		query.Set("after", strconv.FormatInt(found.Items[len(found.Items)-1].ID, 10))
		next = "?" + query.Encode()
	}
	query.Del("after")
	c.page(w, r, http.StatusOK, "dead-letters", "Dead letters of "+s.Name, map[string]any{
		"Service": s.Name, "Found": found, "Picked": picked, "Query": query, "Next": next, "Back": r.URL.RequestURI(),
	})
}

// showDeadLetter shows one, and what was done to it. What people wrote is shown when it is asked for.
func (c *Console) showDeadLetter(w http.ResponseWriter, r *http.Request) {
	s := c.service(r.PathValue("service"))
	if s == nil {
		c.fail(w, r, http.StatusNotFound, errors.New("there is no such service"))
		return
	}
	payload := r.URL.Query().Get("payload") != ""
	params := adminapi.GetDeadLetterParams{Payload: payload}
	found, err := client.Call[adminapi.DeadLetterDetail](r.Context(), s,
		client.Get("/admin/v1/dead-letters/"+url.PathEscape(r.PathValue("id")), params))
	if err != nil {
		c.fail(w, r, statusOf(err), err)
		return
	}
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
	c.page(w, r, http.StatusOK, "dead-letter", "Dead letter "+s.Name+"/"+r.PathValue("id"), data)
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
func (c *Console) showMails(w http.ResponseWriter, r *http.Request) {
	state := adminapi.MailState(r.URL.Query().Get("state"))
	params := adminapi.ListMailsParams{State: state, After: r.URL.Query().Get("after")}
	answers := slices.DeleteFunc(call[adminapi.Mails](c, r, client.Get("/admin/v1/mails", params)),
		func(a answer[adminapi.Mails]) bool {
			problem, is := errors.AsType[*client.ProblemError](a.Err)
			return is && problem.Problem.Code == "no_mails"
		})
	c.page(w, r, http.StatusOK, "mails", "Mails", map[string]any{
		"State": string(state), "Answers": answers, "Back": r.URL.RequestURI(),
		"States": []string{"uncertain", "failed", "pending", "claimed", "submitting", "sent", "superseded"},
	})
}

// deed is an action with the service that it was done in.
type deed struct {
	Service string
	adminapi.Action
}

// showAudit lists what was done by hand, the newest first.
func (c *Console) showAudit(w http.ResponseWriter, r *http.Request) {
	answers := call[adminapi.Actions](c, r, client.Get("/admin/v1/audit", adminapi.ListAuditParams{Newest: true}))
	var deeds []deed
	for _, a := range answers {
		for _, action := range a.Value.Items {
			deeds = append(deeds, deed{a.Service, action})
		}
	}
	slices.SortStableFunc(deeds, func(a, b deed) int { return b.At.Compare(a.At) })
	c.page(w, r, http.StatusOK, "audit", "Audit", map[string]any{"Answers": answers, "Deeds": deeds})
}

// step is a step of a story, with how long it came after the first.
type step struct {
	adminapi.StoryStep
	After time.Duration
}

// showStory tells what all services know of an event, a user or a mail, and of what they name.
func (c *Console) showStory(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	told, err := client.Story(r.Context(), c.cfg.Services, id, adminapi.GetStoryParams{})
	taken := make([]step, len(told.Steps))
	for i, s := range told.Steps {
		taken[i] = step{s, s.At.Sub(told.Steps[0].At)}
	}
	c.page(w, r, http.StatusOK, "story", "Story of "+id, map[string]any{
		"ID": id, "Kind": string(told.Kind), "Steps": taken, "Related": told.Related, "Note": told.Note, "Err": err,
	})
}

// find leads from the search box to a story.
func (c *Console) find(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "/events/"+url.PathEscape(r.URL.Query().Get("id")), http.StatusSeeOther)
}

// statusOf is the status of a page that could not be made of a service's answer.
func statusOf(err error) int {
	if problem, is := errors.AsType[*client.ProblemError](err); is && problem.Problem.Status == http.StatusNotFound {
		return http.StatusNotFound
	}
	return http.StatusBadGateway
}

func (c *Console) fail(w http.ResponseWriter, r *http.Request, status int, err error) {
	c.page(w, r, status, "failed", "Not found", err)
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
