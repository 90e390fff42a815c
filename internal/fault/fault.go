// Package fault names the places at which a process may die, so that tests can make it die there.
//
// Without the build tag "faults" every call is an empty function that the compiler removes. `make test` builds with the
// tag.
package fault
