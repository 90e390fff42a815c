// Package leaktest fails the tests of a package that leave goroutines behind.
package leaktest

import (
	"testing"

	"go.uber.org/goleak"
)

// Main runs the tests and exits, with a failure if a goroutine of theirs still runs. Use it as
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
func Main(m *testing.M) { goleak.VerifyTestMain(m) }

// An Option names goroutines that stay by design.
type Option = goleak.Option

// Known lets goroutines be that have the function anywhere on their stack: "example.com/path.(*Type).method.func1".
func Known(function string) Option { return goleak.IgnoreAnyFunction(function) }
