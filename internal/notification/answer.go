package notification

import (
	"errors"
	"fmt"
	"net/textproto"
	"regexp"

	"example.com/twinbox/internal/failure"
	"example.com/twinbox/internal/lease"
)

// stage is how far a letter got.
type stage string

const (
	stageConnect stage = "connect"
	stageMail    stage = "mail from"
	stageRcpt    stage = "rcpt to"
	stageData    stage = "data"
	stageContent stage = "content"
	stageDot     stage = "final dot"
)

// SubmitError is a failed attempt to hand a letter over. Its text goes to the log and to the lease's row, so it says
// the stage and the codes and leaves out the server's words, which like to repeat the address. It does not unwrap to
// its cause: a connection that was cut means something else at each stage.
type SubmitError struct {
	Stage    stage
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
	case e.Stage == stageConnect:
		return failure.Brief(fmt.Sprintf("submit mail: %s: %v", e.Stage, e.err))
	}
	return fmt.Sprintf("submit mail: %s: no answer", e.Stage)
}

var enhanced = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// answered makes the error of an attempt that ended after the connection stood, marked with what it means for the mail:
//
//	a refusal for good, at any stage                      permanent: failed
//	a refusal for now, at any stage                       tried again, counted
//	no answer before the final dot                        tried again, counted
//	no answer after the dot, or one that nobody expects   not marked: uncertain
//
// Which refusals are for good is a matter of internal/failure's table.
func answered(at stage, err error) error {
	e := &SubmitError{Stage: at, err: err}
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		e.Code, e.Enhanced = answer.Code, enhanced.FindString(answer.Msg)
	}
	said := e.Code >= 400 && e.Code < 600
	switch {
	case said && failure.Classify(err) == failure.Permanent:
		return lease.Undone(failure.AsPermanent(e))
	case said, at != stageDot:
		return lease.Undone(e)
	}
	return e
}
