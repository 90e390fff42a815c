package mail

import (
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"github.com/wneessen/go-mail"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/lease"
)

// SubmitError is a failed attempt, without the server's words, which often repeat the address. It does not unwrap: the
// meaning of its cause depends on the step.
type SubmitError struct {
	Step     mail.SendErrReason // [mail.ErrConnCheck]: up to the login
	Code     int                // of the server's refusal, 4xx or 5xx; 0: none
	Enhanced string             // as in RFC 3463; empty: none

	err error
}

func (e *SubmitError) Error() string {
	switch {
	case e.Code != 0:
		return strings.TrimSpace(fmt.Sprintf("submit mail: %s: %d %s", e.Step, e.Code, e.Enhanced))
	case e.Step == mail.ErrConnCheck:
		return failure.Brief(fmt.Sprintf("submit mail: connect: %v", e.err))
	}
	return fmt.Sprintf("submit mail: %s: no answer", e.Step)
}

// concernsAll reports whether every mail would fail: the server, the login or the sender's address. Postfix refuses a
// sender only at RCPT TO, so after MAIL FROM the code decides.
func (e *SubmitError) concernsAll() bool {
	return e.Step == mail.ErrConnCheck || e.Step == mail.ErrSMTPMailFrom ||
		slices.Contains(serverCodes, e.Enhanced) || slices.Contains(loginCodes, e.Code)
}

var (
	serverCodes = []string{
		"4.3.1", "5.3.1", "4.3.2", "5.3.2", // the server is full or closed
		"4.1.7", "5.1.7", "4.1.8", "5.1.8", // the sender's address, its domain
		"5.7.8", "5.7.9", "5.7.11", "5.7.14", // the account
	}
	loginCodes = []int{530, 534, 535, 538}
)

// mark adds the meaning for the mail:
//
//	concernsAll                                                  transient: waits, not counted
//	a permanent refusal, by the table of internal/failure        permanent: failed
//	a temporary refusal, or no answer before the content         tried again, counted
//	no answer after the content began, or an unexpected answer   not marked: uncertain
func mark(err error) error {
	e := &SubmitError{Step: mail.ErrConnCheck, err: err}
	if sent, is := errors.AsType[*mail.SendError](err); is {
		e.Step, e.Code, e.Enhanced = sent.Reason, sent.ErrorCode(), sent.EnhancedStatusCode()
	}
	switch {
	case e.concernsAll():
		return lease.Undone(failure.AsTransient(e))
	case e.Code == 0 && (e.Step == mail.ErrWriteContent || e.Step == mail.ErrSMTPDataClose):
		return e
	case failure.Classify(&textproto.Error{Code: e.Code, Msg: e.Enhanced}) == failure.Permanent:
		return lease.Undone(failure.AsPermanent(e))
	}
	return lease.Undone(e)
}
