// Package porttest gives tests ports for servers that are started later, or are down for
// a while and come back. Where many tests open listeners at the same time, another one
// may have taken a port that was free a moment ago, and a client that expects its own
// server may talk to another test's.
package porttest
