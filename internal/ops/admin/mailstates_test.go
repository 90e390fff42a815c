package admin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopkg.in/yaml.v3"

	"example.com/twinbox/api"
	"example.com/twinbox/internal/lease"
)

func TestTheDocumentNamesTheStatesOfAMail(t *testing.T) {
	t.Parallel()
	data, err := api.Files.ReadFile("admin.yaml")
	require.NoError(t, err)
	var document struct {
		Components struct {
			Schemas struct {
				MailState struct {
					Enum []string `yaml:"enum"`
				} `yaml:"MailState"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	require.NoError(t, yaml.Unmarshal(data, &document))
	var states []string
	for _, state := range []lease.State{
		lease.Pending, lease.Claimed, lease.Submitting, lease.Done, lease.Failed, lease.Skipped, lease.Uncertain,
	} {
		states = append(states, strings.Replace(string(state), "done", "sent", 1))
	}
	require.Equal(t, states, document.Components.Schemas.MailState.Enum)
}
