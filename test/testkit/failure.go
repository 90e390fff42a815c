package testkit

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// FailureText returns the text that do fails its test with; "" for a test that passes. That test has the name, context,
// log and cleanups of t. It must fail in the goroutine of do.
func FailureText(t testing.TB, do func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() { // a failure ends the goroutine, as it does in a test
		defer close(ended)
		do(r)
	}()
	<-ended
	return strings.Join(r.lines, "\n")
}

type recorder struct {
	testing.TB

	lines []string
}

func (r *recorder) Error(args ...any) { r.lines = append(r.lines, fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}
func (r *recorder) Fail() { r.Error("failed") }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (*recorder) FailNow() { runtime.Goexit() }
