// Command devstack is dev's devstack with the examples.
package main

import (
	"os"

	"example.com/twinbox/dev/devstack"
	examples "example.com/twinbox/examples/devstack"
)

func main() {
	var programs []examples.Program
	programs = append(programs, examples.Forwarder())
	os.Exit(devstack.Main(examples.Extension(programs...)))
}
