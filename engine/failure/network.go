package failure

import "syscall"

// errnoNames are the numbers of the operating system that a connection can end with.
var errnoNames = map[syscall.Errno]string{
	syscall.ECONNREFUSED:  "ECONNREFUSED",
	syscall.ECONNRESET:    "ECONNRESET",
	syscall.ECONNABORTED:  "ECONNABORTED",
	syscall.EPIPE:         "EPIPE",
	syscall.ENOTCONN:      "ENOTCONN",
	syscall.ETIMEDOUT:     "ETIMEDOUT",
	syscall.EHOSTUNREACH:  "EHOSTUNREACH",
	syscall.EHOSTDOWN:     "EHOSTDOWN",
	syscall.ENETUNREACH:   "ENETUNREACH",
	syscall.ENETDOWN:      "ENETDOWN",
	syscall.ENETRESET:     "ENETRESET",
	syscall.EADDRNOTAVAIL: "EADDRNOTAVAIL",
	syscall.EMFILE:        "EMFILE",
	syscall.ENFILE:        "ENFILE",
	syscall.ENOBUFS:       "ENOBUFS",
	syscall.ENOMEM:        "ENOMEM",
	syscall.EAGAIN:        "EAGAIN",
	syscall.EINTR:         "EINTR",
	syscall.ENOSPC:        "ENOSPC",
}

var networkRows = []Rows{
	{
		Transient, "the other side is down, restarts, or has let the connection go",
		"net_ECONNREFUSED net_ECONNRESET net_ECONNABORTED net_EPIPE net_ENOTCONN net_eof net_closed net_dial net_io",
	},
	{Transient, "silence on the way: a wall, a lost route, a server that hangs", "net_ETIMEDOUT net_timeout"},
	{
		Transient, "no way there at the moment",
		"net_EHOSTUNREACH net_EHOSTDOWN net_ENETUNREACH net_ENETDOWN net_ENETRESET",
	},
	{
		Transient, "this machine is short of ports, files, memory or disk, which is no event's fault",
		"net_EADDRNOTAVAIL net_EMFILE net_ENFILE net_ENOBUFS net_ENOMEM net_ENOSPC net_EAGAIN net_EINTR",
	},
	{Transient, "names come and go with the servers they stand for", "dns_not_found dns_timeout dns_failed"},
	{
		Transient, "certificates are put right by an operator; no event is at fault",
		"tls_certificate tls_handshake",
	},
}
