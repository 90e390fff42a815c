// Package eventing is the common part of every service: one database with an outbox and its relay, one broker with
// consumers and their inbox. A service declares consumers ([Node.Consume]), writes events through [Node.Outbox] and
// embeds [Config].
//
//	service.go       a service is declared, described and run, with its commands
//	config.go        the variables that all services read
//	node.go          a service's connections, outbox, relay and consumers
//	run.go           they are started, each when its server answers
//	database.go      the database's pool, and its checks
//	dependencies.go  the circuits of database and broker
//	topics.go        topics are created, checked and described
//	consumer.go      a consumer and its inbox
//	member.go        its membership in the consumer group, under a name of its own
//	metrics.go       gauges of outbox, dead letters and lag
//	cause.go         why events wait, for operators
//	advice.go        what such a cause means, and what to do
//	operate.go       a node for its operations
//	check.go         queries that find events without their effect
//	verify.go        what verification needs to know of a service
package eventing
