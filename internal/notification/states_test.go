package notification

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/api"
	"example.com/twinbox/dev/yamltest"
)

// The states of a mail stand here and in the document of the operations: they are the same.
func TestTheDocumentNamesTheStatesOfAMail(t *testing.T) {
	t.Parallel()
	data, err := api.Files.ReadFile("admin.yaml")
	require.NoError(t, err)
	var document struct {
		Components struct {
			Schemas struct {
				MailState struct {
					Enum []MailState `yaml:"enum"`
				} `yaml:"MailState"`
			} `yaml:"schemas"`
		} `yaml:"components"`
	}
	require.NoError(t, yamltest.Unmarshal(data, &document))
	require.Equal(t, []MailState{MailPending, MailClaimed, MailSubmitting, MailSent, MailFailed, MailUncertain},
		document.Components.Schemas.MailState.Enum)
}
