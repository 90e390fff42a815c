// Command devstack is package devstack as a program.
package main

import "example.com/twinbox/dev/devstack"

func main() { devstack.Main() }
