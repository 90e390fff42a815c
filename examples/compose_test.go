// Package examples_test checks the examples' containers against their code, without Docker.
package examples_test

import (
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/examples/services"
	"example.com/twinbox/internal/config"
)

func compose(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml", "compose.yml", "hello/compose.yml"})
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	return project
}

func environ(service types.ServiceConfig) []string {
	var list []string
	for name, value := range service.Environment {
		list = append(list, name+"="+*value)
	}
	return list
}

func requireKnown(t *testing.T, container types.ServiceConfig, settings []config.Setting) {
	t.Helper()
	var known []string
	for _, setting := range settings {
		known = append(known, setting.Variable)
	}
	for variable := range container.Environment {
		require.Contains(t, known, variable, container.Name)
	}
}

// The ports are those of make run.
func TestContainers(t *testing.T) {
	t.Parallel()
	project := compose(t)
	var databases []string
	for name, job := range project.Services {
		if strings.HasPrefix(name, "setup-databases-") {
			databases = append(databases, strings.Fields(*job.Environment["DATABASES"])...)
		}
	}
	require.Len(t, databases, len(services.All()))
	for _, s := range services.All() {
		for _, name := range []string{s.Name, "setup-" + s.Name} {
			container := project.Services[name]
			instance, err := s.Load(environ(container))
			require.NoError(t, err, name)
			requireKnown(t, container, instance.Variables)
			require.Equal(t, "postgres://twinbox_"+s.Name+":"+s.Name+"@postgres:5432/twinbox_"+s.Name+"?sslmode=disable",
				*container.Environment["DATABASE_URL"])
		}
		require.Contains(t, databases, s.Name+":20")
		require.Equal(t, "examples/cmd/"+s.Name, *project.Services[s.Name].Build.Args["PROGRAM"])
		require.Equal(t, types.ServiceConditionCompletedSuccessfully,
			project.Services[s.Name].DependsOn["setup-"+s.Name].Condition)
		of := "examples"
		if s.Name == "hello" { // it has a file of its own, which new-service copies
			of = s.Name
		}
		require.Contains(t, project.Services["setup-"+s.Name].DependsOn, "setup-databases-"+of)
		require.Contains(t, project.Services["setup-"+s.Name].DependsOn, "kafka")
		unset := s.Unset()
		for i, variable := range []string{"HTTP_ADDR", "ADMIN_ADDR"} {
			_, port, _ := strings.Cut(unset.Value(variable), ":")
			require.Equal(t, port, project.Services[s.Name].Ports[i].Published, "%s of %s", variable, s.Name)
		}
	}
}
