package devstack_test

import examples "example.com/twinbox/examples/devstack"

func init() {
	programs = append(programs, program{examples.Forwarder(), []string{"forwarder", "forwarder-admin", "nats"}, "Forwarded"})
}
