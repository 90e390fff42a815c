// Package porttest gives tests ports for servers that are started later, or are down for a while and come back. A port
// that was free a moment ago is somebody else's by then where many tests open listeners at the same time, and a client
// that expects its own server may talk to another test's.
package porttest
