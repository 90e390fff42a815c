package mail_test

import (
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	gomail "github.com/wneessen/go-mail"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/mail"
	"example.com/twinbox/test/testkit"
)

func TestAServersAnswerHasAnEnd(t *testing.T) {
	before := allocated()
	for name, row := range map[string]struct{ begin, repeat string }{
		"a greeting":             {"", "2"},
		"a line of the greeting": {"220 hello ", strings.Repeat("x", 1000)},
		"lines of the greeting":  {"", "220-hello\r\n"},
		"lines of the hello":     {"220 hello\r\n", "250-SIZE\r\n"},
		"a refusal":              {"554 ", strings.Repeat("x", 1000)},
		"no line at all":         {"", "\r\n"},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		flooded := make(chan int64, 1)
		go func() {
			conn, err := ln.Accept()
			if err != nil {
				flooded <- 0
				return
			}
			defer conn.Close()
			written, _ := io.WriteString(conn, row.begin)
			piece := strings.Repeat(row.repeat, 1+10_000/len(row.repeat))
			n := int64(written)
			for {
				written, err := io.WriteString(conn, piece)
				if n += int64(written); err != nil {
					flooded <- n
					return
				}
			}
		}()
		s := &mail.Sender{
			Config: mail.Config{Addr: ln.Addr().String(), TLS: "none", Timeout: 3 * patience}, From: "a@example.com",
		}
		began := time.Now()
		err = s.Submit(t.Context(), letter, ready)
		require.Equal(t, failure.Transient, failure.Classify(err), name)
		require.Less(t, len(err.Error()), failure.MaxText+50, name)
		require.Less(t, time.Since(began), patience, "%s: the answer is not read until the time is up", name)
		require.NoError(t, ln.Close())
		require.Less(t, <-flooded, int64(64<<20), name)
	}
	require.Less(t, allocated()-before, uint64(32<<20))
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

func TestAnAnswerWithoutAnEndIsNone(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("250-more\r\n", mail.MaxReplyBytes/5)
	for at, want := range map[testkit.SMTPStage]gomail.SendErrReason{
		testkit.AtFrom: gomail.ErrSMTPMailFrom, testkit.AtTo: gomail.ErrSMTPRcptTo,
		testkit.AtData: gomail.ErrSMTPData, testkit.AtDot: gomail.ErrSMTPDataClose,
	} {
		server := testkit.StartSMTP(t, func(reached testkit.SMTPStage) testkit.SMTPAnswer {
			if reached == at {
				return testkit.SMTPAnswer{Say: long}
			}
			return testkit.SMTPAnswer{}
		})
		s := &mail.Sender{Config: mail.Config{Addr: server.Addr(), TLS: "none", Timeout: patience}, From: "a@example.com"}
		err := s.Submit(t.Context(), letter, ready)
		var submit *mail.SubmitError
		require.ErrorAs(t, err, &submit, at)
		require.Equal(t, want, submit.Step)
		require.Less(t, len(err.Error()), 200, "the server's words are left out")
	}
}
