package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"example.com/twinbox/internal/config"
	"example.com/twinbox/internal/ops/admin/client"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
	"example.com/twinbox/internal/verify"
)

type verifyCommand struct {
	Database map[string]string `help:"Database of a service, by its name; a role that may read is enough. Default: those of the system in the folder." placeholder:"NAME=DSN;..."`
	Brokers  []string          `help:"First Kafka brokers to ask. Default: those of the system in the folder. KAFKA_TLS and the other variables of the services count." placeholder:"HOST:PORT"`

	Since  instant        `help:"Leave out events from before this time: RFC 3339, or how long ago, such as 1h or 2d. Default: all that is kept." env:"-" placeholder:"TIME"`
	Follow bool           `help:"Verify again and again, until Ctrl-C: a line for each verdict, as a job." short:"f" env:"-"`
	Every  *time.Duration `help:"With --follow: how often. Default: 1m." env:"-" placeholder:"DURATION"`
}

func (verifyCommand) Help() string {
	return "Compares what each service wrote with its topics, and those with what each consumer remembers. It reads the " +
		"databases and Kafka, and asks no service. " +
		"Ends with 0 when nothing is wrong, with 1 when something is or a service cannot be read, and with 5 when nothing " +
		"is wrong but not all of it could be verified; --since leaves out what outbox, topic or inbox no longer have.\n\n"
}

func (c *verifyCommand) AfterApply() error {
	switch {
	case c.Every != nil && !c.Follow:
		return usage("--every goes with --follow")
	case c.Every != nil && *c.Every < time.Second:
		return usage("--every is below 1s")
	case (len(c.Database) == 0) != (len(c.Brokers) == 0):
		return usage("give --database and --brokers together")
	}
	return checkSince(c.Since)
}

// --follow ends with the worst result of the looks that were not interrupted.
func (c *verifyCommand) Run(ctx context.Context, to *streams, at *Connection) error {
	system, err := c.find(ctx, at)
	if err != nil {
		return err
	}
	var settings eventing.Config
	if err := config.Load(environ(system.Brokers), &settings); err != nil {
		return usage(err.Error())
	}
	var worst error
	look := func() error {
		report, err := system.Verify(ctx, func(s verify.Service) verify.Config {
			show := to.progress(s.Name)
			return verify.Config{
				Service: s, Kafka: settings.Client("twinbox"), Since: c.Since.Time,
				Progress: func(read int64) { show(read, 0) },
				Suspected: func(n int) {
					to.warn("%s: %d things look wrong and are looked at again after %s", s.Name, n, s.Pause)
				},
			}
		})
		if c.Follow && ctx.Err() != nil {
			err = nil
		}
		if len(report) > 0 {
			if len(c.Database) == 0 { // else it is of another system than the folder's
				if err := verify.WriteReport(at.Dir, report); err != nil {
					to.warn("%v", err)
				}
			}
			c.write(report, to)
		}
		if found := errorOf(report, err); worst == nil || exitCode(found) == service.ExitFailure {
			worst = found
		}
		return err
	}
	if c.Follow {
		err = to.again(ctx, *cmp.Or(c.Every, new(time.Minute)), look)
	} else {
		err = look()
	}
	return cmp.Or(worst, err)
}

// find uses --database; without one, the system in the folder.
func (c *verifyCommand) find(ctx context.Context, at *Connection) (system verify.System, err error) {
	if len(c.Database) > 0 {
		system, err = c.given(ctx)
	} else {
		var running client.Operators
		running, err = at.started()
		system = running.Verify
	}
	if err != nil {
		return system, err
	}
	system.Services = slices.DeleteFunc(system.Services, func(s verify.Service) bool {
		return at.Service != "" && s.Name != at.Service
	})
	if len(system.Services) == 0 {
		err = usage("the database of the service is not known; give it with --database NAME=DSN")
	}
	return system, err
}

// given needs no variable that a service requires for other purposes, such as a secret.
func (c *verifyCommand) given(ctx context.Context) (verify.System, error) {
	system := verify.System{Brokers: c.Brokers}
	for _, name := range inOrder(c.Database) {
		i := slices.Index(serviceNames, name)
		if i < 0 {
			return system, usage("--database: there is no " + printable(name) + ", but " + strings.Join(serviceNames, ", "))
		}
		instance, _ := services.All()[i].Load(environ(c.Brokers))
		s, err := instance.Verified(ctx)
		if err != nil {
			return system, err
		}
		s.Database = c.Database[name]
		system.Services = append(system.Services, s)
	}
	return system, nil
}

func environ(brokers []string) []string {
	return append(os.Environ(), "KAFKA_BROKERS="+strings.Join(brokers, ","), "DATABASE_URL=postgres://given/given")
}

// errorOf gets the error of services without a verdict, too.
func errorOf(report verify.Report, err error) error {
	switch all := report.All(); {
	case !all.Clean():
		err = errors.Join(errors.New(all.Summary()), err)
		return &ending{error: err, exit: service.ExitFailure, code: "findings", answered: true}
	case err != nil:
		return &ending{error: err, exit: service.ExitFailure, code: "failed", answered: len(report) > 0}
	case !all.Whole():
		return partial(errors.New("nothing is wrong, but not all could be verified"))
	}
	return nil
}

var verdictViews = []view{
	{of: "produced", columns: "TOPIC topic, OUTBOX published, ON_TOPIC records, AGAIN again, WAITING waiting, " +
		"HELD held, DISCARDED discarded, OF_OTHERS foreign"},
	{of: "consumed", columns: "CONSUMER consumer, HANDLED handled, AGAIN again, PENDING pending, DEAD dead, " +
		"IGNORED ignored, TOPIC topic"},
	{of: "findings", columns: "FINDING kind, RULE rule, OF subject, EVENT event_id, TYPE type, KEY key, " +
		"VERSION version, WHAT detail"},
	{of: "unverifiable", columns: "NOT_VERIFIABLE events, OF subject, WHY reason"},
}

// --follow has a line for each verdict.
func (c *verifyCommand) write(report verify.Report, to *streams) {
	all := report.All()
	switch {
	case to.json() && c.Follow:
		_ = json.NewEncoder(to).Encode(report) // see streams.Write
	case to.json():
		to.document(report)
	case c.Follow:
		compared, unknown := counts(report)
		to.say("%s  %d compared, %d findings, %d not verifiable", moment(all.At), compared, len(all.Findings), unknown)
	default:
		shown := values(report)
		var verdicts serviceAnswers
		for _, name := range inOrder(report) {
			verdicts = append(verdicts, client.Answer[item]{Service: name, Value: shown.object(name)})
		}
		var tables []table
		for _, v := range verdictViews {
			tables = append(tables, v.table(verdicts))
		}
		to.show(tables...)
		names := strings.Join(inOrder(report), " and ")
		names = strings.Replace(names, " and ", ", ", len(report)-2)
		to.say("\nverdict of %s: %s, as of %s.", names, all.Summary(), moment(all.At))
	}
}

func counts(report verify.Report) (compared, unknown int64) {
	for _, verdict := range report {
		for _, p := range verdict.Produced {
			compared += p.Published
		}
		for _, k := range verdict.Consumed {
			compared += k.Handled
		}
		for _, u := range verdict.Unverifiable {
			unknown += u.Events
		}
	}
	return compared, unknown
}
