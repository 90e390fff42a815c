package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
)

type answers[T any] []client.Answer[T]

// Unknown reports whether an answer is missing: then an empty list proves nothing.
func (a answers[T]) Unknown() bool {
	return slices.ContainsFunc(a, func(one client.Answer[T]) bool { return one.Err != nil })
}

func call[T any](c *Console, r *http.Request, asked client.Request) answers[T] {
	return client.Ask(c.cfg.Services, func(s *client.Service) (T, error) { return client.Call[T](r.Context(), s, asked) })
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

// The order is that of a replay.
func (c *Console) showDeadLetters(r *http.Request) (content, error) {
	query := r.URL.Query()
	hasNoType := query.Has("type") && query.Get("type") == "" // a filter has no such condition
	filter, err := filterOf(query)
	s, none := c.serviceOf(r.PathValue("service"))
	if err != nil || none != nil {
		return content{}, missing("there is no such list")
	}
	filter.State, filter.Limit = "waiting", 1000
	maps.DeleteFunc(query, func(name string, _ []string) bool { // a link must not fill in the form's other fields
		return !slices.Contains([]string{"id", "consumer", "code", "type", "key", "after"}, name)
	})
	filter.After, _ = strconv.ParseInt(query.Get("after"), 10, 64)
	found, err := client.Call[adminapi.DeadLetters](r.Context(), s, client.Post("/admin/v1/dead-letters/query", filter))
	next := ""
	if found.Next > 0 {
		query.Set("after", strconv.FormatInt(found.Next, 10))
		next = "?" + query.Encode()
	}
	found.Items = slices.DeleteFunc(found.Items, func(l adminapi.DeadLetter) bool { return hasNoType && l.Type != "" })
	return content{"dead-letters", "Dead letters of " + s.Name, map[string]any{
		"Service": s.Name, "Found": found, "Query": query, "Next": next, "Back": r.URL.RequestURI(),
	}}, err
}

func (c *Console) showDeadLetter(r *http.Request) (content, error) {
	s, err := c.serviceOf(r.PathValue("service"))
	if err != nil {
		return content{}, err
	}
	payload := r.URL.Query().Get("payload") != ""
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return content{}, missing("there is no such dead letter")
	}
	found, err := client.Call[adminapi.DeadLetterDetail](r.Context(), s,
		client.Post("/admin/v1/dead-letters/show", adminapi.DeadLetterRequest{ID: id, Payload: payload}))
	data := map[string]any{
		"Service": s.Name, "Letter": found.Letter, "History": found.History, "Shown": payload, "Back": r.URL.RequestURI(),
	}
	if payload {
		data["Original"], data["Edited"] = pretty(found.Letter.Payload), pretty(found.Letter.EditedPayload)
	}
	return content{"dead-letter", "Dead letter " + s.Name + "/" + r.PathValue("id"), data}, err
}

func pretty(payload []byte) string {
	var indented bytes.Buffer
	if json.Indent(&indented, payload, "", "  ") == nil {
		return indented.String()
	}
	return string(bytes.ToValidUTF8(payload, []byte("�")))
}

func (c *Console) showMails(r *http.Request) (content, error) {
	state := adminapi.MailState(r.URL.Query().Get("state"))
	query := adminapi.MailQuery{State: state, After: r.URL.Query().Get("after")}
	found := slices.DeleteFunc(call[adminapi.Mails](c, r, client.Post("/admin/v1/mails", query)),
		func(a client.Answer[adminapi.Mails]) bool {
			problem, is := errors.AsType[*client.ProblemError](a.Err)
			return is && problem.Problem.Code == "no_mails"
		})
	return content{"mails", "Mails", map[string]any{
		"State": string(state), "Answers": found,
		"States": []string{"open", "uncertain", "failed", "skipped", "pending", "claimed", "submitting", "sent"},
	}}, nil
}

// showLost lists at most a hundred per service.
func (c *Console) showLost(r *http.Request) (content, error) {
	found := call[adminapi.LostEvents](c, r, client.Post("/admin/v1/outbox/lost", adminapi.LostQuery{}))
	return content{"lost", "Lost events", found}, nil
}

type deed struct {
	Service string
	adminapi.Action
}

func (c *Console) showAudit(r *http.Request) (content, error) {
	until, _ := time.Parse(time.RFC3339Nano, r.URL.Query().Get("until"))
	found := call[adminapi.Actions](c, r, client.Post("/admin/v1/audit", adminapi.AuditQuery{Until: until}))
	var deeds []deed
	var older time.Time // that of the service whose page ends first
	for _, a := range found {
		for _, action := range a.Value.Items {
			deeds = append(deeds, deed{a.Service, action})
		}
		if first := a.Value.Items; a.Value.More && first[0].At.After(older) {
			older = first[0].At
		}
	}
	slices.SortStableFunc(deeds, func(a, b deed) int { return b.At.Compare(a.At) })
	data := map[string]any{"Answers": found, "Deeds": deeds}
	if !older.IsZero() {
		data["Deeds"] = slices.DeleteFunc(deeds, func(d deed) bool { return d.At.Before(older) })
		data["Older"] = older.Format(time.RFC3339Nano)
	}
	return content{"audit", "Audit", data}, nil
}

func (c *Console) showStory(r *http.Request) (content, error) {
	id := r.PathValue("id")
	told, err := client.Story(r.Context(), c.cfg.Services, adminapi.StoryQuery{ID: id})
	return content{"story", "Story of " + id, map[string]any{
		"ID": id, "Kind": string(told.Kind), "Steps": stepsOf(told.Steps), "Picture": pictureOf(told.Steps),
		"Related": told.Related, "Note": told.Note, "Err": err,
	}}, nil
}

func find(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimSpace(r.URL.Query().Get("id"))
	page := "/events/" + url.PathEscape(id)
	service, number, _ := strings.Cut(id, "/")
	if _, err := strconv.ParseUint(number, 10, 63); err == nil {
		page = "/dead-letters/" + url.PathEscape(service) + "/" + number
	}
	http.Redirect(w, r, page, http.StatusSeeOther)
}
