// Package eventing runs the common part of every service: one database with an outbox and its relay, one
// broker with consumers and their inbox. A service declares its consumers ([Node.Consume]) and writes its
// events through [Node.Outbox]; the rest is the same for all services, and so are its settings
// ([Config]).
//
// It joins the parts and adds no promise: those are in outbox, inbox and kafka.
package eventing
