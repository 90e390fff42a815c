package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/user"
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

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func usage(text string) error           { return &usageError{text} }
func (e *usageError) Error() string     { return e.text }
func (e *usageError) ExitCode() int     { return service.ExitUsage }
func (e *usageError) ErrorCode() string { return "usage" }

// partialError is about a part of what was asked for; the rest is done, or shown.
type partialError struct{ err error }

func (e *partialError) Error() string     { return e.err.Error() }
func (e *partialError) Unwrap() error     { return e.err }
func (e *partialError) ExitCode() int     { return exitPartial }
func (e *partialError) ErrorCode() string { return "partial" }

// outputError is a result that could not be written.
type outputError struct{ err error }

func (e *outputError) Error() string { return "write output: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// seenEnough says that the reader of the output is gone. A connection to a service breaks with the same error, which is
// a failure.
func seenEnough(err error) bool {
	output, is := errors.AsType[*outputError](err)
	return is && errors.Is(output, syscall.EPIPE)
}

// exitCode is what a command ends with.
func exitCode(err error) int {
	var coded interface{ ExitCode() int }
	var problem *client.ProblemError
	switch {
	case err == nil, seenEnough(err):
		return service.ExitOK
	case errors.As(err, &coded):
		return coded.ExitCode()
	case errors.Is(err, client.ErrCutOff):
		return exitPartial
	case errors.As(err, &problem):
		return exitOf(problem.Problem.Status)
	}
	return service.ExitFailure
}

func exitOf(status int) int {
	switch status {
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return service.ExitUsage
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict, http.StatusGone,
		http.StatusMisdirectedRequest:
		return exitRefused
	}
	return service.ExitFailure
}

// errorCode is the stable name of what went wrong.
func errorCode(err error) string {
	var coded interface{ ErrorCode() string }
	var problem *client.ProblemError
	var unreachable *client.UnreachableError
	switch {
	case errors.As(err, &coded):
		return coded.ErrorCode()
	case errors.As(err, &problem):
		return problem.Problem.Code
	case errors.As(err, &unreachable):
		return "unreachable"
	}
	return "failed"
}

// report says an error to people, and to a program that asked for JSON and has got none yet.
func report(to streams, args []string, err error) int {
	code := exitCode(err)
	if code == service.ExitOK {
		return code
	}
	_, _ = fmt.Fprintln(to.err, "twinbox:", err)
	if wantsJSON(args) && !answered(err) {
		_ = writeJSON(to.out, map[string]any{
			"error": map[string]any{"code": errorCode(err), "message": err.Error(), "exit": code},
		})
	}
	return code
}

// answered says that the result is on stdout already, with what is not done in it.
func answered(err error) bool {
	return errors.As(err, new(*partialError)) || errors.As(err, new(*refusedError)) || errors.As(err, new(*findingsError))
}

func writeJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return &outputError{err}
	}
	return nil
}

func systemUser() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "unknown"
}
