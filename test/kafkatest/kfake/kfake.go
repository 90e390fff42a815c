// Package kfake is the in-process broker of the tests, by the names that tests use: the module behind it is a
// requirement of dev alone.
package kfake

import franz "github.com/twmb/franz-go/pkg/kfake"

// The types.
type (
	ACL     = franz.ACL
	Cluster = franz.Cluster
	Fault   = franz.Fault
	Opt     = franz.Opt
)

// The functions.
var (
	BrokerConfigs = franz.BrokerConfigs
	DataDir       = franz.DataDir
	EnableACLs    = franz.EnableACLs
	EnableSASL    = franz.EnableSASL
	ListenFn      = franz.ListenFn
	NewCluster    = franz.NewCluster
	NumBrokers    = franz.NumBrokers
	Ports         = franz.Ports
	SeedTopics    = franz.SeedTopics
	Superuser     = franz.Superuser
	TLS           = franz.TLS
	User          = franz.User
)
