package devstack

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"reflect"
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

	// Addresses has --NAME-addr and --NAME-admin-addr of each service.
	Addresses kong.Plugins `embed:""`

	ServiceAddr      map[string]string `help:"Where the API of a service without flags listens, by its name." placeholder:"NAME=HOST:PORT;..."`
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
	if cfg.Services, err = c.listen(to, cfg.Extra); err != nil {
		return err
	}
	if names := unused(os.Environ(), append(services.All(), cfg.Extra...)); len(names) > 0 {
		_, _ = fmt.Fprintf(to.Stderr, "Not used from your shell: %s. To set a service's variable: %s\n",
			strings.Join(names, ", "), `make run ARGS="--set NAME=VALUE"`)
	}
	cfg.Out, cfg.Err = to.Stdout, to.Stderr
	return local.Run(ctx, cfg)
}

// newAddresses points to a struct with the flags of the services' addresses.
func newAddresses() any {
	var fields []reflect.StructField
	add := func(flag, help, addr string) {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("F%d", len(fields)), Type: reflect.TypeFor[string](),
			Tag: reflect.StructTag(fmt.Sprintf(`name:"%s" help:"%s" default:"%s"`, flag, help, addr)),
		})
	}
	for _, s := range services.All() {
		unset := s.Unset()
		if unset.Reads("HTTP_ADDR") {
			add(s.Name+"-addr", "API of "+s.Name+". Port 0 takes a free one, here and below.", unset.Value("HTTP_ADDR"))
		}
		add(s.Name+"-admin-addr", "/livez, /readyz, /metrics of "+s.Name+".", unset.Value("ADMIN_ADDR"))
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

func (c *RunCommand) listen(to *kong.Context, extra []eventing.Described) (map[string]local.Listen, error) {
	flags := map[string]string{}
	for _, flag := range to.Flags() {
		flags[flag.Name], _ = to.FlagValue(flag).(string)
	}
	listen := map[string]local.Listen{}
	for _, s := range append(services.All(), extra...) {
		unset := s.Unset()
		listen[s.Name] = local.Listen{
			API:   cmp.Or(c.ServiceAddr[s.Name], flags[s.Name+"-addr"], unset.Value("HTTP_ADDR")),
			Admin: cmp.Or(c.ServiceAdminAddr[s.Name], flags[s.Name+"-admin-addr"], unset.Value("ADMIN_ADDR")),
		}
	}
	for _, given := range []map[string]string{c.ServiceAddr, c.ServiceAdminAddr} {
		for name := range given {
			if _, runs := listen[name]; !runs {
				return nil, local.UsageError("an address is given for " + name + ", which does not run")
			}
		}
	}
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
