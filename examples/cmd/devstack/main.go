// Command devstack is dev's devstack with the examples.
package main

import (
	"os"

	"example.com/twinbox/dev/devstack"
	"example.com/twinbox/dev/local"
	examples "example.com/twinbox/examples/devstack"
)

func main() {
	var programs []local.Extension
	programs = append(programs, examples.Forwarder())
	os.Exit(devstack.Main(examples.Extension(programs...)))
}
