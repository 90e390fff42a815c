// Package admin asks a cluster what it holds, and sets up topics: no group is joined for it, and no record sent.
//
//	cluster.go        a question, which ends when its context does
//	topics.go         the topics, and their settings
//	lag.go            how far a group is behind, with any client
//	log.go            what lies on the log
//	groups.go         what operators ask of groups, and a verification of the log
package admin
