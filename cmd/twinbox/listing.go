package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/twinbox/internal/ops/admin/client"
)

// Listing is a command that asks every service one question; questions has its row.
type Listing struct {
	Watch bool           `json:"-" help:"Show it again and again, until Ctrl-C." short:"w" env:"-"`
	Every *time.Duration `json:"-" help:"With --watch: how often. Default: 2s." env:"-" placeholder:"DURATION"`
}

func (c *Listing) AfterApply() error {
	if c.Every != nil && !c.Watch {
		return usage("--every goes with --watch")
	}
	return nil
}

func (c *Listing) Run(ctx context.Context, command *kong.Context, to *streams, services []*client.Service) error {
	node := command.Selected()
	return c.show(ctx, to, services, questions[nameOf(node)], values(node.Target.Addr().Interface()))
}

// On a terminal each answer of --watch replaces the one before.
func (c *Listing) show(ctx context.Context, to *streams, services []*client.Service, q question, asked item) error {
	if !c.Watch {
		return q.show(ctx, to, services, asked)
	}
	return to.again(ctx, *cmp.Or(c.Every, new(2*time.Second)), func() error {
		if to.isTerminal() {
			to.say("\x1b[H\x1b[2J%s", moment(time.Now()))
		}
		return q.show(ctx, to, services, asked)
	})
}

type question struct {
	request string // method and path
	views   []view
	none    string // the text without an item; empty: the document has whole answers by service
	absent  bool   // having no item is an error
	all     bool   // it asks for every page, up to the limit if there is one
	tail    bool   // older pages follow newer ones
	example item   // what completion asks
	add     func(service string, answer item)
}

func (q question) show(ctx context.Context, to *streams, services []*client.Service, asked item) error {
	found, unknown, err := q.ask(ctx, services, asked)
	if err != nil {
		return err
	}
	return q.write(to, found, unknown, asked)
}

func (q question) ask(ctx context.Context, services []*client.Service, asked item) (serviceAnswers, missing, error) {
	return ask(services, func(s *client.Service) (item, error) {
		answer, err := q.read(ctx, s, asked)
		if err == nil {
			answer["service"] = s.Name
			if q.add != nil {
				q.add(s.Name, answer)
			}
			nameLetters(s.Name, answer)
			for _, v := range q.views {
				for _, i := range answer.items(v.of) {
					i["service"] = s.Name
					nameLetters(s.Name, i)
				}
			}
		}
		return answer, err
	})
}

func (q question) read(ctx context.Context, s *client.Service, asked item) (answer item, err error) {
	method, path, _ := strings.Cut(q.request, " ")
	if method == http.MethodGet {
		return client.Call[item](ctx, s, client.Get(path))
	}
	asked = maps.Collect(maps.All(asked)) // not nil
	rest, _ := strconv.Atoi(asked.text("limit"))
	var items []any
	for {
		answer, err = client.Call[item](ctx, s, client.Post(path, asked))
		if err != nil || !q.all {
			return answer, err
		}
		page, _ := answer["items"].([]any)
		if q.tail {
			items = slices.Concat(page, items)
		} else {
			items = append(items, page...)
		}
		answer["items"], asked["after"] = items, answer["next"]
		if asked["limit"] != nil {
			rest -= len(page)
			asked["limit"] = rest
		}
		if answer["next"] == nil || asked["limit"] == 0 {
			return answer, nil
		}
	}
}

// Each service numbers its own dead letters.
func nameLetters(service string, i item) {
	for from, to := range map[string]string{
		"example": "example", "dead_letter": "dead_letter", "next": "next", "id": "ref",
	} {
		if id, is := i[from].(json.Number); is {
			i[to] = service + "/" + id.String()
		}
	}
	if kind := i["kind"]; kind != nil {
		i["ref"] = i["subject"]
		if kind == "dead_letter" && i.isSet("subject") {
			i["ref"] = service + "/" + i.text("subject")
		}
	}
}

func (q question) write(to *streams, found serviceAnswers, unknown missing, asked item) error {
	rows := 0
	var tables []table
	for _, v := range q.views {
		v.personal = asked.isSet("payload") || asked.isSet("recipient")
		t := v.table(found)
		tables, rows = append(tables, t), rows+len(t.rows)
	}
	switch {
	case q.absent && rows == 0 && len(unknown) == 0:
		return notFound(q.none)
	case to.json():
		to.document(q.document(found, unknown))
		return partial(unknown.err())
	}
	to.show(tables...)
	if rows == 0 && q.none != "" && len(unknown) == 0 {
		to.say("%s.", q.none)
	}
	for _, a := range found {
		if rows == 0 && q.none != "" && len(unknown) > 0 {
			to.say("%s of %s.", q.none, a.Service)
		}
		warnOfMore(to, a.Value)
	}
	for _, name := range inOrder(unknown) { // it must not look like a good state
		to.say("%s: unknown, %s", name, printable(strings.TrimPrefix(unknown[name].Error(), name+": ")))
	}
	return partial(unknown.err())
}

func (q question) document(found serviceAnswers, unknown missing) item {
	document, unread, reasons := item{}, item{}, item{}
	more, next := false, []any{}
	for _, a := range found {
		if q.none == "" {
			document[a.Service] = a.Value
		}
		more = more || a.Value["more"] == true || a.Value["next"] != nil
		if a.Value["next"] != nil {
			next = append(next, a.Value["next"])
		}
		if a.Value["unread"] != nil {
			unread[a.Service], document["unread"] = a.Value["unread"], unread
		}
	}
	for name, err := range unknown {
		reasons[name], document["unknown"] = err.Error(), reasons
	}
	if q.none != "" {
		document["items"], document["more"], document["next"] = q.views[0].table(found).rows, more, next
	}
	return document
}

func warnOfMore(to *streams, answer item) {
	switch unread, service := answer.time("unread").UTC(), answer["service"]; {
	case answer["next"] != nil:
		to.warn("%s has more: continue with --service %[1]s --after %s", service, answer.text("next"))
	case answer["more"] == true:
		to.warn("%s has more: give a larger --limit, or narrower conditions", service)
	case answer["unread"] != nil:
		to.warn("%s has too many rows to read all: events of %s and older may be missing; continue with --until %s",
			service, unread.Format(milliseconds), unread.Add(time.Millisecond).Format(milliseconds))
	}
}
