// Package web is the HTTP edge. [NewRouter] makes a chi router; [Server] serves and drains it. Handlers read bodies
// with [Decode] and answer with [WriteJSON] or [WriteProblem]. net/http itself refuses broken request lines, unknown
// transfer codings and long headers, in plain text.
package web
