// Package crashtest runs part of a test in a child process that can be killed or frozen at any point. The test binary
// calls itself:
//
//	func init() { crashtest.Child(play) }            // in the process, play(role) runs instead of the tests
//
//	p := crashtest.Start(t, role{CrashAt: "..."})    // in the test
//	require.Equal(t, crashtest.Killed, p.Wait(t).Error())
package crashtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Killed is the error of a process that died by [Die].
const Killed = "signal: killed"

const variable = "TWINBOX_TEST_CHILD"

// Child plays the role and exits, with status 1 for an error, in a process that Start made. Call it from an init
// function.
func Child[T any](play func(role T) error) {
	told, isChild := os.LookupEnv(variable)
	if !isChild {
		return
	}
	var role T
	err := json.Unmarshal([]byte(told), &role)
	if err == nil {
		err = play(role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Die ends the process without deferred calls and without a flush.
func Die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// Frozen is the line that [Freeze] prints before it stops the process.
const Frozen = "frozen"

const thawed = "thawed"

// Freeze stops the process until [Process.Thaw]. A stop reaches the threads one by one, so the caller waits for the
// thaw.
func Freeze() {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	defer signal.Stop(goOn)
	_, _ = fmt.Fprintln(os.Stdout, Frozen)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-goOn
	_, _ = fmt.Fprintln(os.Stdout, thawed)
}
