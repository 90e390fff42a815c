package devstack

import (
	"cmp"
	"context"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
)

// RunCommand is "devstack run".
type RunCommand struct {
	Dir string `help:"Folder of all state; one process at a time." default:".twinbox"`

	CustomerAddr          string `help:"Customer API. Port 0 takes a free one, here and below." default:"127.0.0.1:8080"`
	CustomerAdminAddr     string `help:"Customer's /livez, /readyz, /metrics." default:"127.0.0.1:8081"`
	NotificationAdminAddr string `help:"Notification's /livez, /readyz, /metrics." default:"127.0.0.1:8082"`

	ServiceAddr      map[string]string `help:"Where the API of another service listens, by its name." placeholder:"NAME=HOST:PORT;..."`
	ServiceAdminAddr map[string]string `help:"Its /livez, /readyz, /metrics." placeholder:"NAME=HOST:PORT;..."`

	MailboxAddr string `help:"Page with the mails, loopback only." default:"127.0.0.1:8025"`
	SMTPAddr    string `help:"Where the mailbox accepts mails, loopback only." name:"smtp-addr" default:"127.0.0.1:1025"`
	KafkaAddr   string `help:"Kafka broker." default:"127.0.0.1:9092"`

	Extensions kong.Plugins `embed:""`

	KafkaBrokers  string   `help:"Use a Kafka elsewhere instead: its brokers." placeholder:"HOST:PORT,..."`
	PGBin         string   `help:"Folder of initdb and postgres. Default: what is installed, else what is fetched." name:"pg-bin" env:"PG_BIN,TWINBOX_PG_BIN" placeholder:"DIR"`
	FetchPostgres bool     `help:"Fetch PostgreSQL even where it is installed."`
	Set           []string `help:"Variable of the services; may be repeated." sep:"none" placeholder:"NAME=VALUE"`
	Verbose       bool     `help:"Show everything that the parts log, as it is in their files; otherwise of one warning a line a minute." short:"v" env:"TWINBOX_VERBOSE"`
	ByMake        bool     `help:"Stop when the program that started this one is gone." hidden:"" env:"-"`

	extensions []local.Extension
}

// services are those of the extensions.
func (c *RunCommand) services() (all []eventing.Described) {
	for _, e := range c.extensions {
		if e.Services != nil {
			all = append(all, e.Services()...)
		}
	}
	return all
}

// programs are those of the extensions.
func (c *RunCommand) programs() (all []local.Program) {
	for _, e := range c.extensions {
		if e.Programs != nil {
			all = append(all, e.Programs()...)
		}
	}
	return all
}

// Run runs the stack until the context ends.
func (c *RunCommand) Run(ctx context.Context, to *kong.Context) error {
	ctx, stop := local.WithTool(ctx, c.ByMake)
	defer stop()
	service.StartTracing()
	return local.Run(ctx, local.Config{
		Dir:      c.Dir,
		Services: c.listen(),
		Extra:    c.services(),
		Programs: c.programs(),
		Mailbox:  c.MailboxAddr, SMTP: c.SMTPAddr, Kafka: c.KafkaAddr, KafkaBrokers: c.KafkaBrokers,
		PGBin: c.PGBin, FetchPostgres: c.FetchPostgres, Settings: c.Set,
		ByMake: c.ByMake, Verbose: c.Verbose, Out: to.Stdout, Err: to.Stderr, Colour: isTerminal(to.Stdout),
	})
}

// listen is what each service listens on: what a flag says, or what it would by itself.
func (c *RunCommand) listen() map[string]local.Listen {
	listen := map[string]local.Listen{}
	for _, s := range append(services.All(), c.services()...) {
		unset := s.Unset()
		listen[s.Name] = local.Listen{
			API:   cmp.Or(c.ServiceAddr[s.Name], unset.Value("HTTP_ADDR")),
			Admin: cmp.Or(c.ServiceAdminAddr[s.Name], unset.Value("ADMIN_ADDR")),
		}
	}
	listen["customer"] = local.Listen{API: c.CustomerAddr, Admin: c.CustomerAdminAddr}
	listen["notification"] = local.Listen{Admin: c.NotificationAdminAddr}
	return listen
}

// isTerminal reports whether a person with a screen that knows colours reads the output.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
