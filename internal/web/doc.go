// Package web is the HTTP edge: it checks requests and gives every error one form. It knows no business and no
// database.
//
// [NewRouter] makes a chi router; [Server] serves and drains it. Handlers read bodies with [Decode] and answer with
// [WriteJSON] or [WriteProblem].
//
// net/http itself refuses broken request lines, unknown transfer codings and headers above the limit, in plain text.
package web
