// Package postgres runs PostgreSQL as a child of this process: initdb once, then the server on a unix socket.
//
// The child never outlives its parent on Linux, not even after SIGKILL: the kernel sends it a fast shutdown when the
// thread that started it ends. It does not listen on TCP and trusts all who may enter its socket's folder, which is
// the own user alone. It works as root, which PostgreSQL itself refuses: see identity_linux.go.
//
// It serves development and tests. It is not a way to run PostgreSQL in production.
package postgres
