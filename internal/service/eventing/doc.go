// Package eventing is the common part of every service: a database with an outbox and its relay, a broker with
// consumers and their inbox. A service declares itself ([Service]) and its consumers ([Node.Consume]), writes events
// through [Node.Outbox] and embeds [Config].
//
//	service.go       a service, its commands, its topics and sources
//	config.go        the variables of all services
//	node.go          connections, outbox, relay, checks
//	run.go           the order of a start
//	database.go      the pool and its probe
//	topics.go        topics: created, checked
//	consumer.go      a consumer and its inbox
//	member.go        its membership in the consumer group
//	cause.go         why events wait, for operators
//	cause_inbox.go   for a consumer
//	metrics.go       outbox, dead letters, lag
//	operate.go       for the admin API
//	verify.go        for package verify
package eventing
