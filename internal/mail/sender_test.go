package mail

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A mail has the date of its letter, and goes to one plain address.
func TestCompose(t *testing.T) {
	t.Parallel()
	s := &Sender{From: "Twinbox <no-reply@example.com>"}
	letter := Letter{
		MessageID: "1@example.com", To: "ada@example.org", WrittenAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	msg, from, to, err := s.compose(letter)
	require.NoError(t, err)
	require.Equal(t, []string{"Fri, 02 Jan 2026 03:04:05 +0000"}, msg.GetGenHeader("Date"))
	require.Equal(t, []string{"<no-reply@example.com>", "<ada@example.org>"}, []string{from, to})
	for _, to := range []string{"", "ada", "ada@example.org, eve@example.org"} {
		letter.To = to
		_, _, _, err = s.compose(letter)
		require.Error(t, err, to)
	}
}
