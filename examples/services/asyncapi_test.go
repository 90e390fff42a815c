package services_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gopkg.in/yaml.v3"

	ledger "example.com/twinbox/examples/ledger/contract"
	order "example.com/twinbox/examples/order/contract"
	"example.com/twinbox/internal/event"
)

type ref struct {
	Ref string `yaml:"$ref"`
}

type document struct {
	Channels map[string]struct {
		Address  string         `yaml:"address"`
		Messages map[string]ref `yaml:"messages"`
	} `yaml:"channels"`
	Operations map[string]struct {
		Action  string `yaml:"action"`
		Channel ref    `yaml:"channel"`
	} `yaml:"operations"`
	Components struct {
		Messages map[string]struct {
			Name    string `yaml:"name"`
			Traits  []ref  `yaml:"traits"`
			Payload struct {
				Schema ref `yaml:"schema"`
			} `yaml:"payload"`
		} `yaml:"messages"`
	} `yaml:"components"`
}

// Each topic has one sender.
func TestAsyncAPIDescribesTheDefinitions(t *testing.T) {
	t.Parallel()
	for name, all := range map[string][]event.Declaration{"order": order.All(), "ledger": ledger.All()} {
		folder := filepath.Join("..", name, "contract")
		content, err := os.ReadFile(filepath.Join(folder, "asyncapi.yaml"))
		require.NoError(t, err)
		var read document
		require.NoError(t, yaml.Unmarshal(content, &read))
		var want, got, senders, channels []string
		for _, d := range all {
			want = append(want, d.Topic+" "+d.Type+" ./events/"+path.Base(d.DataSchema))
		}
		for topic, channel := range read.Channels {
			require.Equal(t, topic, channel.Address)
			channels = append(channels, "#/channels/"+topic)
			for key, message := range channel.Messages {
				require.Equal(t, "#/components/messages/"+key, message.Ref)
				described := read.Components.Messages[key]
				got = append(got, topic+" "+described.Name+" "+described.Payload.Schema.Ref)
				require.FileExists(t, filepath.Join(folder, described.Payload.Schema.Ref))
				require.Len(t, described.Traits, 1)
				file, _, _ := strings.Cut(described.Traits[0].Ref, "#")
				require.FileExists(t, filepath.Join(folder, file))
			}
		}
		require.ElementsMatch(t, want, got, name)
		for _, operation := range read.Operations {
			require.True(t, slices.Contains(channels, operation.Channel.Ref), operation.Channel.Ref)
			if operation.Action == "send" {
				senders = append(senders, operation.Channel.Ref)
			}
		}
		require.ElementsMatch(t, channels, senders, name)
	}
}
