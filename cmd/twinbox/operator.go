package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"example.com/twinbox/internal/services"
	"example.com/twinbox/ops/admin/adminapi"
	"example.com/twinbox/ops/admin/client"
)

// Operator is what every command that operates a running system takes: where it is, and how to answer.
type Operator struct {
	Connection `embed:""`
	Answer     `embed:""`
}

// Connection is where a running system is.
type Connection struct {
	Dir               string `help:"Folder of the system that \"make run\" started, asked where no address is given." default:".twinbox"`
	CustomerAdmin     string `help:"Customer's admin listener." placeholder:"HOST:PORT"`
	NotificationAdmin string `help:"Notification's admin listener." placeholder:"HOST:PORT"`

	Admin map[string]string `help:"Admin listener of another service, by its name." placeholder:"NAME=HOST:PORT;..."`

	TokenFile   string `help:"File with the token of these listeners. Default: the variable TWINBOX_ADMIN_TOKEN." placeholder:"FILE"`
	Environment string `help:"The services' ENVIRONMENT; services of another one refuse. Default: the one that they name." placeholder:"NAME"`
	Service     string `help:"Ask this service alone." default:"" env:"-" placeholder:"NAME"`
}

// serviceNames are the services there are, in the order of every output.
var serviceNames = services.Names()

// tokenVariable holds the token. It is no flag: every user of the machine can read a process's flags.
const tokenVariable = "TWINBOX_ADMIN_TOKEN"

// connect finds the services. It asks none of them yet.
func (o *Connection) connect() ([]*client.Service, error) {
	addresses, token, err := o.find()
	if err != nil {
		return nil, err
	}
	return o.clients(addresses, token)
}

// clients are those of the services whose addresses are known.
func (o *Connection) clients(addresses map[string]string, token string) ([]*client.Service, error) {
	var services []*client.Service
	names := inOrder(addresses) // of the folder: "make run" may run more than serviceNames
	for _, name := range names {
		if addresses[name] == "" || o.Service != "" && o.Service != name {
			continue
		}
		s, err := client.New(name, addresses[name], token)
		if err != nil {
			return nil, usage(err.Error())
		}
		s.Environment = o.Environment
		services = append(services, s)
	}
	switch {
	case !slices.Contains(append(names, ""), o.Service):
		return nil, usage(fmt.Sprintf("--service: there is no %s, but %s", printable(o.Service), strings.Join(names, ", ")))
	case len(services) == 0:
		return nil, usage(fmt.Sprintf("the address of %s is not known; give it with --%s", o.Service, adminFlag(o.Service)))
	}
	return services, nil
}

// adminFlag is the flag with the address of a service's admin listener.
func adminFlag(service string) string {
	if service == "customer" || service == "notification" {
		return service + "-admin"
	}
	return "admin " + service + "=HOST:PORT"
}

