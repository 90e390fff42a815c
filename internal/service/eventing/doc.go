// Package eventing is common to all services: a database with an outbox and its relay, a broker with consumers and
// their inbox. A service declares itself ([Service]) and its consumers ([Node.Consume]), writes events through
// [Node.Outbox] and embeds [Config].
//
// Read service.go, config.go, node.go (what a node has), run.go (the order of a start), consumer.go and cause.go (why
// events wait).
package eventing
