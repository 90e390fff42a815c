// Package eventing is what every service stands on: one database with an outbox and its relay, one broker
// with consumers and their inbox. A service says what it consumes ([Node.Consume]) and writes its events through
// [Node.Outbox]; the rest is the same for all of them, and so are the variables that tune it ([Config]).
//
// It joins the parts and decides nothing of its own: what is promised is said in outbox, inbox and kafka.
package eventing
