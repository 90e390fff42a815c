package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/twinbox/internal/ops/admin/adminapi"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/services"
)

// Connection is where a running system is.
type Connection struct {
	twoAdmins
	Dir string `help:"Folder of the system that \"make run\" started, asked where no address is given. The report of verify is stored there." default:".twinbox"`

	Admin map[string]string `help:"Admin listener of a service, by its name." placeholder:"NAME=HOST:PORT;..." listener:""`

	TokenFile   string `help:"File with the token of these listeners. Default: the variable TWINBOX_ADMIN_TOKEN." placeholder:"FILE" listener:""`
	Environment string `help:"The services' ENVIRONMENT; services of another one refuse. Default: the one that they name." placeholder:"NAME" listener:""`
	Service     string `help:"Ask this service alone." default:"" env:"-" placeholder:"NAME"`
}

// serviceNames have the order of every output.
var serviceNames = services.Names()

// The token is no flag: every user of the machine can read a process's flags.
const tokenVariable = "TWINBOX_ADMIN_TOKEN"

var errNoToken = usage("no token: give --token-file or set " + tokenVariable)

// find returns the addresses also with errNoToken.
func (o *Connection) find() (at client.Operators, err error) {
	at.Services = map[string]string{}
	maps.Copy(at.Services, o.given())
	maps.Copy(at.Services, o.Admin)
	if len(at.Services) == 0 {
		at, err = client.ReadOperators(o.Dir)
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("no system runs in %s; start one with \"make run\", or say where it is with "+
				"--admin NAME=HOST:PORT and --token-file", o.Dir)
		}
		return at, err
	}
	if o.TokenFile == "" {
		if at.Token = os.Getenv(tokenVariable); at.Token == "" {
			err = errNoToken
		}
		return at, err
	}
	content, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return at, usage("read token file: " + err.Error())
	}
	at.Token = strings.TrimSpace(string(content))
	return at, nil
}

// services finds the services, also with errNoToken. It does not ask them yet.
func (o *Connection) services() (found []*client.Service, err error) {
	at, err := o.find()
	if err != nil && !errors.Is(err, errNoToken) {
		return nil, err
	}
	names := inOrder(at.Services) // of the folder: "make run" may run more than serviceNames
	for _, name := range names {
		if at.Services[name] == "" || o.Service != "" && o.Service != name {
			continue
		}
		s, err := client.New(name, at.Services[name], at.Token)
		if err != nil {
			return nil, usage(err.Error())
		}
		s.Environment = o.Environment
		found = append(found, s)
	}
	switch {
	case o.Service != "" && !slices.Contains(slices.Concat(names, serviceNames), o.Service):
		return nil, usage(fmt.Sprintf("--service: there is no %s, but %s", printable(o.Service), strings.Join(names, ", ")))
	case len(found) == 0:
		return nil, usage(fmt.Sprintf("the address of %s is not known; give it with --admin %[1]s=HOST:PORT", o.Service))
	}
	return found, err
}

// The project's own services come first, then the others by name.
func inOrder[T any](of map[string]T) []string {
	place := func(name string) int { return slices.Index(append(slices.Clip(serviceNames), name), name) }
	names := slices.Sorted(maps.Keys(of))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	return names
}

func call[T any](ctx context.Context, question client.Request) func(*client.Service) (T, error) {
	return func(s *client.Service) (T, error) { return client.Call[T](ctx, s, question) }
}

// missing has errors by services. Their part of an answer is unknown.
type missing map[string]error

func (m missing) err() error {
	var errs []error
	for _, name := range inOrder(m) {
		errs = append(errs, m[name])
	}
	return errors.Join(errs...)
}

func (m missing) partial() error {
	if len(m) == 0 {
		return nil
	}
	return partial(m.err())
}

func (m missing) in(document item) item {
	if len(m) > 0 {
		reasons := item{}
		for name, err := range m {
			reasons[name] = err.Error()
		}
		document["unknown"] = reasons
	}
	return document
}

// ask asks all services concurrently and keeps their order. It fails only if no service answers. A service that sends
// no mails, or does not have the consumer, has no part in the answer.
func ask[T any](
	services []*client.Service, call func(*client.Service) (T, error),
) (answers []client.Answer[T], unknown missing, err error) {
	unknown = missing{}
	var apart error
	for _, a := range client.Ask(services, call) {
		switch code := errorCode(a.Err); {
		case a.Err == nil:
			answers = append(answers, a)
		case code == "no_mails":
			apart = usage("the services asked send no mails")
		case code == "consumer_not_found":
			apart = notFound("no service has the consumer: twinbox consumer list shows their names")
		default:
			unknown[a.Service] = a.Err
		}
	}
	if len(answers) == 0 {
		err = cmp.Or(unknown.err(), apart)
	}
	return answers, unknown, err
}

// askWho runs before a change. It refuses a service with the wrong name, and services of different environments. Later
// requests name the environment. A service that does not answer is no refusal.
func askWho(ctx context.Context, services []*client.Service) error {
	answers, unknown, _ := ask(services, call[adminapi.Service](ctx, client.Get("/admin/v1/service", nil)))
	for _, name := range inOrder(unknown) {
		if code := errorCode(unknown[name]); code == "wrong_service" || code == "wrong_environment" {
			return unknown[name]
		}
	}
	for _, a := range answers {
		if first := answers[0]; a.Value.Environment != first.Value.Environment {
			err := fmt.Errorf("%s is in the environment %s, but %s in %s; nothing was changed",
				first.Service, printable(first.Value.Environment), a.Service, printable(a.Value.Environment))
			return &ending{error: err, exit: exitRefused, code: "wrong_environment"}
		}
	}
	for _, s := range services {
		if len(answers) > 0 {
			s.Environment = cmp.Or(s.Environment, answers[0].Value.Environment)
		}
	}
	return nil
}

// instant is RFC 3339, or a duration ago, such as 90s, 30m, 1h or 2d.
type instant struct{ time.Time }

// UnmarshalText parses an instant.
func (i *instant) UnmarshalText(text []byte) (err error) {
	if i.Time, err = time.Parse(time.RFC3339, string(text)); err == nil && i.Year() >= 1000 { // not the zero of programs
		return nil
	}
	ago, err := time.ParseDuration(string(text))
	if number, inDays := strings.CutSuffix(string(text), "d"); inDays {
		var days uint64
		days, err = strconv.ParseUint(number, 10, 16)
		ago = time.Duration(days) * 24 * time.Hour
	}
	if err != nil || ago <= 0 {
		return errors.New("is neither a time such as 2026-11-21T10:00:00Z nor how long ago, such as 30m, 1h or 2d")
	}
	i.Time = time.Now().Add(-ago)
	return nil
}

// Window is a span of time.
type Window struct {
	Since instant `json:"since,omitzero" help:"At this time or later, a dead letter by its last failure: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
	Until instant `json:"until,omitzero" help:"Before this time." env:"-" placeholder:"TIME"`
}

// AfterApply refuses a window that ends before it begins.
func (w *Window) AfterApply() error {
	if !w.Until.IsZero() && !w.Since.Before(w.Until.Time) {
		return usage("--until " + moment(w.Until.Time) + " is not after --since " + moment(w.Since.Time))
	}
	return nil
}
