package devstack_test

import examples "example.com/twinbox/examples/devstack"

func init() {
	addresses := []string{"forwarder", "forwarder-admin", "nats"}
	programs = append(programs, program{examples.Forwarder(), addresses, "Forwarded"})
}
