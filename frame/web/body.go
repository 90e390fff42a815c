package web

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
)

// readBody returns the body of a request that says it is of the media type, in UTF-8 and uncompressed, and that keeps
// to the limit.
func readBody(w http.ResponseWriter, r *http.Request, media string) ([]byte, error) {
	limit := exchangeOf(r).config.MaxBodyBytes
	switch {
	case r.ContentLength == 0:
		return nil, errBodyMissing()
	case !isMedia(r.Header["Content-Type"], media):
		return nil, refuse(CodeUnsupportedMediaType, "The body must be "+media+" in UTF-8.")
	case !isIdentity(r.Header["Content-Encoding"]):
		return nil, refuse(CodeUnsupportedEncoding, "The body must not be compressed.")
	case r.ContentLength > limit:
		return nil, errTooLarge(limit)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, bodyError(err, limit)
	}
	return body, nil
}

func bodyError(err error, limit int64) *Error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return errTooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(CodeRequestTimeout, "The body did not arrive in time.")
	}
	return refuse(CodeBodyUnreadable, "The body ended before its announced length, or is wrongly framed.")
}

func errBodyMissing() *Error {
	return refuse(CodeBodyMissing, "The body is empty.")
}

func errTooLarge(limit int64) *Error {
	return refuse(CodeBodyTooLarge, fmt.Sprintf("The body is longer than %d bytes.", limit))
}

func isMedia(values []string, want string) bool {
	if len(values) != 1 {
		return false
	}
	media, parameters, err := mime.ParseMediaType(values[0])
	if err != nil || media != want {
		return false
	}
	charset, given := parameters["charset"]
	if !given {
		return len(parameters) == 0
	}
	return len(parameters) == 1 && strings.EqualFold(charset, "utf-8")
}

func isIdentity(values []string) bool {
	for _, value := range values {
		if !strings.EqualFold(strings.TrimSpace(value), "identity") {
			return false
		}
	}
	return true
}
