package devstack

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"example.com/twinbox/dev/local"
	"example.com/twinbox/internal/service"
	"example.com/twinbox/internal/service/eventing"
	"example.com/twinbox/internal/services"
)

// RunCommand is "devstack run".
type RunCommand struct {
	Config local.Config `embed:""`

	CustomerAddr          string `help:"Customer API. Port 0 takes a free one, here and below." default:"127.0.0.1:8080"`
	CustomerAdminAddr     string `help:"Customer's /livez, /readyz, /metrics." default:"127.0.0.1:8081"`
	NotificationAdminAddr string `help:"Notification's /livez, /readyz, /metrics." default:"127.0.0.1:8082"`

	ServiceAddr      map[string]string `help:"Where the API of another service listens, by its name." placeholder:"NAME=HOST:PORT;..."`
	ServiceAdminAddr map[string]string `help:"Its /livez, /readyz, /metrics." placeholder:"NAME=HOST:PORT;..."`

	Extensions kong.Plugins `embed:""`
	ByMake     bool         `help:"Stop when the program that started this one is gone." hidden:"" env:"-"`

	extensions []local.Extension
}

// Run runs the stack until the context ends.
func (c *RunCommand) Run(ctx context.Context, to *kong.Context) error {
	ctx, stop := local.WithTool(ctx, c.ByMake)
	defer stop()
	service.StartTracing()
	cfg := c.Config
	for _, e := range c.extensions {
		if e.Add != nil {
			e.Add(&cfg)
		}
	}
	var err error
	if cfg.Services, err = c.listen(cfg.Extra); err != nil {
		return err
	}
	if names := unused(os.Environ(), append(services.All(), cfg.Extra...)); len(names) > 0 {
		_, _ = fmt.Fprintf(to.Stderr, "Not used from your shell: %s. To set a service's variable: %s\n",
			strings.Join(names, ", "), `make run ARGS="--set NAME=VALUE"`)
	}
	cfg.Out, cfg.Err = to.Stdout, to.Stderr
	return local.Run(ctx, cfg)
}

func (c *RunCommand) listen(extra []eventing.Described) (map[string]local.Listen, error) {
	listen := map[string]local.Listen{}
	for _, s := range append(services.All(), extra...) {
		unset := s.Unset()
		listen[s.Name] = local.Listen{
			API:   cmp.Or(c.ServiceAddr[s.Name], unset.Value("HTTP_ADDR")),
			Admin: cmp.Or(c.ServiceAdminAddr[s.Name], unset.Value("ADMIN_ADDR")),
		}
	}
	for _, flag := range []map[string]string{c.ServiceAddr, c.ServiceAdminAddr} {
		for name := range flag {
			if _, runs := listen[name]; !runs {
				return nil, local.UsageError("an address is given for " + name + ", which does not run")
			}
		}
	}
	listen["customer"] = local.Listen{API: c.CustomerAddr, Admin: c.CustomerAdminAddr}
	listen["notification"] = local.Listen{Admin: c.NotificationAdminAddr}
	return listen, nil
}

// unused returns the variables that services would read if they ran alone. OTEL_ ones are set for all programs.
func unused(environ []string, all []eventing.Described) (names []string) {
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		isRead := func(s eventing.Described) bool { return s.Unset().Reads(name) }
		if !strings.HasPrefix(name, "OTEL_") && slices.ContainsFunc(all, isRead) {
			names = append(names, name)
		}
	}
	return names
}
