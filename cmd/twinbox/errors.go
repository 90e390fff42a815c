package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"syscall"

	"example.com/twinbox/frame/service"
	"example.com/twinbox/ops/admin/client"
)

// The exit codes of the commands that operate a system, beside those of package service.
const (
	exitNotFound = 3
	exitRefused  = 4
	exitPartial  = 5
)

// ending is an error that says what the command ends with: its exit code, and the stable name of what went wrong.
type ending struct {
	error
	exit     int
	code     string
	answered bool // the result is on stdout, with what is not done in it
}

func (e *ending) Unwrap() error { return e.error }
func (e *ending) ExitCode() int { return e.exit }

// usage is a command line that makes no sense.
func usage(text string) error {
	return &ending{error: errors.New(text), exit: service.ExitUsage, code: "usage"}
}

// notFound is about what no service knows.
func notFound(text string) error {
	return &ending{error: errors.New(text), exit: exitNotFound, code: "not_found"}
}

// refused is what is not done, for good reason.
func refused(code, format string, args ...any) error {
	return &ending{error: fmt.Errorf(format, args...), exit: exitRefused, code: code}
}

// partial is about a part of what was asked for; the rest is done, or shown.
func partial(err error) error {
	return &ending{error: err, exit: exitPartial, code: "partial", answered: true}
}

// exitCode is what a command ends with.
func exitCode(err error) int {
	var coded interface{ ExitCode() int }
	var problem *client.ProblemError
	switch {
	case err == nil:
		return service.ExitOK
	case errors.As(err, &coded):
		return coded.ExitCode()
	case errors.Is(err, client.ErrCutOff):
		return exitPartial
	case errors.As(err, &problem):
		return cmp.Or(exitOf[problem.Problem.Status], service.ExitFailure)
	}
	return service.ExitFailure
}

// exitOf has the exit codes of a service's answers that are no failures of the service.
var exitOf = map[int]int{
	http.StatusNotFound: exitNotFound, http.StatusBadRequest: service.ExitUsage,
	http.StatusUnprocessableEntity: service.ExitUsage, http.StatusUnauthorized: exitRefused,
	http.StatusForbidden: exitRefused, http.StatusConflict: exitRefused, http.StatusGone: exitRefused,
	http.StatusMisdirectedRequest: exitRefused,
}

// errorCode is the stable name of what went wrong.
func errorCode(err error) string {
	if ended, is := errors.AsType[*ending](err); is {
		return ended.code
	}
	if problem, is := errors.AsType[*client.ProblemError](err); is {
		return problem.Problem.Code
	}
	if _, is := errors.AsType[*client.UnreachableError](err); is {
		return "unreachable"
	}
	return "failed"
}

// report ends a command: it says an error to people, and to a program that asked for JSON and has got none yet. That
// the reader of the output is gone, as behind "| head", is no failure.
func (s *streams) report(args []string, err error) int {
	switch {
	case s.broken != nil && !errors.Is(s.broken, syscall.EPIPE):
		err = s.broken
	case s.broken != nil && errors.Is(err, s.broken):
		err = nil
	}
	if err == nil {
		return service.ExitOK
	}
	s.warn("%v", err)
	ended, is := errors.AsType[*ending](err)
	if wantsJSON(args) && !(is && ended.answered) {
		s.document(map[string]any{
			"error": map[string]any{"code": errorCode(err), "message": err.Error(), "exit": exitCode(err)},
		})
	}
	return exitCode(err)
}

// wantsJSON says whether a command line asked for JSON, also one that cannot be parsed.
func wantsJSON(args []string) bool { return askedForJSON.MatchString(strings.Join(args, "\n")) }

var askedForJSON = regexp.MustCompile(`(?m)^(--json|(-o|--output)[=\n]?json)$`)
