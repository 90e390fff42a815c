// Package mail hands mails over to a mail server, and knows after which of them the server may have it: the effect of a
// lease (see internal/lease).
//
//	sender.go   how a mail leaves: github.com/wneessen/go-mail over a connection that ends in time
//	answer.go   what the server's answer, or its silence, means for the mail
//	server.go   what is known of the mail server: a circuit
//	cause.go    why mails wait
package mail
