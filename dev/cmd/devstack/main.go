// Command devstack is package devstack as a program.
package main

import (
	"os"

	"example.com/twinbox/dev/devstack"
)

func main() { os.Exit(devstack.Main()) }
