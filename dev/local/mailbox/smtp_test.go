package mailbox_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
)

func TestTooLarge(t *testing.T) {
	t.Parallel()
	m := start(t, mailbox.Config{})
	err := send(t, m, "Subject: x\r\n\r\n"+strings.Repeat("0123456789\r\n", 1<<19), "ada@example.org")
	require.Error(t, err)
	require.Empty(t, m.Messages())
}

func TestAddressesThatAreTriedOut(t *testing.T) {
	t.Parallel()
	m := start(t, mailbox.Config{})
	require.ErrorContains(t, send(t, m, welcome, "refuse@example.org"), "no such mailbox")
	require.Empty(t, m.Messages())
	require.Error(t, send(t, m, welcome, "uncertain@example.org"))
	require.Len(t, m.Messages(), 1, "the server has it")
}
