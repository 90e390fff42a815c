// Package kafka publishes, and holds what consumer and admin share: settings, the form of a record, and the errors of a
// broker's refusals.
//
// [Publisher] sends, package consumer reads as a member of a group, package admin asks a cluster and reads its log
// outside of groups; package progress tracks how far each topic-partition is read. [Marshaler] maps a message to a
// record: CloudEvents 1.0, binary mode. [Config] and [GroupConfig] hold the settings, each with the harm of a wrong
// value.
//
// Watermill's own Kafka edge, watermill-kafka's Publisher and Subscriber, works on the same topics with [Marshaler] and
// the settings of [Config.Producer] and [GroupConfig.Consumer].
package kafka
