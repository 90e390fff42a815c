package main

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"example.com/twinbox/internal/ops/admin/client"
)

// Listing is a command that asks every service one question; listings has its row.
type Listing struct {
	Watch `json:"-" group:"Flags of every command:"`
}

func (c *Listing) Run(ctx context.Context, command *kong.Context, to *streams, at *Connection) error {
	node := command.Selected()
	asked, err := values(node.Target.Addr().Interface())
	if err != nil {
		return err
	}
	return c.repeat(ctx, to, func() error {
		services, err := at.services()
		if err != nil {
			return err
		}
		_, err = listings[nameOf(node)].show(ctx, to, services, asked)
		return err
	})
}

type listing struct {
	question string // method and path
	views    []view
	extra    map[string]string // the columns that a flag adds, by its name
	none     string            // is written where there is no item; empty: the document has whole answers by service
	order    string            // the time by which the items of all services are sorted
	newest   bool              // by it, the newest first
	pages    bool              // it has --after
	absent   bool              // to have no item is an error
	all      bool              // every page is asked for, of a tail up to its limit
	example  item              // what completion asks
}

type view struct {
	of   string // the member with the rows; empty: the answer is the row
	with string // only rows in which this member is set
	well item   // the row of a service without one
	// columns are "NAME member form" each; a _ of the name is a blank, and only -o wide shows a name with a +.
	columns string
}

func (l listing) ask(
	ctx context.Context, services []*client.Service, asked item,
) (answers []client.Answer[item], unknown missing, err error) {
	return ask(services, func(s *client.Service) (item, error) { return l.read(ctx, s, asked) })
}

// show returns the number of rows.
func (l listing) show(ctx context.Context, to *streams, services []*client.Service, asked item) (rows int, err error) {
	answers, unknown, err := l.ask(ctx, services, asked)
	if err != nil {
		return 0, err
	}
	return l.write(to, answers, unknown, asked)
}

func (l listing) write(to *streams, answers []client.Answer[item], unknown missing, asked item) (rows int, err error) {
	items := l.itemsOf(answers)
	if l.absent && len(items) == 0 && len(unknown) == 0 {
		return 0, notFound(l.none)
	}
	if to.json() {
		to.document(l.document(answers, items, unknown))
		return len(items), unknown.partial()
	}
	var tables []table
	for _, v := range l.views {
		for flag, columns := range l.extra {
			if asked.isSet(flag) {
				v.columns += ", " + columns
			}
		}
		t := v.table(v.rows(answers, items), to.wide())
		tables, rows = append(tables, t), rows+len(t)-1
	}
	to.show(tables...)
	for _, a := range answers {
		if rows == 0 && l.none != "" && len(unknown) > 0 {
			to.say("%s of %s.", l.none, a.Service)
		}
		l.warnOfMore(to, a)
	}
	if rows == 0 && l.none != "" && len(unknown) == 0 {
		to.say("%s.", l.none)
	}
	to.sayUnknown(unknown)
	return rows, unknown.partial()
}

func (l listing) read(ctx context.Context, s *client.Service, asked item) (answer item, err error) {
	method, path, _ := strings.Cut(l.question, " ")
	limit, _ := strconv.Atoi(asked.text("limit"))
	asked = maps.Clone(asked)
	var items []any
	for {
		request := client.Get(path, asked)
		if method == "POST" {
			request = client.Post(path, asked)
		}
		answer, err = client.Call[item](ctx, s, request)
		page, _ := answer["items"].([]any)
		if asked["before"] != nil {
			items = slices.Concat(page, items)
		} else {
			items = append(items, page...)
		}
		switch rest := answer["rest"]; {
		case err != nil || !l.all:
			return answer, err
		case rest != nil && len(items) < limit: // one answer covers a limited number of positions
			asked["before"], asked["limit"] = rest, limit-len(items)
		case answer["next"] != nil:
			asked["after"] = answer["next"]
		case answer["more"] == true:
			asked["after"] = page[len(page)-1].(map[string]any)["id"]
		default:
			answer["items"] = items
			return answer, nil
		}
	}
}

func (l listing) itemsOf(answers []client.Answer[item]) []item {
	all := []item{}
	for _, a := range answers {
		a.Value["service"] = a.Service
		for _, v := range l.views {
			for _, i := range a.Value.items(v.of) {
				i["service"] = a.Service
			}
		}
		for _, i := range a.Value.items("items") {
			nameLetters(a.Service, i)
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(a, b item) int {
		if l.newest {
			a, b = b, a
		}
		return a.time(l.order).Compare(b.time(l.order))
	})
	return all
}

// nameLetters adds the service: each one numbers its own dead letters.
func nameLetters(service string, i item) {
	for from, to := range map[string]string{"example": "example", "dead_letter": "dead_letter", "id": "ref"} {
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

func (l listing) document(answers []client.Answer[item], items []item, unknown missing) item {
	document, unread := item{}, item{}
	if l.none != "" {
		document = item{"items": items, "more": false, "next": []string{}}
	}
	for _, a := range answers {
		switch {
		case l.none == "":
			document[a.Service] = a.Value
		case a.Value["more"] == true:
			document["more"] = true
			if l.pages {
				document["next"] = append(document["next"].([]string), lastOf(a.Value))
			}
		}
		if a.Value["unread"] != nil {
			unread[a.Service], document["unread"] = a.Value["unread"], unread
		}
	}
	return unknown.in(document)
}

// --after takes this name.
func lastOf(answer item) string {
	name := ""
	for _, i := range answer.items("items") {
		name = cmp.Or(i.text("ref"), i.text("id"))
	}
	return name
}

func (l listing) warnOfMore(to *streams, a client.Answer[item]) {
	switch unread := a.Value.time("unread").UTC(); {
	case a.Value["more"] == true && l.pages:
		to.warn("%s has more: continue with --service %[1]s --after %s", a.Service, lastOf(a.Value))
	case a.Value["more"] == true:
		to.warn("%s has more: give a larger --limit, or narrower conditions", a.Service)
	case a.Value["unread"] != nil:
		to.warn("%s has too many rows to read all: events of %s and older may be missing; continue with --until %s",
			a.Service, unread.Format(milliseconds), unread.Add(time.Millisecond).Format(milliseconds))
	}
}

func (v view) rows(answers []client.Answer[item], items []item) (rows []item) {
	for _, a := range answers {
		switch v.of {
		case "":
			rows = append(rows, a.Value)
		case "items":
			return items
		default:
			parts := a.Value.items(v.of)
			if len(parts) == 0 && v.well != nil {
				parts = []item{{"service": a.Service}}
				maps.Copy(parts[0], v.well)
			}
			rows = append(rows, parts...)
		}
	}
	return slices.DeleteFunc(rows, func(i item) bool { return v.with != "" && !i.isSet(v.with) })
}
