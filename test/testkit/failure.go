package testkit

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// FailureText returns the text that do logs and fails its test with; "" for a test that passes. That test has the name,
// context and cleanups of t.
func FailureText(t testing.TB, do func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() { // a failure ends the goroutine, as it does in a test
		defer close(ended)
		do(r)
	}()
	<-ended
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.TrimSuffix(r.text.String(), "\n")
}

type recorder struct {
	testing.TB

	mu   sync.Mutex
	text strings.Builder
}

func (r *recorder) write(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.WriteString(text)
	r.text.WriteString("\n")
}

func (r *recorder) Log(args ...any)                   { r.write(fmt.Sprint(args...)) }
func (r *recorder) Logf(format string, args ...any)   { r.write(fmt.Sprintf(format, args...)) }
func (r *recorder) Error(args ...any)                 { r.write(fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.write(fmt.Sprintf(format, args...)) }
func (r *recorder) Fail()                             { r.write("failed") }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (*recorder) FailNow() { runtime.Goexit() }
