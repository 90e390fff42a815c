// Package operate is what operators read of an outbox and do about it: its status and newest entries, keys that were
// parked, events to be published again, topics with another number of partitions. Nothing here needs or disturbs a
// relay.
package operate
