// Package local runs the whole system in one process: PostgreSQL as a child, a Kafka-protocol broker, an SMTP server
// with a mailbox page, and both services. It is what `make run` starts and what the end-to-end tests drive.
//
// The services know nothing of it. They get the configuration that they would get from an environment, in which the
// embedded parts are addresses. All state is in one folder and survives the end of the process, also a sudden one.
package local
