// Package web is the HTTP edge: it checks requests before a service sees them, and gives errors one form. It knows no
// business and no database.
//
// [NewRouter] makes a chi router with limits, log, traces and problems; [Server] serves and drains it. Handlers read
// bodies with [Decode] and answer with [WriteJSON] or [WriteProblem].
//
// net/http refuses broken request lines, unknown transfer codings and too large headers, in plain text.
package web
