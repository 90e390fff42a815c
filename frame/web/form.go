package web

import (
	"net/http"
	"net/url"
)

const mediaForm = "application/x-www-form-urlencoded"

// IsForm says that the request was sent by an HTML form, so that its sender is a person who reads the answer.
func IsForm(r *http.Request) bool { return isMedia(r.Header["Content-Type"], mediaForm) }

// FormField returns the one field that a form of this name has. A body that is missing, too long, broken or compressed,
// and any field beside it, is refused as [Decode] refuses it. The error is always an [*Error] with a 4xx status.
func FormField(w http.ResponseWriter, r *http.Request, name string) (string, error) {
	body, err := readBody(w, r, mediaForm)
	if err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(body))
	values, given := form[name]
	switch {
	case err != nil:
		return "", ParameterError(http.StatusBadRequest, CodeInvalidParameter, name, "is malformed")
	case !given:
		return "", ParameterError(http.StatusBadRequest, CodeMissingParameter, name, "is missing")
	case len(values) > 1:
		return "", ParameterError(http.StatusBadRequest, CodeInvalidParameter, name, "is there more than once")
	case len(form) > 1:
		return "", refuse(CodeUnknownMember, "The form has a field that is not part of this request.")
	}
	return values[0], nil
}
