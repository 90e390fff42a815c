// Package web is the HTTP edge: it decides what a request must look like before a service sees it, and what every
// error looks like to a client. It knows no business and no database: a service passes in how its errors translate.
//
// [NewRouter] makes a chi router with the limits, the log, the trace and the problems of this package; [NewServer]
// serves it with timeouts and drains it. Handlers read bodies with [Decode] and answer with [WriteJSON] or
// [WriteProblem].
//
// What net/http refuses before there is a request (a broken request line, an unknown transfer coding, headers above
// the limit) it answers itself, in plain text.
package web