// inOrder are the services of a map: those that there are always, then the others by name.
func inOrder[T any](of map[string]T) (names []string) {
	for _, name := range serviceNames {
		if _, is := of[name]; is {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// errNoToken says that the services are known, and nothing that opens their operations is.
var errNoToken error = usage("no token: give --token-file or set " + tokenVariable)

// named reports whether the address of a service is given.
func (o *Connection) named() bool {
	return o.CustomerAdmin != "" || o.NotificationAdmin != "" || len(o.Admin) > 0
}

// find gives the addresses also beside errNoToken.
func (o *Connection) find() (addresses map[string]string, token string, err error) {
	if !o.named() {
		stack, err := client.ReadOperators(o.Dir)
		if errors.Is(err, os.ErrNotExist) {
			return nil, "", fmt.Errorf("no system runs in %s; start one with \"make run\", or say where it is with "+
				"--customer-admin, --notification-admin, --admin and --token-file", o.Dir)
		}
		return stack.Services, stack.Token, err
	}
	addresses = map[string]string{"customer": o.CustomerAdmin, "notification": o.NotificationAdmin}
	maps.Copy(addresses, o.Admin)
	if o.TokenFile == "" {
		if token := os.Getenv(tokenVariable); token != "" {
			return addresses, token, nil
		}
		return addresses, "", errNoToken
	}
	content, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return nil, "", usage("read token file: " + err.Error())
	}
	return addresses, strings.TrimSpace(string(content)), nil
}

// answerOf is what one service said.
type answerOf[T any] struct {
	service *client.Service
	value   T
}

// ask asks all services at once and returns the answers in their order. One that does not answer is an error beside the
// others' answers.
func ask[T any](
	ctx context.Context, services []*client.Service, call func(ctx context.Context, s *client.Service) (T, error),
) ([]answerOf[T], error) {
	answers, errs := make([]*answerOf[T], len(services)), make([]error, len(services))
	var all errgroup.Group
	for i, s := range services {
		all.Go(func() error {
			value, err := call(ctx, s)
			if err == nil {
				answers[i] = &answerOf[T]{s, value}
			}
			errs[i] = err
			return nil
		})
	}
	_ = all.Wait()
	var given []answerOf[T]
	for _, a := range answers {
		if a != nil {
			given = append(given, *a)
		}
	}
	err := errors.Join(errs...)
	if err != nil && len(given) > 0 {
		err = &partialError{err}
	}
	return given, err
}

// survey asks every service the same and shows the answers: with --json as one document by the services' names, else as
// write does.
func survey[T any](
	ctx context.Context, o *Operator, to streams, question client.Request,
	write func(to streams, answers []answerOf[T]) error,
) error {
	services, err := o.connect()
	if err != nil {
		return err
	}
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (T, error) {
		return client.Call[T](ctx, s, question)
	})
	if len(answers) == 0 {
		return err
	}
	if !o.json() {
		return both(write(to, answers), err)
	}
	document := map[string]any{}
	for _, a := range answers {
		document[a.service.Name] = a.value
	}
	return both(writeJSON(to.out, document), err)
}

// strangerError says that an address leads to another service than the flag says, or to another environment.
type strangerError struct{ code, text string }

func (e *strangerError) Error() string     { return e.text }
func (*strangerError) ExitCode() int       { return exitRefused }
func (e *strangerError) ErrorCode() string { return e.code }

// identify asks all services who they are, before a change, and refuses where one is not the service that its address
// is given for or where they are of different environments. From then on each request names the environment, too. One
// that does not answer is left for its turn.
func identify(ctx context.Context, services []*client.Service) error {
	_, err := askWho(ctx, services)
	for _, err := range parts(err) {
		if code := errorCode(err); code == "wrong_service" || code == "wrong_environment" {
			return err
		}
	}
	return nil
}

// parts are the errors of which one is made.
func parts(err error) []error {
	if joined, is := err.(interface{ Unwrap() []error }); is { // the outermost one alone
		return joined.Unwrap()
	}
	return []error{err}
}

// recognise compares what the services say with what they were taken for.
func recognise(answers []answerOf[adminapi.Service]) error {
	for _, a := range answers {
		if a.value.Name != a.service.Name {
			return &strangerError{"wrong_service", fmt.Sprintf("%s: at %s is %s, not %s; nothing was changed",
				a.service.Name, a.service.Addr, cmp.Or(printable(a.value.Name), "another program"), a.service.Name)}
		}
		if first := answers[0]; a.value.Environment != first.value.Environment {
			return &strangerError{"wrong_environment", fmt.Sprintf(
				"%s is in the environment %s, but %s in %s; nothing was changed", first.service.Name,
				printable(first.value.Environment), a.service.Name, printable(a.value.Environment))}
		}
	}
	return nil
}

// askWho asks all services what they are, before anything is done or shown: one that does not answer is a failure of
// the whole.
func askWho(ctx context.Context, services []*client.Service) ([]answerOf[adminapi.Service], error) {
	answers, err := ask(ctx, services, func(ctx context.Context, s *client.Service) (adminapi.Service, error) {
		return client.Call[adminapi.Service](ctx, s, client.Get("/admin/v1/service", nil))
	})
	if partial, is := errors.AsType[*partialError](err); is {
		err = partial.err
	}
	if stranger := recognise(answers); stranger != nil {
		return nil, stranger
	}
	for _, s := range services {
		if len(answers) > 0 {
			s.Environment = cmp.Or(s.Environment, answers[0].value.Environment)
		}
	}
	return answers, err
}

// Change is what every command that changes something takes beside that.
type Change struct {
	Yes    bool   `help:"Do it. Without this the command says what it would do and changes nothing." env:"-"`
	Reason string `help:"Why, for the audit; needed with --yes." env:"-" placeholder:"TEXT"`
	By     string `help:"Your name, for the audit. Default: the user of this process." env:"-" placeholder:"NAME"`
}

func (c *Change) check() error {
	if c.Yes && strings.TrimSpace(c.Reason) == "" {
		return usage("--yes needs --reason: the audit says why things were changed")
	}
	return nil
}

// who and why fill what a dry run may leave out.
func (c *Change) who() string { return cmp.Or(c.By, systemUser()) }
func (c *Change) why() string { return cmp.Or(c.Reason, "dry run") }
