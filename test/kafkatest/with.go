package kafkatest

import "testing"

// With is the run of the tests with the stop of the real broker after it, for packages whose TestMain is another
// harness's:
//
//	func TestMain(m *testing.M) { pgtest.Main(kafkatest.With(m), kafkatest.LeakOptions()...) }
func With(m *testing.M) *Running { return &Running{m} }

// Running is what [With] returns.
type Running struct{ m *testing.M }

// Run runs the tests, stops the real broker if one was started and returns the tests' exit code.
func (r *Running) Run() int {
	defer stopReal()
	return r.m.Run()
}
