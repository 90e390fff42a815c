// Package mail submits mails, and knows when the mail server may have one: the effect of a lease (see internal/lease).
//
//	sender.go   submits a mail with github.com/wneessen/go-mail
//	answer.go   what the server's answer means for the mail
//	server.go   the mail server's circuit
//	cause.go    why mails wait
package mail
