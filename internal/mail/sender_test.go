package mail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCompose(t *testing.T) {
	t.Parallel()
	s := &Sender{From: "Twinbox <no-reply@example.com>"}
	letter := Letter{
		MessageID: "1@example.com", To: "ada@example.org", WrittenAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	msg, err := s.compose(letter, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"Fri, 02 Jan 2026 03:04:05 +0000"}, msg.GetGenHeader("Date"))
	recipients, err := msg.GetRecipients()
	require.NoError(t, err)
	require.Equal(t, []string{"<ada@example.org>"}, recipients)
	for _, to := range []string{"", "ada", "ada@example.org, eve@example.org"} {
		letter.To = to
		_, err = s.compose(letter, nil)
		require.Error(t, err, to)
	}
}
