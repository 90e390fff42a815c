// Package admin asks a cluster what it holds, and sets up topics: no group is joined for it, and no record sent.
//
//	topics.go topics_read.go    the topics, and their settings
//	lag.go owners.go groups.go  how far groups are behind, with any client
//	log.go scan.go              what lies on the log
//	deadline.go                 a question ends when its context does
package admin
