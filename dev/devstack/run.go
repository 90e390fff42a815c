package devstack

import (
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

type RunCommand struct {
	Config local.Config `embed:""`

	Addresses kong.Plugins `embed:""`

	Extensions kong.Plugins `embed:""`
	ByMake     bool         `help:"Stop when the program that started this one is gone." hidden:"" env:"-"`

	extensions []local.Extension
}

func (c *RunCommand) Run(ctx context.Context, to *kong.Context) error {
	if c.ByMake {
		var stop func()
		ctx, stop = local.WithParent(ctx)
		defer stop()
	}
	service.StartTracing()
	cfg := c.Config
	for _, e := range c.extensions {
		if e.Add != nil {
			e.Add(&cfg)
		}
	}
	cfg.Services = readAddresses(to, cfg.Extra)
	if names := unused(os.Environ(), append(services.All(), cfg.Extra...)); len(names) > 0 {
		_, _ = fmt.Fprintf(to.Stderr, "Not used from your shell: %s. To set a service's variable: %s\n",
			strings.Join(names, ", "), `make run ARGS="--set NAME=VALUE"`)
	}
	cfg.Out, cfg.Err = to.Stdout, to.Stderr
	return local.Run(ctx, cfg)
}

func newAddresses(all []eventing.Described) any {
	var fields []reflect.StructField
	add := func(flag, help, addr string) {
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("F%d", len(fields)), Type: reflect.TypeFor[string](),
			Tag: reflect.StructTag(fmt.Sprintf(`name:"%s" help:"%s" default:"%s"`, flag, help, addr)),
		})
	}
	for _, s := range all {
		unset := s.Unset()
		if unset.Reads("HTTP_ADDR") {
			add(s.Name+"-addr", "API of "+s.Name+". Port 0 takes a free one, here and below.", unset.Value("HTTP_ADDR"))
		}
		add(s.Name+"-admin-addr", "/livez, /readyz, /metrics of "+s.Name+".", unset.Value("ADMIN_ADDR"))
	}
	return reflect.New(reflect.StructOf(fields)).Interface()
}

func readAddresses(to *kong.Context, extra []eventing.Described) map[string]local.Listen {
	flags := map[string]string{}
	for _, flag := range to.Flags() {
		flags[flag.Name], _ = to.FlagValue(flag).(string)
	}
	listen := map[string]local.Listen{}
	for _, s := range append(services.All(), extra...) {
		listen[s.Name] = local.Listen{API: flags[s.Name+"-addr"], Admin: flags[s.Name+"-admin-addr"]}
	}
	return listen
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
