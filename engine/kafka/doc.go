// Package kafka is what all that speaks to Kafka here has in common: the settings, the form of a record, the words for
// what a broker may refuse.
//
// What sends is in package producer, what reads as a member of a group in consumer, what asks a cluster or reads its
// log past all groups in admin; progress says how the reading gets on. [Marshaler] maps a message to a record:
// CloudEvents 1.0, binary mode. [Config] and [GroupConfig] hold the settings, each with what happens without it. None
// of them knows a business word.
//
// Watermill's own Kafka edge, watermill-kafka's Publisher and Subscriber, works on the same topics with [Marshaler] and
// the settings of [Config.Producer] and [GroupConfig.Consumer].
package kafka
