package deploy_test

import (
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	forwarding "example.com/twinbox/examples/forwarder"
	"example.com/twinbox/internal/config"
)

// forwarder is the example that is no service with a database: it has one container, and no jobs.
const forwarder = "forwarder"

func TestCompose_ForwarderStandsOnNATS(t *testing.T) {
	t.Parallel()
	project := compose(t)
	service := project.Services[forwarder]
	var cfg forwarding.Config
	require.NoError(t, config.Load(environ(service), &cfg))
	var known []string
	for _, setting := range config.Describe(&cfg) {
		known = append(known, setting.Variable)
	}
	for variable := range service.Environment {
		require.Contains(t, known, variable)
	}
	require.Equal(t, "nats://nats:4222", cfg.NATSURL)
	require.Subset(t, []string(project.Services["nats"].Command), []string{"--jetstream", "--store_dir=/data"})
	require.Subset(t, waitsFor(project, forwarder, nil), []string{"kafka", "nats", "customer-topics"})
	for _, name := range []string{forwarder, "nats"} {
		require.Equal(t, []string{"examples"}, project.Services[name].Profiles, name)
		require.True(t, hasHealthcheck(project.Services[name]), name)
	}
	require.True(t, service.ReadOnly)
	require.Equal(t, []string{"ALL"}, service.CapDrop)
	require.Equal(t, types.ServiceConditionHealthy, service.DependsOn["nats"].Condition)
}
