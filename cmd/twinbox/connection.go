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
	Dir string `help:"Folder of the system that \"make run\" started, asked where no address is given. The report of its verify is stored there." default:".twinbox"`

	Admin map[string]string `help:"Admin listener of a service, by its name." placeholder:"NAME=HOST:PORT;..." listener:""`

	TokenFile   string `help:"File with the token of these listeners. Default: the variable TWINBOX_ADMIN_TOKEN." placeholder:"FILE" listener:""`
	Environment string `help:"The services' ENVIRONMENT; services of another one refuse. Default: the one that they name." placeholder:"NAME" listener:""`
	Service     string `help:"Ask this service alone." default:"" env:"-" placeholder:"NAME"`
}

// serviceNames have the order of every output.
var serviceNames = services.Names()

// The token is no flag: every user of the machine can read a process's flags.
const tokenVariable = "TWINBOX_ADMIN_TOKEN"

// The token may be empty.
func (o *Connection) find() (at client.Operators, err error) {
	if at.Services = o.addresses(); len(at.Services) == 0 {
		return o.started()
	}
	at.Token = os.Getenv(tokenVariable)
	if o.TokenFile != "" {
		content, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return at, usage("read token file: " + err.Error())
		}
		at.Token = strings.TrimSpace(string(content))
	}
	return at, nil
}

func (o *Connection) started() (client.Operators, error) {
	at, err := client.ReadOperators(o.Dir)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("no system runs in %s; start one with \"make run\", or give --admin NAME=HOST:PORT and "+
			"--token-file, or give --database and --brokers to verify", o.Dir)
	}
	return at, err
}

func (o *Connection) addresses() map[string]string {
	addresses := map[string]string{}
	maps.Copy(addresses, o.given())
	maps.Copy(addresses, o.Admin)
	return addresses
}

// isGiven reports whether addresses are given: then the folder is not asked.
func (o *Connection) isGiven() bool { return len(o.addresses()) > 0 }

// asked also warns of the tree's services whose addresses are not given where others are.
func (o *Connection) asked(to *streams) ([]*client.Service, error) {
	addresses := o.addresses()
	for _, name := range serviceNames {
		if len(addresses) > 0 && addresses[name] == "" && o.Service == "" {
			to.warn("%s is not asked: give its address too, --admin %[1]s=HOST:PORT", name)
		}
	}
	return o.services()
}

// services requires a token.
func (o *Connection) services() ([]*client.Service, error) {
	at, err := o.find()
	if err == nil && at.Token == "" {
		err = usage("no token: give --token-file or set " + tokenVariable)
	}
	if err != nil {
		return nil, err
	}
	return o.clients(at)
}

func (o *Connection) clients(at client.Operators) (found []*client.Service, err error) {
	names := inOrder(at.Services) // of the folder: "make run" may run more than serviceNames
	for _, name := range names {
		if o.Service != "" && o.Service != name {
			continue
		}
		s, err := client.New(name, at.Services[name], at.Token)
		if err != nil {
			if strings.Contains(at.Services[name], ",") {
				err = fmt.Errorf("%w; a ; separates services", err)
			}
			return nil, usage(err.Error())
		}
		s.Environment = o.Environment
		found = append(found, s)
	}
	if len(found) == 0 {
		return nil, usage(fmt.Sprintf("--service: the address of %s is not known, but of %s; give it with "+
			"--admin %[1]s=HOST:PORT", printable(o.Service), strings.Join(names, ", ")))
	}
	return found, nil
}

// The project's own services come first, then the others by name.
func inOrder[T any](of map[string]T) (names []string) {
	for _, name := range slices.Concat(serviceNames, slices.Sorted(maps.Keys(of))) {
		if _, is := of[name]; is && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// missing has the errors of services, whose part of an answer is unknown.
type missing map[string]error

func (m missing) err() error {
	var errs []error
	for _, name := range inOrder(m) {
		errs = append(errs, m[name])
	}
	return errors.Join(errs...)
}

// ask asks all services concurrently and keeps their order.
func ask[T any](
	services []*client.Service, call func(*client.Service) (T, error),
) ([]client.Answer[T], missing, error) {
	return sorted(client.Ask(services, call))
}

// sorted fails only if no service answers. One that lacks the thing has no part in the answer.
func sorted[T any](all []client.Answer[T]) (answers []client.Answer[T], unknown missing, err error) {
	unknown, without := missing{}, missing{}
	var apart error
	for _, a := range all {
		switch end := endingOf(a.Err); {
		case a.Err == nil:
			answers = append(answers, a)
		case end.code == "no_mails":
			apart = usage("the services asked send no mails")
		case end.exit == exitNotFound:
			without[a.Service] = a.Err
		default:
			unknown[a.Service] = a.Err
		}
	}
	if len(answers) == 0 {
		err = cmp.Or(unknown.err(), without.err(), apart)
	}
	return answers, unknown, err
}

// askWho refuses a service with the wrong name, and services of different environments. Later requests name theirs.
func askWho(ctx context.Context, services []*client.Service) error {
	answers, unknown, _ := ask(services, func(s *client.Service) (adminapi.Service, error) {
		return client.Call[adminapi.Service](ctx, s, client.Get("/admin/v1/service"))
	})
	for _, name := range inOrder(unknown) {
		if code := endingOf(unknown[name]).code; code == "wrong_service" || code == "wrong_environment" {
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

func (i *instant) UnmarshalText(text []byte) error {
	at, err := time.Parse(time.RFC3339, string(text))
	if i.Time = at.UTC(); err == nil && i.Year() >= 1000 && i.Year() <= 9999 { // not the zero of programs
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
	Since instant `json:"since,omitzero" help:"At this time or later: RFC 3339, or how long ago, such as 1h or 2d." env:"-" placeholder:"TIME"`
	Until instant `json:"until,omitzero" help:"Before this time." env:"-" placeholder:"TIME"`
}

// checkSince refuses a time that leaves out everything.
func checkSince(i instant) error {
	if i.After(time.Now()) {
		return usage("--since " + moment(i.Time) + " is in the future")
	}
	return nil
}

// AfterApply refuses a window in which nothing can be.
func (w *Window) AfterApply() error {
	if !w.Until.IsZero() && !w.Since.Before(w.Until.Time) {
		return usage("--until " + moment(w.Until.Time) + " is not after --since " + moment(w.Since.Time))
	}
	return checkSince(w.Since)
}
