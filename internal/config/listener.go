package config

import (
	"net"
	"net/netip"
)

// SameListener reports whether two addresses of the format listen collide: the same port, other than 0, on the same
// host or on every interface. It does not resolve names.
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
