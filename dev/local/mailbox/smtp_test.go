package mailbox_test

import (
	"net/textproto"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/twinbox/dev/local/mailbox"
)

func TestReply(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stage string
		fault error
		code  int // 0: the connection ends without an answer
		kept  int
	}{
		"service closing at mail": {"mail", mailbox.Refuse(421, "closing"), 421, 0},
		"greylisted at rcpt":      {"rcpt", mailbox.Refuse(451, "try later"), 451, 0},
		"no such mailbox":         {"rcpt", mailbox.Refuse(550, "no such mailbox"), 550, 0},
		"refused after data":      {"data", mailbox.Refuse(554, "spam"), 554, 0},
		"cut before it is kept":   {"data", mailbox.ErrCut, 0, 0},
		"cut when it is kept":     {"kept", mailbox.ErrCut, 0, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := start(t, mailbox.Config{Reply: func(stage, from, to string) error {
				if stage != test.stage {
					return nil
				}
				if from != "no-reply@example.org" || (to != "ada@example.org" && stage != "mail") {
					return nil
				}
				return test.fault
			}})
			err := send(t, m, welcome, "ada@example.org")
			var answer *textproto.Error
			if test.code == 0 {
				require.Error(t, err)
				require.NotErrorAs(t, err, &answer)
			} else {
				require.ErrorAs(t, err, &answer)
				require.Equal(t, test.code, answer.Code)
			}
			require.Len(t, m.Messages(), test.kept)
		})
	}
}

func TestCloseCutsAStalledConnection(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	m := start(t, mailbox.Config{Reply: func(stage, _, _ string) error {
		if stage == "data" {
			close(reached)
			<-release
		}
		return nil
	}})
	sent := make(chan error, 1)
	go func() { sent <- send(t, m, welcome, "ada@example.org") }()
	<-reached
	require.NoError(t, m.Close())
	require.Error(t, <-sent)
	close(release)
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	m := start(t, mailbox.Config{})
	err := send(t, m, "Subject: x\r\n\r\n"+strings.Repeat("0123456789\r\n", 1<<19), "ada@example.org")
	require.Error(t, err)
	require.Empty(t, m.Messages())
}
