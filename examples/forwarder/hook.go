package forwarder

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/ThreeDotsLabs/watermill/message"

	"example.com/twinbox/internal/failure"
)

type hook struct {
	url    string
	client *http.Client
}

// isFinal reports whether a retry is useless: the receiver refuses the event.
func isFinal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < 500
}

// isDelivery separates failures of one event from an inbox that does not answer, and from a stop. An event without an
// id goes to the dead topic as well.
func isDelivery(err error) bool {
	class := failure.Classify(err)
	return class == failure.Permanent || class == failure.Unknown
}

// answerLimit bounds the read bytes of an answer, whose connection is used again.
const answerLimit = 64 << 10

// deliver posts the event in CloudEvents' binary mode. Its id is the Idempotency-Key too, so a receiver that knows such
// keys accepts a duplicate only once. A stop does not cut the request off: its event would be posted again.
func (h hook) deliver(msg *message.Message) error {
	ctx := context.WithoutCancel(msg.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(msg.Payload))
	if err != nil {
		return failure.AsPermanent(fmt.Errorf("make request: %w", err))
	}
	for name, value := range msg.Metadata {
		if attribute, is := strings.CutPrefix(name, "ce_"); is {
			request.Header.Set("ce-"+attribute, encode(value))
		}
	}
	request.Header.Set("Content-Type", cmp.Or(msg.Metadata.Get("content-type"), "application/json"))
	if trace := msg.Metadata.Get("traceparent"); trace != "" {
		request.Header.Set("Traceparent", trace)
	}
	request.Header.Set("Idempotency-Key", encode(eventID(msg)))
	response, err := h.client.Do(request)
	if err != nil {
		return errors.New("deliver event: " + err.Error()) // a lost connection is not an outage to wait for
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, answerLimit)
	if response.StatusCode < 300 {
		return nil
	}
	err = fmt.Errorf("deliver event: the receiver answered %d", response.StatusCode)
	if isFinal(response.StatusCode) {
		err = failure.AsPermanent(err)
	}
	return err
}

// stay follows no redirection: an event goes to its configured address only.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// eventID is also the id that the inbox remembers.
func eventID(msg *message.Message) string { return cmp.Or(msg.Metadata.Get("ce_id"), msg.UUID) }

// encode percent-encodes blanks and what is not printable ASCII, as CloudEvents requires: HTTP drops outer blanks, and
// two events would have one id.
func encode(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if c <= 0x20 || c > 0x7e || c == '%' || c == '"' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
