// Package admin asks a cluster what it holds, and sets up topics: no group is joined for it, and no record sent.
//
//	cluster.go        a question, which ends when its context does
//	topics.go         the topics, and their settings
//	lag.go groups.go  how far groups are behind, with any client
//	log.go scan.go    what lies on the log
package admin
