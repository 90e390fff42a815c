package config

import (
	"net"
	"net/netip"
)

// SameListener reports whether two addresses of the format listen collide: the same port, except 0, on one host or on
// every interface. Names are not resolved.
func SameListener(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	return errA == nil && errB == nil && portA == portB && portA != "0" &&
		(hostA == hostB || isEveryInterface(hostA) || isEveryInterface(hostB))
}

func isEveryInterface(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}
