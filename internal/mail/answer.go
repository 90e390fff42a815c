package mail

import (
	"errors"
	"fmt"
	"net/textproto"
	"regexp"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/lease"
)

// Stage is how far a letter got.
type Stage string

const (
	StageConnect Stage = "connect"
	StageMail    Stage = "mail from"
	StageRcpt    Stage = "rcpt to"
	StageData    Stage = "data"
	StageContent Stage = "content"
	StageDot     Stage = "final dot"
)

// SubmitError is a failed attempt to hand a letter over. Its text goes to the log and to the lease's row, so it says
// the stage and the codes and leaves out the server's words, which like to repeat the address. It does not unwrap to
// its cause: a connection that was cut means something else at each stage.
type SubmitError struct {
	Stage    Stage
	Code     int    // of the server's answer, 0: none
	Enhanced string // of the server's answer, as in RFC 3463, empty: none

	err error
}

func (e *SubmitError) Error() string {
	switch {
	case e.Code != 0 && e.Enhanced != "":
		return fmt.Sprintf("submit mail: %s: %d %s", e.Stage, e.Code, e.Enhanced)
	case e.Code != 0:
		return fmt.Sprintf("submit mail: %s: %d", e.Stage, e.Code)
	case e.Stage == StageConnect:
		return failure.Brief(fmt.Sprintf("submit mail: %s: %v", e.Stage, e.err))
	}
	return fmt.Sprintf("submit mail: %s: no answer", e.Stage)
}

// concernsAll reports whether the attempt failed by what is the same for all mails: the server, the login, the sender's
// address. The next mail would get the same answer, so no mail is given up for it. Its stage says so up to MAIL FROM;
// later a code does, as from Postfix, which keeps its opinion of the sender back until RCPT TO.
func (e *SubmitError) concernsAll() bool {
	if e.Stage == StageConnect || e.Stage == StageMail {
		return true
	}
	if e.Code < 400 || e.Code >= 600 {
		return false
	}
	switch e.Enhanced {
	case "4.3.1", "5.3.1", "4.3.2", "5.3.2": // the server is full, or takes no mail
		return true
	case "4.1.7", "5.1.7", "4.1.8", "5.1.8": // the sender's address, its domain
		return true
	case "5.7.8", "5.7.9", "5.7.11", "5.7.14": // the account
		return true
	}
	return e.Code == 530 || e.Code == 534 || e.Code == 535 || e.Code == 538 // the login
}

var enhanced = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// answered makes the error of an attempt that ended after the connection stood, marked with what it means for the mail:
//
//	what concerns all mails, see concernsAll              transient: waits, not counted
//	a refusal for good                                    permanent: failed
//	a refusal for now                                     tried again, counted
//	no answer before the final dot                        tried again, counted
//	no answer after the dot, or an unexpected one         not marked: uncertain
//
// Which refusals are for good is a matter of internal/failure's table.
func answered(at Stage, err error) error {
	e := &SubmitError{Stage: at, err: err}
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		e.Code, e.Enhanced = answer.Code, enhanced.FindString(answer.Msg)
	}
	said := e.Code >= 400 && e.Code < 600
	switch {
	case e.concernsAll():
		return lease.Undone(failure.AsTransient(e))
	case said && failure.Classify(err) == failure.Permanent:
		return lease.Undone(failure.AsPermanent(e))
	case said, at != StageDot:
		return lease.Undone(e)
	}
	return e
}
