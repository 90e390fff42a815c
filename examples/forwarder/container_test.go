package forwarder

import (
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"example.com/twinbox/internal/config"
)

func TestContainer(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{"../../docker-compose.yml", "compose.yml"})
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	container := project.Services["forwarder"]
	var environ, known []string
	for name, value := range container.Environment {
		environ = append(environ, name+"="+*value)
	}
	var cfg Config
	require.NoError(t, config.Load(environ, &cfg))
	for _, setting := range config.Describe(&cfg) {
		known = append(known, setting.Variable)
	}
	for variable := range container.Environment {
		require.Contains(t, known, variable)
	}
	require.Equal(t, "nats://nats:4222", cfg.NATSURL)
	require.Subset(t, []string(project.Services["nats"].Command), []string{"--jetstream", "--store_dir=/data"})
	require.Equal(t, types.ServiceConditionHealthy, container.DependsOn["nats"].Condition)
	require.Contains(t, container.DependsOn, "setup-customer", "whose topics it reads")
}
