// Package smtp hands mails over to a mail server, and knows after which of them the server may have it: the effect of a
// lease (see engine/lease).
//
//	sender.go   how a mail leaves, up to the final dot and behind it
//	answer.go   what the server's answer, or its silence, means for the mail
//	server.go   the connection to the mail server, and what is known of it: a circuit
package smtp
