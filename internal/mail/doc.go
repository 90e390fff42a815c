// Package mail submits mails to a mail server, and knows when the server may have one: the effect of a lease (see
// internal/lease).
//
//	sender.go   submits a mail: github.com/wneessen/go-mail over a connection with a deadline
//	answer.go   what the server's answer means for the mail
//	server.go   the mail server's circuit
//	cause.go    why mails wait
package mail
