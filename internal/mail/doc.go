// Package mail submits mails, and knows when the mail server may have one: the effect of a lease (see internal/lease).
package mail
